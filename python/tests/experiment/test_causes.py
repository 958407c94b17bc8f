"""Causes are ranked by the time they explain, tested exactly, and add up with the remainder."""

import random

import pytest
from sysdock.experiment.causes import Cause, causes
from sysdock.experiment.verdicts import benjamini_hochberg

Items = dict[tuple[str, str], float]
BLOCKS = 12


def pairs_of(
    changed: Items, noise: float = 0.01, blocks: int = BLOCKS, seed: int = 1
) -> list[tuple[Items, Items]]:
    """Runs of a program with two functions and a call, in which `changed` is added to the scenario."""
    drawn = random.Random(seed)
    usual: Items = {
        ("function", "parse"): 6e8,
        ("function", "print"): 3e8,
        ("stack", "main"): 9e8,
        ("call", "write"): 1e8,
        ("wait", "disk, in write"): 6e7,
        ("calls", "write"): 50,
    }

    def run(more: Items) -> Items:
        items = {key: usual.get(key, 0) + more.get(key, 0) for key in {**usual, **more}}
        items = {k: v if k[0] == "calls" else v * drawn.gauss(1, noise) for k, v in items.items()}
        partition = ("function", "call", "fault", "kernel")
        items["total", "elapsed"] = sum(value for (kind, _), value in items.items() if kind in partition)
        return items

    return [(run({}), run(changed)) for _ in range(blocks)]


def named(pairs: list[tuple[Items, Items]]) -> list[tuple[str, str]]:
    return [(each.kind, each.name) for each in causes(pairs)]


def test_a_slower_function_comes_first_and_explains_the_difference() -> None:
    found = causes(pairs_of({("function", "parse"): 1e8, ("stack", "main"): 1e8}))
    assert [(each.kind, each.name) for each in found] == [
        ("function", "parse"), ("stack", "main"), ("remainder", "all else"),
    ]  # fmt: skip
    assert found[0].share == pytest.approx(1, abs=0.1)
    assert found[0].difference_per_unit == pytest.approx(1e8, rel=0.1)
    assert (found[0].unit, found[0].blocks, found[0].rank) == ("ns", BLOCKS, 1)


def test_a_wait_that_is_most_of_a_call_comes_before_it_and_counts_follow() -> None:
    more = {("call", "fsync"): 8e7, ("wait", "disk, in fsync"): 7e7, ("calls", "fsync"): 5}
    found = named(pairs_of(more))
    assert found[:3] == [("wait", "disk, in fsync"), ("call", "fsync"), ("calls", "fsync")]


def test_a_small_part_of_a_call_comes_after_it() -> None:
    found = named(pairs_of({("call", "fsync"): 8e7, ("wait", "disk, in fsync"): 2e7}))
    assert found[:2] == [("call", "fsync"), ("wait", "disk, in fsync")]


def test_waiting_for_a_cpu_comes_after_what_the_thread_slept_for() -> None:
    more = {("call", "read"): 5e7, ("wait", "disk, in read"): 4.5e7, ("wait", "for a CPU, in read"): 9e7}
    found = named(pairs_of(more))
    assert found[:3] == [("wait", "disk, in read"), ("call", "read"), ("wait", "for a CPU, in read")]


def test_functions_come_after_calls_whose_number_differs() -> None:
    more = {("function", "parse"): 6e7, ("call", "getppid"): 5e7, ("calls", "getppid"): 1000}
    assert named(pairs_of(more))[:3] == [("call", "getppid"), ("calls", "getppid"), ("function", "parse")]


def test_shares_of_what_does_not_overlap_add_up_with_the_remainder() -> None:
    found = causes(
        pairs_of({("function", "parse"): 5e7, ("call", "fsync"): 5e7, ("wait", "disk, in fsync"): 4e7})
    )
    apart = [each for each in found if each.kind in ("function", "call", "remainder")]
    assert sum(each.share or 0 for each in apart) == pytest.approx(1, abs=0.02)


def test_a_count_alone_is_named_although_no_time_differs() -> None:
    found = causes(pairs_of({("calls", "write"): 1}, noise=0.2))
    assert (found[0].kind, found[0].name, found[0].difference_per_unit) == ("calls", "write", 1)
    assert found[0].share is None


def test_nothing_is_named_where_nothing_differs() -> None:
    """At most 1 % of 300 such comparisons may name a cause."""
    wrong = sum(len(causes(pairs_of({}, noise=0.05, seed=seed))) > 1 for seed in range(300))
    assert wrong <= 3


def test_few_blocks_name_nothing() -> None:
    found = causes(pairs_of({("function", "parse"): 3e8}, blocks=5))
    assert [each.kind for each in found] == ["remainder"]


def test_without_explain_runs_there_are_no_rows() -> None:
    assert causes([]) == []


def test_an_item_that_only_one_run_has_counts_as_zero_in_the_others() -> None:
    pairs = [({("total", "elapsed"): 1.0}, {("total", "elapsed"): 1.0, ("calls", "fsync"): 1.0})] * BLOCKS
    first: Cause = causes(pairs)[0]
    assert (first.name, first.difference_per_unit) == ("fsync", 1)


def test_benjamini_hochberg_against_its_definition() -> None:
    p_values = dict(enumerate([0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205]))
    adjusted = benjamini_hochberg(p_values)
    ordered = sorted(p_values.values())
    for key, p in p_values.items():
        place = ordered.index(p)
        wanted = min(q * len(ordered) / (n + 1) for n, q in enumerate(ordered) if n >= place)
        assert adjusted[key] == pytest.approx(min(1, wanted))
