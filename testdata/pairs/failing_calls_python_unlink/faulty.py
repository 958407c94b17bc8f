"""Clears what a broken run may have left: it is easier to ask forgiveness than permission."""

import contextlib
import os
import sys

removed = 0
for key in range(5000):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(sys.argv[1], f"{key:05}.tmp"))
        removed += 1
print(removed, "removed")
