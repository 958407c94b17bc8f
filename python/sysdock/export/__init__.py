"""Writes recordings for other people's viewers: time lines and flame graphs."""

from sysdock.export.files import WRITERS, write_file
from sysdock.export.traces import Written

__all__ = ["WRITERS", "Written", "write_file"]
