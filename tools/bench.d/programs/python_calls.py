"""CPU nanoseconds of a read of 512 B from /dev/zero and of a write of as many to /dev/null, by Python, from the innermost of so many functions.

Usage: python_calls.py CALLS FUNCTIONS
"""

import os
import sys
import time

CALLS, FUNCTIONS = int(sys.argv[1]), int(sys.argv[2])
ZERO, NULL = os.open("/dev/zero", os.O_RDONLY), os.open("/dev/null", os.O_WRONLY)


def within(functions, measured):
    """Call `measured` from so many functions."""
    return measured() if functions == 0 else within(functions - 1, measured)


def read():
    """CPU of one."""
    start = time.process_time_ns()
    for _ in range(CALLS):
        os.read(ZERO, 512)
    return (time.process_time_ns() - start) / CALLS


def write():
    """CPU of one."""
    data = bytes(512)
    start = time.process_time_ns()
    for _ in range(CALLS):
        os.write(NULL, data)
    return (time.process_time_ns() - start) / CALLS


# The module, the function that measures, and `within` with 0 are functions too.
print(*(within(FUNCTIONS - 3, measured) for measured in (read, write)))
