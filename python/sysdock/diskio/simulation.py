"""Clients, processors, reads, locks and flushes as events: the resulting transactions per second.

A client computes, reads pages that are in no cache, locks its branch (TPC-B), computes, and waits until its
commit is durable. One flush is in progress at a time. Commits that come meanwhile wait, and the next flush
takes them all: group commit.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from sysdock.diskio.device import Device, Latencies, Sampler, always
from sysdock.diskio.transactions import Settings, Transaction

# Delay of a flush after its request; commits within it take part [s].
_GATHER_S = 0.000_02
_PAGE = 8192
# The kernel's slice of time for limits [s].
_SLICE_S = 0.1
_ROUNDING = 1e-9
_COMMITS = 3000
_SEED = 20261125


@dataclass(frozen=True)
class Outcome:
    """The result of a simulation."""

    tps: float
    commits_per_flush: float
    flushes_per_s: float
    # Part of the time in which a flush was in progress, and in which the processors computed.
    flush_busy: float
    cpu_busy: float
    # Seconds of a transaction: in its processors with waiting for them, its reads, its lock, its flush.
    cpu_s: float
    read_s: float
    lock_s: float
    flush_s: float

    @property
    def limit(self) -> str:
        """The part of a transaction that takes most of its time."""
        parts = {"flush": self.flush_s, "reads": self.read_s, "locks": self.lock_s, "cpu": self.cpu_s}
        return max(parts, key=lambda name: parts[name])


@dataclass
class _Client:
    wal_bytes: float = 0.0
    since: float = 0.0
    reads_left: int = 0
    row: int | None = None
    spent: dict[str, float] = field(
        default_factory=lambda: {"cpu": 0.0, "reads": 0.0, "locks": 0.0, "flush": 0.0}
    )


def simulate(
    clients: int, of: Transaction, device: Device, settings: Settings, *, capacity: float = 1.0
) -> Outcome:
    """Simulates some thousand transactions of this many clients.

    capacity: the part of the device that others leave (a checkpoint). The same arguments give the same.
    """
    return _Run(clients, of, device, settings, capacity).outcome()


class Limit:
    """A limit of requests, as the kernel implements it (block/blk-throttle.c).

    There are so many in a slice of time, and then no one until it ends. What is left of a slice may be used
    in the next one. A flush is two requests; they are counted in flushes.
    """

    def __init__(self, flush_s: float) -> None:
        """`flush_s`: mean time of consecutive flushes [s]."""
        self._per_slice = _SLICE_S / flush_s
        self._start = self._used = 0.0

    def unlimited(self, flush: Latencies) -> Latencies:
        """Without those that waited for the end of a slice: one in each."""
        return flush.lower(1 - 1 / self._per_slice if self._per_slice > 1 else 0.0)

    def charge(self, now: float, count: float) -> None:
        """Requests of others, in flushes."""
        self._trim(now)
        self._used += count

    def wait(self, now: float, count: float) -> float:
        """Waiting time of a request for that many flushes [s]."""
        self._trim(now)
        # A request that begins within a slice may use all of it.
        slices = max(math.floor((now - self._start) / _SLICE_S + _ROUNDING) + 1, 1)
        self._used += count
        while self._used > slices * self._per_slice + _ROUNDING:
            slices += 1
        begins = self._start + (slices - 1) * _SLICE_S
        return max(begins - now, 0.0)

    def _trim(self, now: float) -> None:
        over = math.floor((now - self._start) / _SLICE_S + _ROUNDING) - 1
        if over > 0:
            self._start += over * _SLICE_S
            self._used = max(self._used - over * self._per_slice, 0.0)


class _Run:
    def __init__(
        self, clients: int, of: Transaction, device: Device, settings: Settings, capacity: float
    ) -> None:
        self._of, self._device, self._settings, self._capacity = of, device, settings, capacity
        self._random = random.Random(_SEED)
        self._flush, self._limit = Sampler(device.flush, self._random), None
        if device.is_paced:
            self._limit = Limit(device.flush.mean)
            self._flush = Sampler(self._limit.unlimited(device.flush), self._random)
        self._now, self._events, self._serial = 0.0, [], 0  # type: ignore[var-annotated]
        self._clients = [_Client() for _ in range(clients)]
        self._cores, self._ready = max(settings.cores, 1), deque[tuple[float, Callable[[], None]]]()
        self._reading = 0
        self._owners: dict[int, deque[_Client]] = {}
        self._waiting: list[_Client] = []
        self._flushing = self._log_writer_waits = False
        self._done = self._flushes = self._committed = 0
        self._flush_time = self._cpu_time = 0.0

    def outcome(self) -> Outcome:
        # The beginning is not a steady state, because all clients begin at once.
        wanted, ahead = _COMMITS + 40 * len(self._clients), 10 * len(self._clients)
        for client in self._clients:
            self._begin(client)
        if self._of.commits:
            self._after(self._settings.wal_writer_delay_s, self._log_writer)
        began, flushes, committed, flush_time, cpu_time = 0.0, 0, 0, 0.0, 0.0
        is_warm = False
        while self._done < wanted + ahead:
            self._now, _, action = heapq.heappop(self._events)
            action()
            if not is_warm and self._done >= ahead:
                is_warm = True
                began, flushes, committed = self._now, self._flushes, self._committed
                flush_time, cpu_time = self._flush_time, self._cpu_time
                first = self._done
                for client in self._clients:
                    client.spent = dict.fromkeys(client.spent, 0.0)
        took, count = self._now - began, self._done - first
        spent = {
            name: sum(client.spent[name] for client in self._clients) / count
            for name in ("cpu", "reads", "locks", "flush")
        }
        some = self._flushes - flushes
        return Outcome(
            tps=count / took,
            commits_per_flush=(self._committed - committed) / some if some else 0.0,
            flushes_per_s=some / took,
            flush_busy=min((self._flush_time - flush_time) / took, 1.0),
            cpu_busy=min((self._cpu_time - cpu_time) / took / max(self._settings.cores, 1), 1.0),
            cpu_s=spent["cpu"],
            read_s=spent["reads"],
            lock_s=spent["locks"],
            flush_s=spent["flush"],
        )

    def _after(self, delay: float, action: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self._events, (self._now + delay, self._serial, action))

    def _spend(self, client: _Client, on: str) -> None:
        client.spent[on] += self._now - client.since
        client.since = self._now

    # A transaction: compute, read, lock, compute, flush.

    def _begin(self, client: _Client) -> None:
        client.since = self._now
        whole = int(self._of.reads)
        client.reads_left = whole + (self._random.random() < self._of.reads - whole)
        self._compute(client, 0.5, lambda: self._read(client))

    def _read(self, client: _Client) -> None:
        if not client.reads_left:
            self._lock(client)
            return
        client.reads_left -= 1
        self._reading += 1

        def over() -> None:
            self._reading -= 1
            self._spend(client, "reads")
            self._read(client)

        mean = self._reading / (self._device.reads(self._reading) * self._capacity)
        self._after(mean, over)

    def _lock(self, client: _Client) -> None:
        rows = self._of.locked_rows
        if rows is None:
            self._compute(client, 0.5, lambda: self._commit(client))
            return
        client.row = self._random.randrange(rows)
        queue = self._owners.setdefault(client.row, deque())
        queue.append(client)
        if queue[0] is client:
            self._locked(client)

    def _locked(self, client: _Client) -> None:
        self._spend(client, "locks")
        self._compute(client, 0.5, lambda: self._commit(client))

    def _commit(self, client: _Client) -> None:
        if not self._of.commits:
            self._end(client)
            return
        self._waiting.append(client)
        if not self._flushing:
            self._begin_flush()

    def _end(self, client: _Client) -> None:
        self._done += 1
        if client.row is not None:
            queue = self._owners[client.row]
            queue.popleft()
            client.row = None
            if queue:
                self._locked(queue[0])
        self._begin(client)

    # Processors: first come, first served.

    def _compute(self, client: _Client, part: float, then: Callable[[], None]) -> None:
        # Statements take different times.
        takes = self._of.cpu_s * part * self._random.uniform(0.5, 1.5)

        def over() -> None:
            self._cores += 1
            self._cpu_time += takes
            self._spend(client, "cpu")
            if self._ready:
                next_takes, next_over = self._ready.popleft()
                self._cores -= 1
                self._after(next_takes, next_over)
            then()

        if self._cores:
            self._cores -= 1
            self._after(takes, over)
        else:
            self._ready.append((takes, over))

    # The log.

    def _begin_flush(self) -> None:
        self._flushing = True
        delay = self._settings.commit_delay_s
        # The server counts transactions that are open, except the one that flushes.
        is_worth_it = len(self._clients) - 1 >= self._settings.commit_siblings
        self._after(_GATHER_S + (delay if delay and is_worth_it else 0.0), self._flush_all)

    def _flush_all(self) -> None:
        group, self._waiting = self._waiting, []
        self._flushes += 1
        self._committed += len(group)
        more = max(len(group) * self._of.wal_bytes - _PAGE, 0.0) * self._device.flush_byte_s
        takes = self._flush_takes(more, len(group))

        def over() -> None:
            for client in group:
                self._spend(client, "flush")
            self._flushing = False
            if self._log_writer_waits:
                self._log_writer_waits = False
                self._full_pages()
            elif self._waiting:
                self._begin_flush()
            for client in group:
                self._end(client)

        self._after(takes, over)

    def _flush_takes(self, more: float, commits: int = 0) -> float:
        """Duration of a flush that begins now [s]; `more`: additional time compared to one page [s]."""
        takes = (self._flush.draw() + more) / self._capacity
        if self._limit:
            self._limit.charge(self._now, commits * self._of.evictions / 2 + (1 / self._capacity - 1))
            # A write, and the flush of the device's cache.
            first = self._limit.wait(self._now, 0.5) + takes / 2
            takes = first + self._limit.wait(self._now + first, 0.5) + takes / 2
        self._flush_time += takes
        return takes

    def _log_writer(self) -> None:
        """The WAL writer: now and then it flushes pages that are full; no commit lasts by that alone."""
        self._after(self._settings.wal_writer_delay_s, self._log_writer)
        full = len(self._waiting) * self._of.wal_bytes / _PAGE
        if self._random.random() < full:
            if self._flushing:
                self._log_writer_waits = True
            else:
                self._full_pages()

    def _full_pages(self) -> None:
        self._flushing = True
        self._flushes += 1
        takes = self._flush_takes(0.0)

        def over() -> None:
            self._flushing = False
            if self._waiting:
                self._begin_flush()

        self._after(takes, over)


def ideal(latency_s: float) -> Device:
    """A device whose flushes all take this long [s], without reads."""
    return Device(always(latency_s), 0.0, {}, None, None, None)
