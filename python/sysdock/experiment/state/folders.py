"""Folders that an experiment makes, and removes with what is in them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from sysdock.errors import UserError
from sysdock.experiment.state.journal import Entry, Journal
from sysdock.experiment.state.kind import Difference, cannot
from sysdock.experiment.state.mounts import mounts
from sysdock.own_folder import set_owner


def make(journal: Journal, path: Path, user: int | None = None) -> None:
    """A folder that is not there yet; nobody but its user may enter it. user: None for ourselves."""
    if os.path.lexists(path):
        raise UserError(
            "it is there already", "name another folder for the experiment, or remove it", str(path)
        )
    journal.note({"kind": "folder", "target": str(path)})
    try:
        path.mkdir(mode=0o700)
        if user is not None:
            set_owner(path, user, user)
    except OSError as error:
        raise cannot(str(path), str(path.parent), error) from None


def undo(journal: Journal, entry: Entry) -> list[Difference]:
    """Removes it, unless something is mounted below: that is not in the folder."""
    path = Path(entry["target"])
    inside = [mount.point for mount in mounts() if f"{mount.point}/".startswith(f"{path}/")]
    if inside:
        return [Difference("folder", str(path), "no folder", f"{inside[0]} is mounted in it")]
    if os.path.lexists(path):
        shutil.rmtree(path)
    return []
