"""Measures the disk for a prediction, and counts what the device has to do for a flush."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sysdock.recording.native import command_line

# Fields of /sys/dev/block/*/stat (Documentation/block/stat.rst).
_WRITES, _WRITTEN_SECTORS, _FLUSHES = 4, 6, 15
_SECTOR = 512
_COUNTING = "700ms"
_PATIENCE_S = 60
# If more than this multiple of the requested bytes was written, others wrote to the device meanwhile.
_MOST = 2.0


@dataclass(frozen=True)
class Requests:
    """Requests of the device for one flush of 8 KiB."""

    writes: float
    flushes: float


def count_requests(directory: Path) -> Requests | None:
    """Requests of a flush, by the counters of the device; None: there are none, or others wrote to it, too.

    Writes to the log for less than a second.
    """
    before = counters(directory)
    if before is None:
        return None
    step = {"item": "log", "length": "8KiB", "size": "1MiB", "prefilled": True, "sync": "fdatasync"}
    command = command_line("load", {**step, "for": _COUNTING, "rows": True}, directory)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
        [row] = [json.loads(line) for line in done.stdout.splitlines()]
    except (ValueError, subprocess.TimeoutExpired):
        return None
    after = counters(directory)
    return None if after is None else per_flush(before, after, row)


def per_flush(before: Sequence[int], after: Sequence[int], row: dict[str, Any]) -> Requests | None:
    """Counter differences per record of a row; None if others wrote at the same time."""
    came = [new - old for old, new in zip(before, after, strict=True)]
    if not row["operations"] or came[_WRITTEN_SECTORS] * _SECTOR > _MOST * row["bytes"] + (2 << 20):
        return None
    return Requests(came[_WRITES] / row["operations"], came[_FLUSHES] / row["operations"])


def counters(directory: Path) -> list[int] | None:
    """The counters of the device that a directory lies on; None where the kernel has none with flushes."""
    number = directory.stat().st_dev
    try:
        text = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat").read_text("utf-8")
    except OSError:
        return None
    fields = [int(word) for word in text.split()]
    return fields if len(fields) > _FLUSHES else None
