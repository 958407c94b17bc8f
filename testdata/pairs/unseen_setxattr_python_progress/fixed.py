"""Computes, and notes its progress in an attribute of the job's file now and then."""

import os
import sys

path = sys.argv[1]
with open(path, "w") as file:
    file.write("a job\n")
check = 0
for number in range(120000):
    check = (check * 31 + number) % 1000003
    if number % 1000 == 999:
        os.setxattr(path, "user.progress", b"%d" % number)
print("check", check, os.getxattr(path, "user.progress").decode())
