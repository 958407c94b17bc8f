"""A job against its earlier runs and against another job: ratios, and how sure a change is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from make_recording import STARTED_NS, RecordingMaker, job_total
from sysdock.analysis import Session
from sysdock.cli import sysdock
from sysdock.errors import UserError
from sysdock.jobs.comparing import compare_jobs, lines_of
from sysdock.library import Library
from sysdock.recording import Recording

EARLIER = 12


@pytest.fixture
def ask(maker: RecordingMaker, library: Library) -> Callable[..., dict[str, Any]]:
    """`compare_jobs` over a recording with these records, and lists of files."""

    def compare(rows: list[dict[str, Any]], *jobs: str, files: list[dict[str, Any]] = ()) -> dict[str, Any]:
        tables = {"job_totals": rows, **({"job_files": list(files)} if files else {})}
        folder = maker.write(tables, recorder="agent", about="jobs")
        with Session(Recording.open(folder), library) as session:
            return compare_jobs(session, *jobs)

    return compare


def runs() -> list[dict[str, Any]]:
    """Twelve runs that wait for 90 to 101 s, the oldest least."""
    return [job_total(number, wait_s=90 + number) for number in range(EARLIER)]


def test_what_is_far_from_all_earlier_runs_stands_out(ask: Callable[..., dict[str, Any]]) -> None:
    found = ask([*runs(), job_total(20, wait_s=300)], "20")
    waited = found["measures"]["io_wait_ns"]
    assert (waited["value"], waited["reference"]) == (300 * 10**9, 95.5 * 10**9)
    assert waited["ratio"] == pytest.approx(300 / 95.5, abs=1e-4)
    assert (waited["as_far"], waited["of"], waited["chance"]) == (0, EARLIER, round(1 / 13, 4))
    assert found["against"]["jobs"] == [str(number) for number in range(EARLIER)]
    # One of ten numbers, and twelve runs: that may be chance.
    assert waited["is_change"] is False
    read = found["measures"]["bytes"]
    assert (read["ratio"], read["as_far"]) == (1.0, EARLIER)
    assert "waited for files" in "\n".join(lines_of(found))


def test_a_value_like_the_others_does_not(ask: Callable[..., dict[str, Any]]) -> None:
    waited = ask([*runs(), job_total(20, wait_s=97)], "20")["measures"]["io_wait_ns"]
    assert waited["as_far"] >= 8


def test_with_many_runs_a_change_is_sure(ask: Callable[..., dict[str, Any]]) -> None:
    many = [job_total(number, wait_s=90 + number % 12) for number in range(220)]
    measures = ask([*many, job_total(300, wait_s=300)], "300")["measures"]
    changed = {name for name, measure in measures.items() if measure["is_change"]}
    # The time grows from run to run, too, and this one comes long after.
    assert changed == {"io_wait_ns", "wait_per_call_ns", "wall_ns"}


def test_only_whole_earlier_runs_of_this_user_and_name_count(ask: Callable[..., dict[str, Any]]) -> None:
    others = [
        job_total(13, wait_s=1, user="bob"),
        job_total(14, wait_s=1, name="fft"),
        job_total(15, wait_s=1, is_whole=False),
        job_total(30, wait_s=1),
    ]
    assert ask([*runs(), *others, job_total(20, wait_s=97)], "20")["against"]["runs"] == EARLIER


def test_another_job_is_compared_by_the_distances_of_other_pairs(ask: Callable[..., dict[str, Any]]) -> None:
    found = ask([*runs(), job_total(20, wait_s=300), job_total(21, wait_s=100)], "20", "21")
    waited = found["measures"]["io_wait_ns"]
    assert (waited["ratio"], waited["as_far"], waited["of"]) == (3.0, 0, EARLIER // 2)
    assert found["against"] == {"job_id": "21", "runs": EARLIER}


def test_the_first_two_runs_say_nothing_of_how_sure(ask: Callable[..., dict[str, Any]]) -> None:
    found = ask([job_total(1, wait_s=10), job_total(2, wait_s=30)], "2")
    waited = found["measures"]["io_wait_ns"]
    assert (waited["ratio"], waited["of"], waited["chance"], waited["is_change"]) == (3.0, 0, None, None)
    assert "not known" in "\n".join(lines_of(found))


def test_nothing_is_divided_by_zero(ask: Callable[..., dict[str, Any]]) -> None:
    rows = [job_total(number, wait_s=0, errors=0) for number in range(4)]
    found = ask([*rows, job_total(9, wait_s=5, errors=7)], "9")["measures"]
    assert (found["errors"]["ratio"], found["errors"]["as_far"]) == (None, 0)
    assert found["io_wait_ns"]["as_far"] == 0


def test_files_are_averages_of_the_earlier_runs(ask: Callable[..., dict[str, Any]]) -> None:
    def file(job: int, path: str, seconds: int) -> dict[str, Any]:
        sender = {
            "cluster": "c",
            "node": "n1",
            "agent": "0" * 16,
            "sequence": job,
            "user": "alice",
            "name": "cfd",
        }
        counts = {"calls": 1, "read_bytes": 1, "written_bytes": 0, "error_ns": 0, "target": "/scratch"}
        moment = {"ended_ns": STARTED_NS + job, "job_id": str(job), "file_path": path}
        return {**sender, **counts, **moment, "io_time_ns": seconds * 10**9}

    files = [
        file(0, "/scratch/a", 10),
        file(1, "/scratch/a", 20),
        file(20, "/scratch/b", 90),
        file(20, "/scratch/a", 15),
    ]
    found = ask([*runs()[:2], job_total(20, wait_s=90)], "20", files=files)["files"]
    assert found == [
        {"path": "/scratch/b", "io_time_ns": 90 * 10**9, "reference_ns": None},
        {"path": "/scratch/a", "io_time_ns": 15 * 10**9, "reference_ns": 15 * 10**9},
    ]


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        (("99",), "has no record"),
        (("0",), "no earlier run of cfd of alice"),
        (("1", "99"), "job 99: the lake has"),
    ],
)
def test_what_cannot_be_compared_is_said(
    ask: Callable[..., dict[str, Any]], jobs: tuple[str, ...], words: str
) -> None:
    with pytest.raises(UserError) as raised:
        ask(runs(), *jobs)
    assert words in raised.value.fact
    assert raised.value.hint


def test_a_lake_without_records_is_said(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    (lake / "lake.json").write_text(json.dumps({"format": 1}))
    words = ["jobs", "compare", "1", "--lake", str(lake), "--format", "json"]
    with pytest.raises(UserError, match="job_totals"):
        CliRunner().invoke(sysdock, words, catch_exceptions=False, standalone_mode=False)
