"""Runs the cases of an experiment one after the other, and keeps what was measured whatever ends it."""

from __future__ import annotations

import errno
import os
import platform
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from sysdock import __version__, to_disk
from sysdock.analysis import Session
from sysdock.errors import UserError
from sysdock.experiment.bench import Bench
from sysdock.experiment.definition import missing_tools, problems
from sysdock.experiment.document import NAME, document
from sysdock.experiment.workload import WORKLOADS
from sysdock.library import Experiment, Library, Step
from sysdock.recording import Recording
from sysdock.recording.native import find_native, refuse_existing
from sysdock.recording.writing import add_part, empty_capture, empty_manifest, write_manifest

Say = Callable[[str], None]


def run(
    experiment: Experiment, library: Library, output: Path, *, command: str, keep: bool, say: Say
) -> None:
    """Runs it into the recording `output`, new, with report.md. `keep`: images of the file systems stay.

    `command` is what repeats it, `say` gets a line now and then. Whatever ends it, what was measured is kept.
    UserError before anything is made: no root, a program missing, something wrong in the file.
    """
    _refuse(experiment, library)
    refuse_existing(output)
    to_disk.make_folder(output)
    began = time.time_ns()
    _begin(experiment, library, output, command, began)
    ended = "failed"
    try:
        known: set[tuple[Any, ...]] = set()
        cases = experiment.cases()
        for number, case in enumerate(cases, 1):
            words = ", ".join(f"{name} {value}" for name, value in case.items())
            say(f"case {number} of {len(cases)}: {words}")
            _run_case(experiment, library, output, number, case, known, keep)
        ended = "end of input"
    except KeyboardInterrupt:
        ended = "interrupted"
        raise
    except OSError:
        ended = "write error"
        raise
    finally:
        _end(output, ended, began)
        with Session(Recording.open(output), library) as session:
            to_disk.write(output / NAME, document(experiment, session, command).encode())
        if ended != "end of input":
            say(f"what was measured until then is in {output}, and in {output / NAME}")


def _refuse(experiment: Experiment, library: Library) -> None:
    if wrong := problems(library, experiment):
        raise UserError(wrong[0], f"sysdock check {experiment.path}", str(experiment.path))
    if os.geteuid() != 0:
        raise UserError("an experiment makes and mounts file systems: it needs root", "run it with sudo")
    if missing := missing_tools(experiment):
        hint = (
            "on Debian: apt-get install e2fsprogs xfsprogs btrfs-progs mount; or leave cases out with --set"
        )
        raise UserError(f"programs are missing: {', '.join(missing)}", hint)
    find_native()


def _begin(experiment: Experiment, library: Library, output: Path, command: str, began: int) -> None:
    capture = empty_capture("experiment", "measurements", "experiment")
    manifest = {
        **empty_manifest({}, {**capture, "complete": False, "ended_by": "running"}),
        "tool": {"name": "sysdock", "version": __version__},
        "command": command,
        "host": platform.node(),
        "started_ns": began,
        "complete": False,
    }
    write_manifest(output, manifest)
    rows = [
        (number, name, str(value))
        for number, case in enumerate(experiment.cases(), 1)
        for name, value in {"experiment": experiment.id, **case}.items()
    ]
    add_part(output, library, "experiment_cases", rows)
    add_part(output, library, "experiment_results", [])
    machine = (
        ("host", "name", platform.node()),
        ("kernel", "release", platform.release()),
        ("cpu", "count", str(os.cpu_count())),
        ("memory", "size", f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') >> 20} MiB"),
        ("tool", "sysdock", __version__),
    )
    add_part(output, library, "environment", [(*fact, "recorder") for fact in machine])


def _run_case(
    experiment: Experiment,
    library: Library,
    output: Path,
    number: int,
    case: dict[str, Any],
    known: set[tuple[Any, ...]],
    keep: bool,
) -> None:
    """The steps of a case; what it measured is in the recording afterwards, whatever ended it."""
    scratch = output / f"case-{number:03}"
    scratch.mkdir()
    opened = ExitStack()
    bench = Bench(number, scratch, output / "scans", experiment.rounds, library, opened)
    bench.scans.mkdir(exist_ok=True)
    try:
        with _closed_in_peace(opened):
            for step in experiment.steps:
                with _errors_of(step):
                    workload = WORKLOADS[step.workload]
                    workload.function(bench, **workload.taken({**case, **step.arguments}))
    finally:
        if not keep:
            # Not through a mount that could not be taken down.
            (scratch / "image").unlink(missing_ok=True)
            if not (scratch / "mount").is_mount():
                shutil.rmtree(scratch, ignore_errors=True)
        add_part(output, library, "experiment_results", bench.results)
        new = [fact for fact in dict.fromkeys(bench.facts) if fact not in known]
        known.update(new)
        add_part(output, library, "environment", new)


@contextmanager
def _errors_of(step: Step) -> Iterator[None]:
    """Says in which step a disk was full; an image that finds no room below it is a device with errors."""
    try:
        yield
    except OSError as error:
        hints = {
            errno.ENOSPC: "the file system that was made is full: give it more with --set device_bytes=N, "
            "or take fewer files",
            errno.EIO: "is the disk full that holds the output? the image of the device lies there",
        }
        fact = f"step `{step.workload}`: {(error.strerror or str(error)).lower()}"
        raise UserError(fact, hints.get(error.errno or 0)) from None


@contextmanager
def _closed_in_peace(opened: ExitStack) -> Iterator[None]:
    """A second Ctrl-C does not leave a file system mounted."""
    try:
        yield
    finally:
        handlers = {
            number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            opened.close()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _end(output: Path, ended: str, began: int) -> None:
    manifest = Recording.open(output).manifest
    manifest["duration_ns"] = time.time_ns() - began
    manifest["complete"] = ended == "end of input"
    manifest["captures"][0] |= {"ended_by": ended, "complete": manifest["complete"]}
    write_manifest(output, manifest)
