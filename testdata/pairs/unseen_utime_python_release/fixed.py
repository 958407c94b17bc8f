"""Builds a release. All its files get one time, at the end."""

import os
import sys

folder = sys.argv[1]
names = sorted(os.listdir(folder))
for step in range(150):
    with open(os.path.join(folder, names[step]), "a") as file:
        file.write("release 4\n")
for name in names:
    os.utime(os.path.join(folder, name), (1700000000, 1700000000))
print(len({os.stat(os.path.join(folder, name)).st_mtime for name in names}), "time")
