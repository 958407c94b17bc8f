"""Root executes only what root owns, also where scripts of an experiment lie in its folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from sysdock.errors import UserError, refusal
from sysdock.own_folder import OTHERS_WRITE
from sysdock.sentences import fact

_SEEN = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def refuse_strange_scripts(command: Sequence[str], folder: Path) -> None:
    """Raises a UserError where root would run a file below `folder` that somebody else may have written.

    Every word counts: `sh script`. The file and all folders down to it are opened one by one, so that no link
    and no renamed folder leads elsewhere.
    """
    if os.geteuid() != 0:
        return
    for word in command:
        path = Path(word)
        if path.is_absolute() and path.is_relative_to(folder) and path.is_file():
            _refuse(folder, path)


def _refuse(folder: Path, path: Path) -> None:
    handle = os.open(folder, _SEEN | os.O_DIRECTORY)
    try:
        for name in (".", *path.relative_to(folder).parts):
            below = os.open(name, _SEEN, dir_fd=handle)
            os.close(handle)
            handle = below
            if not _is_of_root(os.fstat(handle)):
                raise _strange(path)
    except OSError:
        raise _strange(path) from None
    finally:
        os.close(handle)


def _is_of_root(found: os.stat_result) -> bool:
    is_plain = stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)
    return is_plain and found.st_uid == 0 and not found.st_mode & OTHERS_WRITE


def _strange(path: Path) -> UserError:
    return refusal(fact("recording/scripts_of_others"), fact("recording/look_at_its_owner"), str(path))
