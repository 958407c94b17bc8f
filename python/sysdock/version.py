"""Output of `sysdock --version`: version, commit, and the format of recordings."""

from __future__ import annotations

import subprocess
from pathlib import Path

from sysdock import __version__

# The format of recordings that is written and read. Here, as what reads them takes 45 ms to load.
FORMAT_VERSION = 5
# `make dist` writes the commit there, for the wheel.
_NOTED = Path(__file__).parent / "library" / "assets" / "commit"


def version_text() -> str:
    """`sysdock 0.2.0 (commit abcdef123, recording format 5)`; without git and outside a wheel, no commit."""
    commit = _commit()
    made_of = f"commit {commit}, " if commit else ""
    return f"sysdock {__version__} ({made_of}recording format {FORMAT_VERSION})"


def _commit() -> str:
    """The commit of the checkout, else the one that the wheel was made of; empty where neither is known."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / ".git").exists():
        return _NOTED.read_text("ascii").strip() if _NOTED.is_file() else ""
    command = ["git", "-C", str(checkout), "rev-parse", "--short=9", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
