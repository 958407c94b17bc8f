"""Disk operations of a transaction, by settings of the server and size of the database."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

PAGE = 8192
# pgbench: a unit of scale is 100,000 accounts; what table and index take in PostgreSQL 15 [B].
ACCOUNTS = 100_000
TABLE_BYTES = 13_434_880
INDEX_BYTES = 2_252_800
WORKLOADS = ("simple_update", "tpcb", "select")
# pgbench's own words for them.
PGBENCH = {"simple_update": "-N", "tpcb": "-b tpcb-like", "select": "-S"}
# Assumed where nothing is given: server and pgbench together, of a core of some 3 GHz [s].
CPU_S = {"simple_update": 0.0006, "tpcb": 0.0009, "select": 0.0002}
# Log records of a transaction in addition to images of pages [B]: measured with PostgreSQL 15.
_WAL_BYTES = {"simple_update": 320.0, "tpcb": 560.0, "select": 0.0}


@dataclass(frozen=True)
class Settings:
    """The server, the database and the machine. Sizes in bytes, times in seconds."""

    scale: int = 10
    shared_buffers: int = 128 << 20
    page_cache: int = 0
    work_mem: int = 4 << 20
    max_wal_size: int = 1 << 30
    checkpoint_timeout_s: float = 300.0
    completion_target: float = 0.9
    commit_delay_s: float = 0.0
    commit_siblings: int = 5
    wal_writer_delay_s: float = 0.2
    full_page_writes: bool = True
    synchronous_commit: bool = True
    cores: int = 1
    cpu_s: float | None = None
    # Log of a transaction as a real server counted it; None: that of pgbench.
    wal_bytes: float | None = None
    # Size of all databases; None: that of pgbench's scale.
    database_bytes: int | None = None
    # Part of that in indexes.
    index_part: float = INDEX_BYTES / (TABLE_BYTES + INDEX_BYTES)
    # Part of the pages asked for that were not in shared buffers, as a real server counted; None: by size.
    buffer_misses: float | None = None

    @property
    def size(self) -> int:
        """Bytes of what is read and written at random."""
        return self.database_bytes or self.scale * (TABLE_BYTES + INDEX_BYTES)

    @property
    def miss_share(self) -> float:
        """Part of the pages asked for that the device has to read: in neither cache."""
        return max(0.0, 1 - (self.shared_buffers + self.page_cache) / self.size)

    def misses(self, cache: int) -> float:
        """Number of a transaction's pages (a leaf and a page of the table) that are not in a cache of this
        size.

        A leaf has the rows of six pages and is asked for as often as they are together, so leaves stay first.
        """
        index = self.size * self.index_part
        table = self.size - index
        return (max(0.0, 1 - cache / index) if index else 0.0) + max(0.0, 1 - max(cache - index, 0.0) / table)


@dataclass(frozen=True)
class Transaction:
    """The cost of one transaction."""

    workload: str
    cpu_s: float
    # Mean number of pages that the device reads for it, sequentially.
    reads: float
    # Size of its log records, and whether it waits for them.
    wal_bytes: float
    commits: bool
    # Number of rows of which it locks one until its commit is durable (branches of TPC-B); None: it waits
    # for no lock.
    locked_rows: int | None
    # Pages that it leaves to be written by a checkpoint.
    dirty_pages: float
    # Changed pages that have to leave shared buffers for it: the server writes them at once.
    evictions: float


def transaction(workload: str, settings: Settings) -> Transaction:
    """A transaction of pgbench between checkpoints, when the images of most pages are in the log already."""
    writes = workload != "select"
    wal = settings.wal_bytes if settings.wal_bytes is not None and writes else _WAL_BYTES[workload]
    return Transaction(
        workload,
        CPU_S[workload] if settings.cpu_s is None else settings.cpu_s,
        settings.misses(settings.shared_buffers + settings.page_cache),
        wal,
        writes and settings.synchronous_commit,
        settings.scale if workload == "tpcb" else None,
        1.0 if writes else 0.0,
        # Each page that comes drives out one, and nearly all are changed after a while.
        settings.misses(settings.shared_buffers) if writes else 0.0,
    )


@dataclass(frozen=True)
class Checkpoints:
    """Checkpoints at a rate of transactions that continues for hours."""

    every_s: float
    # Pages that each writes, and for how long.
    pages: float
    for_s: float
    # Bytes of log for each transaction, with the images of pages.
    wal_bytes: float


def checkpoints(tps: float, of: Transaction, settings: Settings) -> Checkpoints:
    """Interval of checkpoints, by time or by log, and the pages that they write."""
    pages = settings.size * (1 - settings.index_part) / PAGE
    every, wal, dirty = settings.checkpoint_timeout_s, of.wal_bytes, 0.0
    # Images make the log longer, and a longer log brings checkpoints closer: a few rounds settle it.
    for _ in range(20):
        count = max(tps * every * of.dirty_pages, 1e-9)
        dirty = pages * (1 - math.exp(-count / pages))
        wal = of.wal_bytes + (PAGE * dirty / (tps * every) if settings.full_page_writes and tps else 0.0)
        # It is requested before the log has the allowed size: part of that is from before the checkpoint.
        by_log = settings.max_wal_size / (1 + settings.completion_target) / max(wal * tps, 1e-9)
        every = (every + min(settings.checkpoint_timeout_s, by_log)) / 2
    return Checkpoints(every, dirty, every * settings.completion_target, wal)


def with_images(of: Transaction, wal_bytes: float) -> Transaction:
    """The transaction with this much log."""
    return replace(of, wal_bytes=wal_bytes)
