"""Requests to a block device at places that it says, and files on another one. The first has its bytes in a file on the second, so that it can
be made to wait: while the file system there is frozen, the driver keeps what it was given.

Usage: device_requests.py DEVICE FOLDER      DEVICE: its name, of at least 16 MiB; FOLDER: where the file system of the other is mounted
"""

import fcntl
import json
import mmap
import os
import struct
import sys
import threading
import time

MIB = 1 << 20
PAGE = 4096
# Of include/uapi/linux/fs.h.
DISCARD, FREEZE, THAW = 0x1277, 0xC0045877, 0xC0045878
# Requests that the driver has at once.
TOGETHER = 8

name, mount = sys.argv[1:]
device = os.open(f"/dev/{name}", os.O_RDWR | os.O_DIRECT)
memory = memoryview(mmap.mmap(-1, MIB))
# Operation, place and bytes of each request to the device, in order.
said = []


def transfer(move, operation, place, length):
    """Read or write past the page cache."""
    said.append((operation, place, length))
    move(device, [memory[:length]], place)


def write_together():
    """Threads that write at once, and wait until all of them do."""
    below = os.open(mount, os.O_RDONLY)
    threads = [threading.Thread(target=transfer, args=(os.pwritev, "write", n * MIB, PAGE)) for n in range(TOGETHER)]
    fcntl.ioctl(below, FREEZE, 0)
    try:
        for thread in threads:
            thread.start()
        for _ in range(1000):
            with open(f"/sys/block/{name}/inflight") as inflight:
                if inflight.read().split()[1] == str(TOGETHER):
                    break
            time.sleep(0.01)
        time.sleep(0.1)
    finally:
        fcntl.ioctl(below, THAW, 0)
        for thread in threads:
            thread.join()


# Each somewhere else, and none behind the one before.
for number in range(64):
    transfer(os.preadv, "read", number * 1021 % 4096 * PAGE, PAGE)
for number in range(32):
    transfer(os.pwritev, "write", number * 1021 % 2048 * 2 * PAGE, 2 * PAGE)
said.append(("discard", MIB, 2 * MIB))
fcntl.ioctl(device, DISCARD, struct.pack("QQ", MIB, 2 * MIB))
for _ in range(3):
    said.append(("flush", None, 0))
    os.fsync(device)
write_together()

with open(f"{mount}/synced", "w+b") as synced:
    synced.write(os.urandom(MIB))
    synced.flush()
    os.fsync(synced.fileno())
    os.posix_fadvise(synced.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    os.pread(synced.fileno(), MIB, 0)
direct = os.open(f"{mount}/direct", os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
os.pwritev(direct, [memory[: MIB // 2]], 0)
os.preadv(direct, [memory[: MIB // 4]], 0)
print(json.dumps({"requests": said, "together": TOGETHER}))
