"""Installs packages, and puts permissions right at the end."""

import os
import sys

staging, folder = sys.argv[1:]


def put_right():
    """Everybody may read the tree, and only its owner may write it."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.stat(path).st_uid == os.getuid():
            os.chmod(path, 0o644)


for _ in range(40):
    for name in sorted(os.listdir(staging))[:50]:
        os.rename(os.path.join(staging, name), os.path.join(folder, name))
put_right()
modes = {os.stat(os.path.join(folder, name)).st_mode & 0o777 for name in os.listdir(folder)}
print(len(os.listdir(folder)), "files", *(oct(mode) for mode in modes))
