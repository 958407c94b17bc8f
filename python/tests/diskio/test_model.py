"""The model on numbers that are given, against what follows from them otherwise."""

from __future__ import annotations

import random

import pytest
from sysdock.diskio.device import Device, Latencies, Sampler
from sysdock.diskio.predicting import predictions, queries, rotation
from sysdock.diskio.simulation import Limit, ideal, simulate
from sysdock.diskio.transactions import (
    INDEX_BYTES,
    TABLE_BYTES,
    Settings,
    Transaction,
    checkpoints,
    transaction,
)

FLUSH_S = 0.01
ALL_IN_MEMORY = Settings(cores=64, cpu_s=0.0001, page_cache=1 << 40, shared_buffers=1 << 40)


def of(
    cpu_s: float = 0.0001, *, reads: float = 0.0, rows: int | None = None, commits: bool = True
) -> Transaction:
    return Transaction("simple_update", cpu_s, reads, 100.0, commits, rows, 1.0, 0.0)


def device(**changed: object) -> Device:
    values = {
        "flush": Latencies([(FLUSH_S, FLUSH_S, 1)]),
        "flush_byte_s": 0.0,
        "reads_per_s": {1: 1000.0, 4: 2000.0},
        "read_bytes_per_s": 1e8,
    }
    return Device(**{**values, "write_bytes_per_s": 5e7, "bytes_per_flush": 8192.0, **changed})  # type: ignore[arg-type]


def slowly(clients: int, think_s: float, flush_s: float, ends_s: float = 60.0) -> float:
    """Group commit in steps of 20 µs, as slowly as can be: transactions a second."""
    step, steps = 0.00002, round(ends_s / 0.00002)
    think, ready_at = round(think_s / step), [round(think_s / step)] * clients
    waiting, group, flush_ends, done = set[int](), set[int](), -1, 0
    for now in range(steps):
        if now == flush_ends:
            done += len(group)
            for client in group:
                ready_at[client] = now + think + client % 3
            group, flush_ends = set(), -1
        waiting |= {client for client in range(clients) if ready_at[client] == now}
        if waiting and flush_ends < 0:
            group, waiting, flush_ends = waiting, set(), now + round(flush_s / step)
    return done / ends_s


@pytest.mark.parametrize("clients", [1, 4, 9])
@pytest.mark.parametrize("think_s", [0.001, 0.004])
def test_group_commit_is_that_of_a_slow_simulation(clients: int, think_s: float) -> None:
    found = simulate(clients, of(think_s), ideal(FLUSH_S), ALL_IN_MEMORY).tps
    assert found == pytest.approx(slowly(clients, think_s, FLUSH_S, 10.0), rel=0.05)


def test_one_client_waits_for_each_flush_alone() -> None:
    found = simulate(1, of(0.005), ideal(FLUSH_S), ALL_IN_MEMORY)
    assert found.tps == pytest.approx(1 / (0.005 + FLUSH_S), rel=0.02)
    assert found.commits_per_flush == 1
    assert found.limit == "flush"


@pytest.mark.parametrize("clients", [2, 8, 64])
def test_half_of_the_clients_commit_while_the_others_wait(clients: int) -> None:
    found = simulate(clients, of(), ideal(FLUSH_S), ALL_IN_MEMORY)
    assert found.tps == pytest.approx(clients / 2 / FLUSH_S, rel=0.03)
    assert found.commits_per_flush == pytest.approx(clients / 2, rel=0.03)


def test_rows_that_are_locked_let_one_commit_at_a_time() -> None:
    found = simulate(8, of(rows=1), ideal(FLUSH_S), ALL_IN_MEMORY)
    assert found.tps == pytest.approx(1 / FLUSH_S, rel=0.03)
    assert found.limit == "locks"


def test_without_commits_the_processors_are_the_limit() -> None:
    found = simulate(8, of(0.001, commits=False), ideal(FLUSH_S), Settings(cores=2))
    assert found.tps == pytest.approx(2000, rel=0.03)
    assert found.limit == "cpu"
    assert found.cpu_busy == pytest.approx(1.0, rel=0.01)
    assert found.commits_per_flush == 0


@pytest.mark.parametrize(("clients", "rate"), [(1, 1000), (2, 1333), (4, 2000), (16, 2000)])
def test_reads_are_as_many_as_were_measured(clients: int, rate: float) -> None:
    assert device().reads(clients) == pytest.approx(rate, rel=0.01)
    found = simulate(clients, of(1e-7, reads=1.0, commits=False), device(), ALL_IN_MEMORY)
    assert found.tps == pytest.approx(rate, rel=0.05)
    assert found.limit == "reads"


def test_reads_that_were_not_measured_are_an_error() -> None:
    with pytest.raises(Exception, match="random reads of 8 KiB were not measured"):
        simulate(1, of(reads=1.0), device(reads_per_s={}), ALL_IN_MEMORY)


@pytest.mark.parametrize("think_s", [0.0, 0.0005, 0.005])
def test_a_limit_on_requests_counts_the_time_between_flushes(think_s: float) -> None:
    """50 flushes a second, five in a slice of 100 ms: as quick as the device, then none until the slice ends."""
    slow = device(flush=Latencies([(0.0002, 0.0002, 80), (0.0992, 0.0992, 20)]), is_paced=True)
    assert slow.flush.mean == pytest.approx(0.02)
    found = simulate(1, of(think_s or 1e-6), slow, ALL_IN_MEMORY)
    assert found.tps == pytest.approx(50, rel=0.02)


def test_a_limit_lets_no_more_through_than_it_says() -> None:
    limit, generator, now, count = Limit(0.02), random.Random(3), 0.0, 0
    while now < 100:
        now += limit.wait(now, 0.5) + generator.expovariate(1000)
        count += 1
    # Two requests each; the first two slices may be used at once.
    assert count / 2 <= (now + 0.2) / 0.02
    assert count / 2 == pytest.approx(now / 0.02, rel=0.02)


def test_pages_that_leave_shared_buffers_take_requests_of_the_limit() -> None:
    slow = device(flush=Latencies([(0.0002, 0.0002, 80), (0.0992, 0.0992, 20)]), is_paced=True)
    one = Transaction("simple_update", 0.0005, 0.0, 100.0, True, None, 1.0, 0.5)
    # 100 requests a second; a transaction takes two and a half.
    assert simulate(1, one, slow, ALL_IN_MEMORY).tps == pytest.approx(40, rel=0.03)


def test_draws_have_the_mean_of_the_classes() -> None:
    latencies = Latencies([(0.001, 0.001, 90), (0.05, 0.07, 10)])
    assert latencies.mean == pytest.approx(0.9 * 0.001 + 0.1 * 0.06)
    sampler = Sampler(latencies, random.Random(1))
    assert sum(sampler.draw() for _ in range(20_000)) / 20_000 == pytest.approx(latencies.mean, rel=0.05)
    assert latencies.lower(0.9).classes == [(0.001, 0.001, 90)]
    assert latencies.lower(0.95).classes == [(0.001, 0.001, 90), (0.05, 0.07, 5)]


def test_commit_delay_makes_groups_larger_and_one_client_no_slower() -> None:
    slow = Settings(cores=64, commit_delay_s=0.01, commit_siblings=5)
    without = Settings(cores=64)
    assert simulate(1, of(), ideal(FLUSH_S), slow).tps == simulate(1, of(), ideal(FLUSH_S), without).tps
    more = simulate(16, of(), ideal(FLUSH_S), slow).commits_per_flush
    assert more > simulate(16, of(), ideal(FLUSH_S), without).commits_per_flush * 1.5


def test_what_is_in_no_cache_is_read() -> None:
    size = 100 * (TABLE_BYTES + INDEX_BYTES)
    half = Settings(scale=100, shared_buffers=size // 4, page_cache=size // 4)
    assert half.miss_share == pytest.approx(0.5, abs=1e-6)
    # All leaves of the index are in memory, and with the rest of it a part of the table.
    in_memory = (size / 2 - 100 * INDEX_BYTES) / (100 * TABLE_BYTES)
    assert transaction("select", half).reads == pytest.approx(1 - in_memory, abs=1e-6)
    assert half.misses(0) == 2
    assert half.misses(50 * INDEX_BYTES) == pytest.approx(1.5)
    assert half.misses(size) == 0
    assert transaction("select", half).evictions == 0
    assert transaction("tpcb", half).locked_rows == 100
    assert not transaction("simple_update", Settings(synchronous_commit=False)).commits


def test_checkpoints_come_by_time_or_by_log() -> None:
    settings = Settings(scale=100)
    seldom = checkpoints(10, transaction("simple_update", settings), settings)
    assert seldom.every_s == pytest.approx(300, rel=0.01)
    # 3,000 transactions on 164,000 pages: nearly each its own page, and its image.
    assert seldom.pages == pytest.approx(3000, rel=0.02)
    assert seldom.wal_bytes == pytest.approx(320 + 8192 * seldom.pages / 3000, rel=0.02)
    often = checkpoints(10_000, transaction("simple_update", settings), settings)
    assert often.every_s < 120
    assert often.every_s * 10_000 * often.wal_bytes == pytest.approx(settings.max_wal_size / 1.9, rel=0.05)


def test_checkpoints_make_it_slower() -> None:
    settings = Settings(scale=100, cores=4, page_cache=1 << 40)
    [found] = predictions(device(), settings, ["simple_update"], [8])
    assert found.steady_tps is not None
    assert found.steady_tps < found.outcome.tps
    [reads] = predictions(device(), settings, ["select"], [8])
    assert (reads.steady_tps, reads.checkpoints) == (None, None)


def test_queries_take_what_their_bytes_take() -> None:
    settings = Settings(scale=100)
    found = {each.query: each for each in queries(device(), settings)}
    assert found["scan"].cold_s == pytest.approx(100 * TABLE_BYTES / 1e8)
    # 1,000 leaves and 1,000 pages of the table, few of them twice, sequentially, at 1,000 a second.
    assert found["fetch"].cold_s == pytest.approx(2.0, rel=0.02)
    # Twice over the table, with a flush for each 32 pages.
    assert (found["vacuum"].warm_s, found["vacuum"].limit) == (
        pytest.approx(2 * 164_000 / 32 * FLUSH_S, rel=0.03),
        "flush",
    )
    in_memory = {each.query: each for each in queries(device(), Settings(scale=100, page_cache=1 << 40))}
    assert in_memory["sort"].bytes == 0
    assert (found["sort"].cold_s or 0) > (in_memory["sort"].cold_s or 0) > 0
    assert all(each.warm_s < (each.cold_s or 0) for each in found.values())
    nothing = {each.query: each for each in queries(device(reads_per_s={}, read_bytes_per_s=None), settings)}
    assert [nothing[name].cold_s for name in ("scan", "fetch", "sort", "vacuum")] == [None] * 4


@pytest.mark.parametrize(
    ("flush_s", "expected"), [(0.0083, (7200, 1)), (0.0111, (5400, 1)), (0.0167, (7200, 2)), (0.0025, None)]
)
def test_rotations_are_known(flush_s: float, expected: tuple[int, int] | None) -> None:
    found = rotation(flush_s)
    assert (found and (found[0], found[2])) == expected
