#!/usr/bin/env python3
"""Stands in for `sysdock-native load --plan=PLAN --output=REC -- DIR`: measures little, and writes the same tables.

`SYSDOCK_STAND_IN` makes it misbehave: fail, hang, or die in the middle.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sysdock.library import Library
from sysdock.recording.writing import add_part, empty_capture, empty_manifest, write_manifest


def main() -> int:
    """As the generator ends: 0 fine, 2 an error."""
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["load"])
    parser.add_argument("--plan", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("directory", type=Path)
    given = parser.parse_args()
    directory, plan, output = given.directory, given.plan, given.output
    behaviour = os.environ.get("SYSDOCK_STAND_IN", "")
    if behaviour == "hang":
        time.sleep(600)
    if behaviour == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if behaviour == "fail":
        print("sysdock-native: no space left on device", file=sys.stderr)
        return 2
    try:
        with tempfile.TemporaryDirectory(prefix=".sysdock-load-", dir=directory) as made:
            steps = json.loads(plan.read_text())["steps"]
            rows = [row for step in steps for row in measure(step, Path(made))]
    except OSError as error:
        print(f"sysdock-native: {directory}: {error.strerror}", file=sys.stderr)
        return 2
    write(output, [(number, *row) for number, row in enumerate(rows, 1)])
    return 0


def measure(step: dict[str, object], folder: Path) -> list[tuple[object, ...]]:
    """Rows of `load_results` without their number."""
    item, seconds = step["item"], float(str(step.get("time_ns", 300_000_000))) / 1e9
    length = int(str(step.get("length_bytes", 4096)))
    if item == "control":
        return [row("control", "compute", None, timed(lambda: sum(range(2000)), seconds))]
    if item == "log":
        handle = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
        block = os.urandom(length)

        def append() -> None:
            os.write(handle, block)
            os.fdatasync(handle)

        return [row("log", "append", length, timed(append, seconds))]
    if item == "random_read":
        size = 4 << 20
        (folder / "data").write_bytes(os.urandom(size))
        handle = os.open(folder / "data", os.O_RDONLY | os.O_DIRECT)
        os.fsync(handle)
        buffer = mmap.mmap(-1, length)
        return [
            row(
                "random_read",
                "read",
                length,
                timed(
                    lambda: os.preadv(handle, [buffer], random.randrange(size // length) * length), seconds
                ),
            )
        ]
    return []


def timed(work: Callable[[], object], seconds: float) -> list[int]:
    """How long each operation took [ns]."""
    found, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.perf_counter_ns()
        work()
        found.append(time.perf_counter_ns() - begun)
    return found


def row(item: str, operation: str, length: int | None, took: list[int]) -> tuple[object, ...]:
    """One row of `load_results` without its number."""
    took.sort()
    total = sum(took)
    rate = len(took) / total * 1e9
    sizes = (None if length is None else rate * length, rate)
    times = (took[len(took) // 2], took[len(took) * 99 // 100], took[-1])
    head = (item, operation, "own", None, length, 1, 1, True, "sysdock", "box")
    return (
        *head,
        (length or 0) * len(took),
        len(took),
        0,
        1,
        total,
        total,
        *sizes,
        1.0,
        None,
        None,
        *times,
        "measured",
        None,
    )


def write(output: Path, rows: list[tuple[object, ...]]) -> None:
    """The recording."""
    output.mkdir()
    write_manifest(output, empty_manifest({}, empty_capture("load", "operations", "load")), lasting=False)
    add_part(output, Library(), "load_results", rows, lasting=False)


if __name__ == "__main__":
    sys.exit(main())
