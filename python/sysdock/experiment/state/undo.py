"""Undoes lines of a journal, of any process: one table states how each kind of line is undone."""

from __future__ import annotations

from sysdock.errors import UserError
from sysdock.experiment.state import file_systems, files, folders, groups, mounts, servers, values, workloads
from sysdock.experiment.state.journal import Entry, Journal
from sysdock.experiment.state.kind import Difference, Undo
from sysdock.recording.signals import held_back

UNDO: dict[str, Undo] = {
    "value": values.undo,
    "file": files.undo,
    "mount.options": mounts.undo_options,
    "cgroup": groups.undo_value,
    "group": groups.undo_group,
    "controller": groups.undo_controller,
    "folder": folders.undo,
    "device": file_systems.undo_device,
    "mount": mounts.undo_mount,
    "server": servers.undo,
    "workload": workloads.undo,
}


def undo_one(journal: Journal, number: int, entry: Entry) -> list[Difference]:
    """Undoes one change and notes it; what differs afterwards, and then the journal keeps the line."""
    with held_back():
        try:
            found = [] if _went_with_its_mount(journal, entry) else UNDO[entry["kind"]](journal, entry)
        except KeyError as error:
            found = [_failed(entry, f"the journal lacks {error}")]
        except (OSError, ValueError) as error:
            found = [_failed(entry, str(error))]
        except UserError as error:
            found = [_failed(entry, f"{error.fact} ({error.hint})" if error.hint else error.fact)]
        if not found:
            journal.undone(number)
    return found


def _went_with_its_mount(journal: Journal, entry: Entry) -> bool:
    """After a restart, a file on a file system of the experiment is in its image, which is removed."""
    points = [each["target"] for each in journal.written.open.values() if each["kind"] == "mount"]
    is_inside = any(entry["target"].startswith(f"{point}/") for point in points)
    return entry["kind"] == "file" and is_inside and not journal.is_of_this_boot


def _failed(entry: Entry, why: str) -> Difference:
    target = entry.get("target", "?")
    return Difference(entry.get("of", entry["kind"]), target, entry.get("was", "as before"), why)
