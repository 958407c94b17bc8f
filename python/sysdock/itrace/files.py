"""Files that traces of guests need in addition to the native program: the plugin of qemu, the guest's first
process.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import sysdock
from sysdock.errors import UserError

PLUGIN = "libsysdock_itrace_plugin.so"
INIT = "itrace-guest-init"


def find_plugin() -> Path:
    """The plugin: in $SYSDOCK_ITRACE, this environment, or the checkout. UserError: it is missing."""
    return _find(PLUGIN)


def find_init() -> Path:
    """The guest's first process, in the same places. UserError: it is missing."""
    return _find(INIT)


def _find(name: str) -> Path:
    folders = [Path(sys.prefix) / "lib" / "sysdock"]
    if stated := os.environ.get("SYSDOCK_ITRACE"):
        folders.insert(0, Path(stated))
    built = Path(sysdock.__file__).resolve().parents[2] / "target"
    folders += [built / "release", built / "tests"]
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    hint = "reinstall sysdock, run `make setup` in a checkout, or set SYSDOCK_ITRACE to its folder"
    raise UserError(f"{name} was not found", hint)
