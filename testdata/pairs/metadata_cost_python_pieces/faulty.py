"""Stores thumbnails: a file each, as they came from the camera, with mode and time."""

import os
import sys

os.mkdir(sys.argv[1])
size = 0
for number in range(900):
    picture = bytes((number * step) % 251 for step in range(600))
    path = os.path.join(sys.argv[1], f"{number:05}.raw")
    with open(path, "wb") as out:
        out.write(picture)
    os.chmod(path, 0o640)
    os.utime(path, (1_400_000_000 + number, 1_400_000_000 + number))
    size += len(picture)
print("900 thumbnails,", size, "bytes")
