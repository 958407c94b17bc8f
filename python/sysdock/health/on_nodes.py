"""The recording of a load that several hosts made."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sysdock.errors import interruptions
from sysdock.health import nodes
from sysdock.library import Library, LoadPlan
from sysdock.own_folder import OwnFolder, create, refuse_existing
from sysdock.recording.writing import add_part, empty_capture, empty_manifest, write_manifest
from sysdock.sentences import facts_of, json_of


def record(
    output: Path,
    names: Sequence[str],
    launch: str,
    native: str,
    directory: Path,
    plan: LoadPlan,
    command: str,
    say: Callable[[str], None],
    *,
    share: bool = False,
) -> int:
    """Does the steps of `plan` on all hosts, into the new recording `output`; what is done by then is kept.

    say: gets a line before each step. share: others may read it. Returns how many steps were not begun, as
    the time was up; their rows say so. UserError: a host fails, or is not reached (and nothing is made).
    """
    steps = nodes.with_one_host(plan.steps) if plan.one_host and len(names) > 1 else list(plan.steps)
    refuse_existing(output)
    library = Library()
    began = time.monotonic()
    done = left_out = 0
    # The folder of the recording, once all hosts have been reached.
    made: list[OwnFolder] = []
    manifest = _manifest(command, names)

    def is_due(number: int, step: dict[str, Any]) -> bool:
        nonlocal left_out
        if plan.within_s is not None and time.monotonic() - began > plan.within_s:
            left_out += 1
            return False
        say(f"{number + 1} of {len(steps)}: {step['item']}, {step.get('processes', 1)} processes")
        return True

    def keep(rows: list[dict[str, Any]]) -> None:
        nonlocal done
        _add(made[0].reach, library, rows, done + 1)
        done += len(rows)

    def begin(started: Sequence[nodes.Node]) -> None:
        nonlocal began
        made.append(create(output, 0o755 if share else 0o700))
        _make(made[0].reach, library, manifest)
        add_part(made[0].reach, library, "environment", facts(started))
        began = time.monotonic()

    ended = "failed"
    try:
        with interruptions():
            nodes.run(names, launch, native, directory, steps, is_due, keep, begin)
        ended = "end of input"
    except KeyboardInterrupt:
        ended = "interrupted"
        raise
    finally:
        for folder in made:
            if (folder.reach / "recording.json").exists():
                _end(folder.reach, ended, done)
            folder.close()
    return left_out


def _manifest(command: str, names: Sequence[str]) -> dict[str, Any]:
    capture = empty_capture("load", "results", "load")
    return {
        **empty_manifest({}, {**capture, "complete": False, "ended_by": "running"}),
        "command": command,
        "host": ",".join(names),
        "started_ns": time.time_ns(),
        "complete": False,
    }


def _make(output: Path, library: Library, manifest: dict[str, Any]) -> None:
    """The recording, with tables that are empty."""
    write_manifest(output, manifest)
    for table in ("load_results", "load_intervals", "load_latencies", "environment"):
        add_part(output, library, table, [])


def facts(started: Sequence[nodes.Node]) -> list[tuple[Any, ...]]:
    """Rows of `environment`: with several hosts, each fact names its host."""
    rows: list[tuple[Any, ...]] = []
    for node in started:
        clock = f"{node.clock.ahead_ns / 1e6:+.3f} ms, to within {node.clock.unsure_ns / 1e6:.3f} ms"
        rows.append(("host", f"clock of {node.name}", clock, "recorder"))
        whose = f" of {node.name}" if len(started) > 1 else ""
        for name, value in node.facts:
            source = "recorder" if value is not None else "unknown"
            rows.append(("file system", f"{name}{whose}", value, source))
    return rows


def _add(output: Path, library: Library, rows: list[dict[str, Any]], first_id: int) -> None:
    numbered = list(enumerate(rows, first_id))
    columns = [column.name for column in library.table("load_results").columns]
    stated = [{**row, "result_id": id_, "note": json_of(facts_of(row["note"]))} for id_, row in numbered]
    results = [[row[column] for column in columns] for row in stated]
    add_part(output, library, "load_results", results)
    intervals = [[id_, *part] for id_, row in numbered for part in row["progress"]]
    add_part(output, library, "load_intervals", intervals)
    latencies = [[id_, *each] for id_, row in numbered for each in row["latencies"]]
    add_part(output, library, "load_latencies", latencies)


def _end(output: Path, ended: str, done: int) -> None:
    from sysdock.recording import Recording

    manifest = Recording.open(output).manifest
    complete = ended == "end of input"
    capture = manifest["captures"][0]
    capture.update(total=done, understood=done, complete=complete, ended_by=ended)
    manifest.update(complete=complete, duration_ns=time.time_ns() - manifest["started_ns"])
    write_manifest(output, manifest)
