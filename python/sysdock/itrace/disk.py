"""The disk of a guest: an image with ext4, in which nothing is left to chance."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from sysdock.errors import UserError

_UUID = "5d0c0000-0000-4000-8000-000000000001"
# With these options nothing is left for the kernel to initialize after mounting.
_OPTIONS = f"lazy_itable_init=0,lazy_journal_init=0,nodiscard,root_owner=0:0,hash_seed={_UUID}"
# 2026-01-01, as the clock of a guest begins.
_TIME = str(1767225600)


def make_disk(image: Path, files: Path, size_mb: int) -> None:
    """Makes it, with the files of a folder. UserError: there is no mke2fs, or the files need more room."""
    program = shutil.which("mke2fs", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if not program:
        raise UserError("mke2fs: not found; the service has a disk", "apt-get install e2fsprogs")
    files.mkdir(parents=True, exist_ok=True)
    command = [program, "-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-U", _UUID, "-E", _OPTIONS]
    command += ["-d", str(files), str(image), f"{size_mb}M"]
    environment = os.environ | {"E2FSPROGS_FAKE_TIME": _TIME}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        reason = (done.stderr.strip() or f"status {done.returncode}").splitlines()[-1]
        raise UserError(f"mke2fs: {reason}", "a larger `disk_mb` of the service may help", str(image))
