"""Counts the lines of many files, with the command that was known from the shell."""

import os
import subprocess
import sys

lines = 0
for name in sorted(os.listdir(sys.argv[1])):
    counted = subprocess.run(["wc", "-l", os.path.join(sys.argv[1], name)], capture_output=True, check=True)
    lines += int(counted.stdout.split()[0])
print(lines, "lines")
