"""Checksum of the files of a folder on a server."""

import os
import sys
import zlib


def checksum(name: str) -> int:
    file = os.open(os.path.join(sys.argv[1], name), os.O_RDONLY)
    try:
        return zlib.crc32(os.read(file, 65536))
    finally:
        os.close(file)


print(f"{sum(checksum(name) for name in os.listdir(sys.argv[1])):x}")
