"""Commands of an experiment: known by a mark in their environment, which the journal has before they start.

No number of a process is noted: that would have to go to the disk while the command runs. A process is found
by its mark, or as one below such a process, and is ended only while number and start time are the same.
"""

from __future__ import annotations

import signal

from sysdock.experiment.state import processes
from sysdock.experiment.state.journal import Entry, Journal
from sysdock.experiment.state.kind import Difference

# Time limits for a run to end in order, and to be gone after SIGKILL [s].
_PATIENCE_S = 10.0


def mark_of(journal: Journal) -> str:
    """A mark in the environment of its commands. Its length is constant, because the environment moves the
    stack of a program.
    """
    return f"{journal.name}-workload"


def note(journal: Journal, name: str) -> int:
    """Notes that commands of a workload may run from now on."""
    return journal.note({"kind": "workload", "target": name, "mark": mark_of(journal)})


def undo(journal: Journal, entry: Entry) -> list[Difference]:
    """Ends what runs, as it ends at Ctrl-C; what is left after that is killed."""
    if not journal.is_of_this_boot:
        return []
    left = processes.marked(entry["mark"])
    for number in (signal.SIGTERM, signal.SIGKILL):
        for each in left:
            each.send(number)
        # A process that ends may have started another one meanwhile.
        left = [*processes.gone(left, _PATIENCE_S), *processes.marked(entry["mark"])]
        if not left:
            return []
    who = ", ".join(dict.fromkeys(processes.named(each.pid) for each in left))
    return [Difference("workload", entry["target"], "ended", f"{who} still runs")]
