"""Predictions: transactions a second by number of clients, and how long queries take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sysdock.diskio.device import Device
from sysdock.diskio.simulation import Outcome, simulate
from sysdock.diskio.transactions import (
    ACCOUNTS,
    INDEX_BYTES,
    PAGE,
    TABLE_BYTES,
    Checkpoints,
    Settings,
    checkpoints,
    transaction,
    with_images,
)

# CPU time for a row that is read, compared in a sort, fetched by an index, visited by vacuum [s].
_ROW_S, _COMPARE_S, _FETCH_S, _VACUUM_ROW_S = 0.000_000_18, 0.000_000_06, 0.000_01, 0.000_000_2
FETCHES = 1000
# Buffers that vacuum uses (256 KiB).
_RING = 32
# A row of accounts in a file of a sort [B].
_SORTED_ROW = 116
# Files of a sort are written by the kernel from a tenth of memory on; smaller ones are gone before.
_DIRTY_PART = 0.1
# Greatest part of the device that a checkpoint uses: beyond it, the checkpoint is late.
_MOST_BY_CHECKPOINT = 0.8


@dataclass(frozen=True)
class Prediction:
    """The prediction for a number of clients."""

    workload: str
    clients: int
    # Between checkpoints.
    outcome: Outcome
    # With checkpoints and images of pages, over hours; None: it does not write.
    steady_tps: float | None
    checkpoints: Checkpoints | None


@dataclass(frozen=True)
class QueryTime:
    """The duration of a query."""

    query: str
    # With nothing in memory, and with everything [s]; None: what it needs was not measured.
    cold_s: float | None
    warm_s: float
    bytes: int
    requests: int
    limit: str


def predictions(
    device: Device, settings: Settings, workloads: Sequence[str], clients: Sequence[int]
) -> list[Prediction]:
    """A prediction for each workload and number of clients.

    UserError: reads are needed and were not measured.
    """
    return [_predict(device, settings, workload, count) for workload in workloads for count in clients]


def _predict(device: Device, settings: Settings, workload: str, clients: int) -> Prediction:
    of = transaction(workload, settings)
    outcome = simulate(clients, of, device, settings)
    if not of.dirty_pages:
        return Prediction(workload, clients, outcome, None, None)
    steady, some = outcome, checkpoints(outcome.tps, of, settings)
    # Fewer transactions leave fewer pages to write: two rounds are enough.
    for _ in range(2):
        share = min(some.pages * _page_s(device) / some.every_s, _MOST_BY_CHECKPOINT)
        steady = simulate(clients, with_images(of, some.wal_bytes), device, settings, capacity=1 - share)
        some = checkpoints(steady.tps, of, settings)
    return Prediction(workload, clients, outcome, min(steady.tps, outcome.tps), some)


def _page_s(device: Device) -> float:
    """Time of the device per page of a checkpoint: about that of one of many random reads [s]."""
    if device.is_paced:
        # Half a flush is the write, the other half the flush itself; a limit counts both.
        return device.flush.mean / 2
    if device.reads_per_s:
        return 1 / max(device.reads_per_s.values())
    return device.flush.lower(0.05).mean


def queries(device: Device, settings: Settings) -> list[QueryTime]:
    """Queries on the table of accounts: all of it, some by index, sorted, vacuumed."""
    rows = settings.scale * ACCOUNTS
    table, index = settings.scale * TABLE_BYTES, settings.scale * INDEX_BYTES
    scan_cpu = rows * _ROW_S
    scan_io = _ratio(table, device.read_bytes_per_s)
    fetch_cpu = FETCHES * _FETCH_S
    pages = _different(FETCHES, index // PAGE) + _different(FETCHES, table // PAGE)
    fetch_io = pages / device.reads(1) if device.reads_per_s else None
    return [
        _time("scan", table, table // (1 << 17), _most(scan_io, scan_cpu), scan_cpu, device_s=scan_io),
        _time("fetch", pages * PAGE, pages, _sum(fetch_io, fetch_cpu), fetch_cpu, device_s=fetch_io),
        _sort(device, settings, scan_io, scan_cpu),
        _vacuum(device, settings, scan_io),
    ]


def _different(drawn: int, pages: int) -> int:
    """Expected number of different pages among this many random ones."""
    return round(pages * (1 - math.exp(-drawn / pages)))


def _sort(device: Device, settings: Settings, scan_io: float | None, scan_cpu: float) -> QueryTime:
    rows = settings.scale * ACCOUNTS
    sort_cpu = rows * math.log2(max(rows, 2)) * _COMPARE_S
    spilled = rows * _SORTED_ROW
    is_written = spilled > settings.work_mem and spilled > settings.page_cache * _DIRTY_PART
    # The table is read ahead while rows are computed; then they are sorted.
    scan_s = _most(scan_io, scan_cpu)
    cpu = scan_cpu + sort_cpu
    if not is_written:
        return _time("sort", 0, 0, _sum(scan_s, sort_cpu), cpu, device_s=scan_io)
    spill_io = _sum(_ratio(spilled, device.write_bytes_per_s), _ratio(spilled, device.read_bytes_per_s))
    whole = _sum(_sum(scan_s, sort_cpu), spill_io)
    return _time("sort", 2 * spilled, 2 * spilled // (1 << 17), whole, cpu, device_s=_sum(scan_io, spill_io))


def _vacuum(device: Device, settings: Settings, scan_io: float | None) -> QueryTime:
    table, rows = settings.scale * TABLE_BYTES, settings.scale * ACCOUNTS
    pages = table // PAGE
    # Vacuum reads the table twice, with a ring of few buffers; a page that leaves the ring needs its log
    # flushed before. The first change of each page logs the whole page.
    image = _RING * PAGE if settings.full_page_writes else PAGE
    log_io = pages / _RING * (device.flush_s(image) + device.flush_s(PAGE))
    cpu = rows * _VACUUM_ROW_S
    wal = table if settings.full_page_writes else table // 64
    return _time(
        "vacuum", table + wal, pages, _sum(_sum(scan_io, log_io), cpu), cpu + log_io, device_s=log_io
    )


def _time(
    query: str, length: int, requests: int, cold_s: float | None, warm_s: float, *, device_s: float | None
) -> QueryTime:
    """`device_s`: part of the time with cold caches that the device takes, used to state the limit."""
    is_device = device_s is not None and cold_s is not None and device_s > cold_s / 2
    limit = "cpu" if not is_device else "flush" if query == "vacuum" else "reads"
    return QueryTime(query, cold_s, warm_s, length, requests, limit)


def _ratio(length: float, rate: float | None) -> float | None:
    return length / rate if rate else None


def _most(one: float | None, other: float) -> float | None:
    return None if one is None else max(one, other)


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def rotation(flush_s: float) -> tuple[int, float, int] | None:
    """If a flush takes whole rotations of a usual disk: rotations/min, seconds of one, their number."""
    for per_minute in (7200, 5400, 10_000, 15_000):
        one = 60 / per_minute
        for count in (1, 2):
            if abs(flush_s / (one * count) - 1) < 0.05:
                return per_minute, one, count
    return None
