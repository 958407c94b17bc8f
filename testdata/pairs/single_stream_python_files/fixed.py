"""Checksum of the files of a folder on a server, eight at a time."""

import os
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor


def checksum(name: str) -> int:
    file = os.open(os.path.join(sys.argv[1], name), os.O_RDONLY)
    try:
        return zlib.crc32(os.read(file, 65536))
    finally:
        os.close(file)


with ThreadPoolExecutor(8) as pool:
    print(f"{sum(pool.map(checksum, os.listdir(sys.argv[1]))):x}")
