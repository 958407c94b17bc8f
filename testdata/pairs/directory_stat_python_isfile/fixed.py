"""Counts the files of a folder by two digits."""

import os
import sys
from collections import Counter

with os.scandir(sys.argv[1]) as entries:
    names = [entry.name for entry in entries if entry.is_file()]
print(sorted(Counter(name[1:3] for name in names).items()))
