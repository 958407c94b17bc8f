"""Compares the answers about a dump with what the guest wrote about itself before it died.

A page of a script states what must hold as SQL in a block `truth`: a SELECT over the tables of the
recording, over `truth_files` (`pid`, `name`, `text`: files of /proc; of no process: 0) and `truth_started`
(`name`, `pid`). Its rows are differences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sysdock.analysis import Session
from sysdock.dump.running import add_results, bound, run_scripts
from sysdock.errors import UserError
from sysdock.library import DumpScript, Library
from sysdock.recording import Recording
from sysdock.recording.native import read_dump_quietly
from sysdock.scratch import scratch_folder

_TRUTH = re.compile(r"^```truth\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"== (\d+) (\w+)$")
_STARTED = re.compile(r"([\w-]+) (\d+) \d+$")
_SHOWN = 5


@dataclass
class Truth:
    """Output of a guest: files of /proc by process and name, and the tasks that it started, by name."""

    files: dict[tuple[int, str], str] = field(default_factory=dict)
    started: dict[str, list[int]] = field(default_factory=dict)


def read_truth(path: Path) -> Truth:
    """Reads the `truth.log` of a folder that tools/make-dump made."""
    truth = Truth()
    place = None
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError as error:
        hint = "give a folder that tools/make-dump made"
        raise UserError(f"cannot be read: {error.strerror}", hint, str(path)) from None
    for line in lines:
        if found := _FILE.match(line):
            place = int(found[1]), found[2]
            truth.files[place] = ""
        elif line == "== end":
            break
        elif place:
            truth.files[place] += line + "\n"
        elif found := _STARTED.match(line):
            truth.started.setdefault(found[1], []).append(int(found[2]))
    return truth


def test_scripts(
    scripts: Sequence[DumpScript], fixture: Path, library: Library
) -> Iterator[tuple[str, list[str]]]:
    """Each question, and how its answer differs from the truth; nothing: it does not.

    One without a `truth` in its page only has to come to its end.
    """
    truth = read_truth(fixture / "truth.log")
    core = fixture / "core"
    parts = list(dict.fromkeys(part for script in scripts for part in script.reads)) or ["log"]
    with scratch_folder() as folder:
        recording = Path(folder) / "rec"
        read_dump_quietly(core, recording, parts)
        results = list(run_scripts(scripts, core, bound(scripts, {}), user_memory=False))
        if results:
            add_results(recording, library, results)
        stopped = {result.script.name: result.stopped for result in results}
        with Session(Recording.open(recording), library) as session:
            _add(session, truth)
            for script in scripts:
                why = stopped.get(script.name)
                yield script.name, [f"stopped: {why}"] if why else _differences(session, script)


def _add(session: Session, truth: Truth) -> None:
    files = [(pid, name, text) for (pid, name), text in truth.files.items()]
    started = [(name, pid) for name, pids in truth.started.items() for pid in pids]
    connection = session.views.connection
    connection.execute("CREATE TEMP TABLE truth_files(pid BIGINT, name VARCHAR, text VARCHAR)")
    connection.execute("CREATE TEMP TABLE truth_started(name VARCHAR, pid BIGINT)")
    for row in files:
        connection.execute("INSERT INTO truth_files VALUES (?, ?, ?)", row)
    for pair in started:
        connection.execute("INSERT INTO truth_started VALUES (?, ?)", pair)


def _differences(session: Session, script: DumpScript) -> list[str]:
    found = []
    for statement in _TRUTH.findall(script.page_path.read_text("utf-8")):
        rows = session.fetch(statement)
        found += [", ".join(map(str, row)) for row in rows[:_SHOWN]]
        found += [f"and {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else []
    return found
