"""Counts the files of a folder by two digits: listdir and isfile, as in many answers on the web."""

import os
import sys
from collections import Counter

names = [name for name in os.listdir(sys.argv[1]) if os.path.isfile(os.path.join(sys.argv[1], name))]
print(sorted(Counter(name[1:3] for name in names).items()))
