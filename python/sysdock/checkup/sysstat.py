"""Reads load of disks from sysstat: JSON of `sadf -j`, text of `sar -d`, `sar -b` and `sar -A`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sysdock.checkup.text_file import read_text
from sysdock.errors import UserError

_HINT = (
    "give the output of `sadf -j FILE -- -d -b`, `sar -d -f FILE`, `sar -b -f FILE` or `sar -A -f FILE`, "
    "with LC_ALL=C"
)
# Blocks of `sar -b` are sectors.
_SECTOR = 512
_KIB = 1024
# Greatest plausible value of bytes per second, milliseconds and percent.
_MOST = 1e12


@dataclass(frozen=True)
class Sample:
    """One device (or all together, device None) during one interval; `at` is its end, where known (UTC)."""

    device: str | None
    read_bytes_s: float
    written_bytes_s: float
    await_ms: float | None = None
    busy: float | None = None
    at: float | None = None

    def __post_init__(self) -> None:
        """ValueError: one of the numbers is none, or no disk has it; TypeError: the name is no text."""
        numbers = (self.read_bytes_s, self.written_bytes_s, self.await_ms or 0, self.busy or 0)
        if not all(abs(number) < _MOST for number in numbers):
            raise ValueError("not a number")
        if self.device is not None:
            # JSON can escape halves of characters.
            str.encode(self.device)


def read_sysstat(path: Path) -> list[Sample]:
    """All samples of the file."""
    text = read_text(path, "text or JSON of sysstat")
    samples = _json(text, path) if text.lstrip().startswith("{") else _text(text, path)
    if not samples:
        raise UserError("no samples of disks in it", _HINT, str(path))
    return samples


def _json(text: str, path: Path) -> list[Sample]:
    try:
        content = json.loads(text)
        found = []
        for host in content["sysstat"]["hosts"]:
            for entry in host["statistics"]:
                found += _of_interval(entry)
    except json.JSONDecodeError as error:
        raise UserError(f"not JSON: {error.msg}", _HINT, f"{path}:{error.lineno}") from None
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError, RecursionError):
        raise UserError("not JSON of `sadf -j`", _HINT, str(path)) from None
    return found


def _of_interval(entry: dict[str, Any]) -> list[Sample]:
    stamp = entry.get("timestamp", {})
    at = None
    if stamp.get("utc"):
        at = datetime.fromisoformat(f"{stamp['date']}T{stamp['time']}").replace(tzinfo=UTC).timestamp()
    found = [
        Sample(
            disk["disk-device"],
            float(disk["rkB"]) * _KIB,
            float(disk["wkB"]) * _KIB,
            float(disk["await"]),
            # Before sysstat 12 it was %util here too.
            float(disk.get("util-percent", disk.get("%util"))),
            at,
        )
        for disk in entry.get("disk", [])
    ]
    if "io" in entry:
        rates = (entry["io"]["io-reads"]["bread"], entry["io"]["io-writes"]["bwrtn"])
        read, written = (float(rate) * _SECTOR for rate in rates)
        found.append(Sample(None, read, written, at=at))
    return found


def _text(text: str, path: Path) -> list[Sample]:
    """Lines of the last heading; lines of averages, and the times of day without a date, are left out."""
    found: list[Sample] = []
    names: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        # 03:12:05 PM where the locale has it.
        words = re.sub(r"^(\d\d:\d\d:\d\d) [AP]M", r"\1", line).split()
        if not words or line.startswith(("Linux ", "Average:")) or "RESTART" in line:
            continue
        if not re.match(r"\d\d:\d\d:\d\d$", words[0]):
            raise UserError("not a line of `sar -d` or `sar -b`", _HINT, f"{path}:{number}")
        if not any(map(_is_number, words[1:])):
            names = words[1:]
        # `sar -A`, as sa2 writes it daily, has many sections: only these two are about disks.
        elif not names or "tps" in names:
            try:
                row = dict(zip(names, words[1:], strict=True))
                found.append(_sample(row))
            except (KeyError, ValueError):
                raise UserError("not a line of `sar -d` or `sar -b`", _HINT, f"{path}:{number}") from None
    return found


def _is_number(word: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", word) is not None


def _sample(row: dict[str, str]) -> Sample:
    if "DEV" not in row:
        return Sample(None, float(row["bread/s"]) * _SECTOR, float(row["bwrtn/s"]) * _SECTOR)
    # Before version 11.6 (2017) sectors were printed.
    read = float(row["rkB/s"]) * _KIB if "rkB/s" in row else float(row["rd_sec/s"]) * _SECTOR
    written = float(row["wkB/s"]) * _KIB if "wkB/s" in row else float(row["wr_sec/s"]) * _SECTOR
    return Sample(row["DEV"], read, written, float(row["await"]), float(row["%util"]))
