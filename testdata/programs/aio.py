"""Reads and writes through Linux native asynchronous I/O (libaio), by raw system calls of x86-64.

Usage: aio.py FILE. 1,024 reads of 4 KiB in batches of 16; a write whose data looks like a control block; a
write that fails at completion (EFAULT); a batch of two of which the kernel takes the first only; two writes
that are never reaped.
"""

import ctypes
import os
import struct
import sys

IO_SETUP, IO_GETEVENTS, IO_SUBMIT = 206, 208, 209
PREAD, PWRITE = 0, 1
SIZE, READS, BATCH = 4096, 1024, 16
WRITE_AT = 1 << 20
DATA = b'x", aio_nbytes=7, aio_offset=9}'
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def system_call(number, *arguments):
    """The result, or minus the error."""
    result = libc.syscall(ctypes.c_long(number), *arguments)
    return result if result >= 0 else -ctypes.get_errno()


def block(data, opcode, fd, address, size, offset):
    """A `struct iocb`."""
    return ctypes.create_string_buffer(
        struct.pack("<QIiHhIQQqQII", data, 0, 0, opcode, 0, fd, address, size, offset, 0, 0, 0), 64
    )


def submit(context, *blocks):
    """Submit operations; returns how many the kernel took."""
    pointers = (ctypes.c_void_p * len(blocks))(*map(ctypes.addressof, blocks))
    return system_call(IO_SUBMIT, context, ctypes.c_long(len(blocks)), pointers)


def reap(context, count):
    """Wait for so many operations; returns their results."""
    events = ctypes.create_string_buffer(32 * count)
    done = system_call(IO_GETEVENTS, context, ctypes.c_long(count), ctypes.c_long(count), events, None)
    return [struct.unpack_from("<QQqq", events, 32 * number)[2] for number in range(done)]


def main():
    fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    os.pwrite(fd, bytes(SIZE) * READS, 0)
    context = ctypes.c_void_p()
    assert system_call(IO_SETUP, ctypes.c_uint(128), ctypes.byref(context)) == 0
    buffer = ctypes.create_string_buffer(SIZE * BATCH)
    at = ctypes.addressof(buffer)
    for first in range(0, READS, BATCH):
        reads = [
            block(n + 1, PREAD, fd, at + (n - first) * SIZE, SIZE, n * SIZE)
            for n in range(first, first + BATCH)
        ]
        assert submit(context, *reads) == BATCH
        assert reap(context, BATCH) == [SIZE] * BATCH
    data = ctypes.create_string_buffer(DATA)
    write = ctypes.addressof(data)
    assert submit(context, block(5000, PWRITE, fd, write, len(DATA), WRITE_AT)) == 1
    assert reap(context, 1) == [len(DATA)]
    assert submit(context, block(5001, PWRITE, fd, 0x1000, 10, 0)) == 1
    assert reap(context, 1) == [-14]
    assert submit(context, block(5002, PWRITE, fd, write, 5, 0), block(5003, PWRITE, 999, write, 6, 0)) == 1
    assert reap(context, 1) == [5]
    for number in (1, 2):
        assert submit(context, block(0, PWRITE, fd, write, number, 100 * number)) == 1
    assert os.read(fd, 3) == DATA[:3], "operations leave the position where it was"


if __name__ == "__main__":
    main()
