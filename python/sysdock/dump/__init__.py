"""Explores a crash dump: its structures, lists and tables, and scripts that ask about them."""

from sysdock.dump.dump import Dump
from sysdock.dump.rows import Rows

__all__ = ["Dump", "Rows"]
