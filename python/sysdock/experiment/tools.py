"""Other people's programs: where they are, and what they complain of."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from sysdock.errors import UserError

# Programs of file systems lie where only root looks.
_SYSTEM = "/usr/sbin:/sbin:/usr/local/sbin"


def find_tool(name: str) -> str | None:
    """Where a program is; None where it is not."""
    return shutil.which(name, path=_path())


def _path() -> str:
    return f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM}"


def run_tool(*words: str | Path) -> str:
    """Runs a program and returns what it printed; a UserError has what it complained of."""
    # In a group of its own: Ctrl-C is for us, and what was mounted must come down in order.
    done = subprocess.run(
        [*map(str, words)],
        env={**os.environ, "PATH": _path()},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        stdin=subprocess.DEVNULL,
        process_group=0,
    )
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise UserError(said[-1] if said else f"exit status {done.returncode}", place=str(words[0]))
    return done.stdout
