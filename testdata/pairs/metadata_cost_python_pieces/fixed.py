"""Stores thumbnails in one archive, with mode and time."""

import io
import os
import sys
import tarfile

os.mkdir(sys.argv[1])
size = 0
path = os.path.join(sys.argv[1], "thumbnails.tar")
with open(path, "wb", buffering=65536) as out, tarfile.open(fileobj=out, mode="w") as archive:
    for number in range(900):
        picture = bytes((number * step) % 251 for step in range(600))
        entry = tarfile.TarInfo(f"{number:05}.raw")
        entry.size, entry.mode, entry.mtime = len(picture), 0o640, 1_400_000_000 + number
        archive.addfile(entry, io.BytesIO(picture))
        size += len(picture)
print("900 thumbnails,", size, "bytes")
