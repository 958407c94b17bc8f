"""The disk as the model sees it: how long a flush takes, how many reads, how fast a transfer is."""

from __future__ import annotations

import bisect
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sysdock.analysis import Session
from sysdock.errors import UserError

BLOCK = 8192
# A flush of many commits.
_LARGE = 65_536
_SECOND_NS = 1_000_000_000
# Statuses of usable rows: a limit of a control group applies to a server in that group, too.
_USABLE = ("measured", "throttled")


@dataclass(frozen=True)
class Latencies:
    """Latencies of operations: classes of (shortest, longest, count) [s], in order."""

    classes: Sequence[tuple[float, float, int]]

    @property
    def mean(self) -> float:
        """The mean [s]."""
        total = sum(count for _, _, count in self.classes)
        return sum((low + high) / 2 * count for low, high, count in self.classes) / total

    def lower(self, part: float) -> Latencies:
        """The shortest of them, that part of all."""
        left, kept = max(part * sum(count for _, _, count in self.classes), 1.0), []
        for low, high, count in self.classes:
            if left < 1:
                break
            kept.append((low, high, min(count, int(left))))
            left -= count
        return Latencies(kept)


class Sampler:
    """Draws latencies."""

    def __init__(self, of: Latencies, generator: random.Random) -> None:
        """Draws from these classes according to their counts."""
        self._values = [(low + high) / 2 for low, high, _ in of.classes]
        self._sums: list[int] = []
        for _, _, count in of.classes:
            self._sums.append(count + (self._sums[-1] if self._sums else 0))
        self._generator = generator

    def draw(self) -> float:
        """One [s]."""
        at = self._generator.random() * self._sums[-1]
        return self._values[min(bisect.bisect_right(self._sums, at), len(self._values) - 1)]


def always(latency_s: float) -> Latencies:
    """A device that always takes the same time [s]."""
    return Latencies([(latency_s, latency_s, 1)])


@dataclass(frozen=True)
class Device:
    """Measurements of a device."""

    # A synced write of one record of 8 KiB.
    flush: Latencies
    # Each further byte of a flush [s].
    flush_byte_s: float
    # Random reads of 8 KiB in a second, by how many processes read at a time; empty: not measured.
    reads_per_s: dict[int, float]
    # Bytes in a second of a long read, and of a long write made to last; None: not measured.
    read_bytes_per_s: float | None
    write_bytes_per_s: float | None
    # Bytes that the device wrote for one record of 8 KiB; None: not known.
    bytes_per_flush: float | None
    # A limit on requests makes flushes slow, not the device: time between them is not lost.
    is_paced: bool = False
    # Notes of the rows on what limits the device.
    notes: tuple[str, ...] = ()

    def flush_s(self, length: float) -> float:
        """Mean time of a flush of this length [s]."""
        return self.flush.mean + max(length - BLOCK, 0) * self.flush_byte_s

    def reads(self, at_a_time: int) -> float:
        """Random reads per second with this many at a time, interpolated between measurements."""
        known = sorted(self.reads_per_s)
        at = bisect.bisect_left(known, at_a_time)
        if not known:
            hint = "the database is larger than memory: measure without --no-reads, or give --page-cache"
            raise UserError("random reads of 8 KiB were not measured", hint)
        if at == len(known):
            return self.reads_per_s[known[-1]]
        if known[at] == at_a_time or at == 0:
            # Fewer than were ever measured: as many in proportion.
            return self.reads_per_s[known[at]] * min(at_a_time / known[at], 1.0)
        low, high = known[at - 1], known[at]
        part = (at_a_time - low) / (high - low)
        return self.reads_per_s[low] + part * (self.reads_per_s[high] - self.reads_per_s[low])


def plan(for_ns: int, most_clients: int, with_reads: bool, read_bytes: int) -> list[dict[str, Any]]:
    """The steps that measure it; each operation ends after `for_ns`.

    `read_bytes`: of the file of random reads.
    """
    steps: list[dict[str, Any]] = [
        {**_log(BLOCK), "size_bytes": 16 << 20, "time_ns": 3 * for_ns},
        {**_log(_LARGE), "size_bytes": 16 << 20, "time_ns": for_ns},
    ]
    if with_reads:
        processes = [count for count in (1, 2, 4, 8, 16, 32, 64) if count <= most_clients]
        steps += [
            {
                "item": "random_read",
                "length_bytes": BLOCK,
                "processes": count,
                "direct": True,
                "layout": "shared",
                "size_bytes": read_bytes,
                "time_ns": for_ns,
            }
            for count in processes
        ]
    direct = {"item": "transfer", "length_bytes": 1 << 20, "direct": True, "size_bytes": read_bytes}
    return [*steps, {**direct, "time_ns": for_ns}]


def _log(length: int) -> dict[str, Any]:
    """The step that writes a log as PostgreSQL does: into existing segments, with fdatasync."""
    return {"item": "log", "length_bytes": length, "prefilled": True, "sync": "fdatasync"}


def read(session: Session) -> Device:
    """The device of a recording of load. UserError: it has no log of 8 KiB that may be believed."""
    rows = session.dicts("SELECT * FROM load_results WHERE engine = 'sysdock' ORDER BY result_id")
    flushes = [row for row in rows if _is_log(row, BLOCK)]
    if not flushes:
        hint = "measure it: sysdock bench diskio DIR -o REC"
        raise UserError("no log of 8 KiB with fdatasync by one process was measured in it", hint)
    small = flushes[-1]
    flush = _latencies(session, small)
    large = [row for row in rows if _is_log(row, _LARGE)]
    more = _latencies(session, large[-1]).mean - flush.mean if large else 0.0
    notes = {row["note"] for row in rows if row["note"] and row["status"] in _USABLE}
    return Device(
        flush=flush,
        flush_byte_s=max(more, 0.0) / (_LARGE - BLOCK),
        reads_per_s={
            row["processes"]: row["operations_per_s"]
            for row in rows
            if row["item"] == "random_read"
            and row["length_bytes"] == BLOCK
            and _usable(row)
            and row["direct"]
        },
        read_bytes_per_s=_transfer(rows, "read"),
        write_bytes_per_s=_transfer(rows, "write"),
        bytes_per_flush=_per_operation(small),
        is_paced=small["status"] == "throttled",
        notes=tuple(sorted(notes)),
    )


def _is_log(row: dict[str, Any], length: int) -> bool:
    wanted = ("log", "fdatasync", length, 1)
    return (row["item"], row["sync"], row["length_bytes"], row["processes"]) == wanted and _usable(row)


def _usable(row: dict[str, Any]) -> bool:
    return row["status"] in _USABLE and bool(row["operations_per_s"])


def _latencies(session: Session, row: dict[str, Any]) -> Latencies:
    found = session.fetch(
        "SELECT low_ns, high_ns, operations FROM load_latencies "
        f"WHERE result_id = {int(row['result_id'])} ORDER BY low_ns"
    )
    classes = [(low / _SECOND_NS, high / _SECOND_NS, count) for low, high, count in found]
    if not classes:
        return always(1 / row["operations_per_s"])
    # A worker's own work between its records is not the device's, so latencies count and not the rate.
    return Latencies(classes)


def _transfer(rows: Sequence[dict[str, Any]], operation: str) -> float | None:
    found = [
        row["bytes_per_s"]
        for row in rows
        if row["item"] == "transfer" and row["operation"] == operation and row["direct"]
        if row["status"] in _USABLE and row["bytes_per_s"]
    ]
    return max(found, default=None)


def _per_operation(row: dict[str, Any]) -> float | None:
    written = row["device_write_bytes"]
    return written / row["operations"] if written and row["operations"] else None
