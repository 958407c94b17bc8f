"""Places that a user names, against what the program knows of itself."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from recorders import recorder_or_skip
from scenes import PROBED_CALLS

Query = Callable[[Path, str], list[tuple]]
NUMBERS = range(PROBED_CALLS)
DEPTHS = [1 - number % 2 for number in NUMBERS]


@pytest.fixture
def rec(scene: Callable[[str], Path]) -> Path:
    return scene("probes") / "rec"


@pytest.fixture
def said(scene: Callable[[str], Path]) -> list[list[int]]:
    """Number, result, beginning and end of each request."""
    lines = (scene("probes") / "said").read_text().splitlines()
    return [[int(word) for word in line.split()[1:]] for line in lines]


def args(rows: list[tuple]) -> list[dict]:
    return [json.loads(row[0]) for row in rows]


def test_each_call_has_its_arguments_and_results(rec: Path, query: Query, said: list[list[int]]) -> None:
    entries = args(
        query(rec, "SELECT args FROM probe_events WHERE probe = 'serve' AND kind = 'entry' ORDER BY ts_ns")
    )
    # It calls itself with one less.
    expected = [(number, depth) for number in NUMBERS for depth in range(DEPTHS[number], -1, -1)]
    assert [(each["number"], each["depth"]) for each in entries] == expected
    assert {each["name"] for each in entries} == {f'request "{number}"' for number in NUMBERS}
    done = args(query(rec, "SELECT args FROM probe_events WHERE kind = 'usdt' ORDER BY ts_ns"))
    assert [(each["number"], each["result"]) for each in done] == [(row[0], row[1]) for row in said]
    assert [each["name"] for each in done] == [f'request "{number}"' for number in NUMBERS]


def test_requests_lie_where_the_program_saw_them(rec: Path, query: Query, said: list[list[int]]) -> None:
    rows = query(
        rec,
        "SELECT args, end_args, ts_ns, ts_ns + dur_ns FROM probe_requests WHERE request = 'serve' ORDER BY ts_ns",
    )
    assert len(rows) == PROBED_CALLS
    for (begin, end, from_ns, until_ns), (number, result, saw_from_ns, saw_until_ns) in zip(
        rows, said, strict=True
    ):
        assert json.loads(begin)["number"] == number
        assert json.loads(end)["result"] == result
        # The recorder's clock is set by the other one each second.
        assert saw_from_ns - 1_000_000 <= from_ns <= until_ns <= saw_until_ns + 1_000_000
        if number % 50 == 49:
            assert until_ns - from_ns >= 20_000_000


def test_requests_are_matched_by_id_across_threads(rec: Path, query: Query) -> None:
    rows = query(rec, "SELECT args, end_args FROM probe_requests WHERE request = 'take' ORDER BY ts_ns")
    expected = [{"id": number} for number in NUMBERS if number % 10 == 0]
    assert args(rows) == expected
    assert args([row[1:] for row in rows]) == expected
    threads = query(
        rec,
        "SELECT probe, count(DISTINCT task_id) FROM probe_events WHERE probe IN ('take', 'give') GROUP BY 1",
    )
    assert sorted(threads) == [("give", 1), ("take", 1)]


def test_a_probe_knows_the_place_in_the_program(rec: Path, query: Query) -> None:
    rows = query(
        rec,
        "SELECT e.args, list(s.function ORDER BY s.frame) FROM probe_events AS e JOIN stacks AS s USING (stack_id) "
        "WHERE e.probe = 'usleep' GROUP BY e.ts_ns, e.args",
    )
    assert len(rows) == PROBED_CALLS // 50
    for microseconds, functions in rows:
        assert json.loads(microseconds) == {"microseconds": 20_000}
        assert functions[:2] == ["usleep", "serve"]


@pytest.mark.parametrize(
    ("probe", "reason"),
    [
        ("u:sh", "write u:PATH:FUNCTION"),
        ("u:sh:no_such_function", "has no function no_such_function"),
        ("usdt:sh:no:probe", "has no probe no:probe"),
        ("u:no-such-program:main", "no program in PATH"),
        ("t:no:event", "tracepoint"),
    ],
)
def test_what_cannot_be_recorded_is_said(native: Path, tmp_path: Path, probe: str, reason: str) -> None:
    recorder_or_skip(native, "kernel")
    done = subprocess.run(
        [native, "record", "-o", tmp_path / "rec", "--probe", probe, "--", "true"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert reason in done.stderr
    assert not (tmp_path / "rec").exists()
