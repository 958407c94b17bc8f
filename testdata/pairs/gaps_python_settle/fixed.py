"""Writes three files and reads them back."""

import os
import sys
import zlib

sums = []
for number in range(3):
    path = os.path.join(sys.argv[1], f"part{number}.bin")
    with open(path, "wb", buffering=0) as out:
        out.write(bytes(range(256)) * 4096 * (number + 1))
    with open(path, "rb", buffering=0) as file:
        sums.append(zlib.crc32(file.read()))
print(*sums)
