"""Clears what a broken run may have left."""

import os
import sys

removed = 0
wanted = {f"{key:05}.tmp" for key in range(5000)}
for name in os.listdir(sys.argv[1]):
    if name in wanted:
        os.unlink(os.path.join(sys.argv[1], name))
        removed += 1
print(removed, "removed")
