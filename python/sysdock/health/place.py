"""The file system that a directory lies in."""

from __future__ import annotations

import os
from pathlib import Path


def mount_point(directory: Path) -> Path:
    """The mount point of a directory."""
    place = directory.resolve()
    while not os.path.ismount(place):
        place = place.parent
    return place
