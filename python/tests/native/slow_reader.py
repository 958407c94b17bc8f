"""An independent reader of strace logs: slow, short, right-anchored where the importer scans forward.

It knows nothing of descriptors or processes; it only counts. It is the oracle for counts, errors, bytes and times per call.
"""

from __future__ import annotations

import gzip
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

PREFIX = re.compile(r"^(?:\[pid +)?(\d+)?\]? *(?:[\d:.]+ )? *(.*)$", re.DOTALL)
WHOLE = re.compile(r"^(\w+)\(.*\)\s+= (\?|-?\d+|0x[0-9a-f]+)(?:<.*?>)?(.*?)(?: <(\d+\.\d+)>)?$", re.DOTALL)
MOVES = "read pread64 readv preadv recvfrom recvmsg write pwrite64 writev pwritev sendto sendmsg sendfile splice copy_file_range"


@dataclass
class Total:
    """Of one call: number, errors, bytes moved, time in ns, and how many had no known result."""

    calls: int = 0
    errors: int = 0
    moved_bytes: int = 0
    time_ns: int = 0


def read(*paths: Path) -> dict[str, Total]:
    """Totals per call of one log, or of all files of a set."""
    totals: dict[str, Total] = defaultdict(Total)
    for path in paths:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="latin-1", newline="\n") as lines:
            _read_lines(lines, totals)
    return dict(totals)


def _read_lines(lines, totals) -> None:
    halves: dict[str | None, str] = {}
    for line in lines:
        thread, text = PREFIX.match(line.rstrip("\n")).groups()
        if text.endswith(" <unfinished ...>"):
            halves[thread] = text.removesuffix("<unfinished ...>")
            continue
        if text.startswith("<... "):
            text = halves.pop(thread) + text.split(" resumed>", 1)[1]
        if text.startswith("+++ superseded by execve in pid "):
            _unfinished(halves.pop(thread, None), totals)
            halves[thread] = halves.pop(text.split()[6])
        elif text.startswith("+++"):
            _unfinished(halves.pop(thread, None), totals)
        else:
            _call(WHOLE.match(text), totals)
    for half in halves.values():
        _unfinished(half, totals)


def _call(match, totals) -> None:
    if not match:
        return
    name, value, rest, seconds = match.groups()
    total = totals[name]
    total.calls += 1
    total.errors += bool(re.match(r" E[A-Z]+", rest)) and value in ("-1", "?")
    if name in MOVES.split() and value.isdigit():
        total.moved_bytes += int(value)
    if seconds:
        whole, fraction = seconds.split(".")
        total.time_ns += int(whole) * 10**9 + int(fraction.ljust(9, "0"))


def _unfinished(half, totals) -> None:
    if half:
        totals[half.split("(")[0]].calls += 1
