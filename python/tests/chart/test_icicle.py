"""Icicles: a rectangle is as wide as what lies in it, and what is not drawn is told."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from make_recording import RecordingMaker
from sysdock import chart
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording

TREE = """-- Tree
-- For tests.
-- needs:  recording
-- column: place VARCHAR     Path.
-- column: time_ns BIGINT    Time [ns].
-- chart:  icicle x=place y=time_ns title="Time" title_ja="時間"
-- portable: false
SELECT place, time_ns FROM (VALUES ROWS) AS t(place, time_ns)
"""
Opener = Callable[..., Session]
Rows = list[dict[str, Any]]


def tree(rows: list[tuple[str | None, int | None]]) -> str:
    """The analysis above with these rows."""

    def quoted(path: str | None) -> str:
        return "CAST(NULL AS VARCHAR)" if path is None else "'" + path.replace("'", "''") + "'"

    values = ", ".join(
        f"({quoted(path)}, CAST({'NULL' if time is None else time} AS BIGINT))" for path, time in rows
    )
    return TREE.replace("ROWS", values)


def above(path: str) -> list[str]:
    """A path and all that it lies in, the slow way."""
    found = [path]
    while path.rstrip("/") and "/" in path:
        path = path.rsplit("/", 1)[0] or "/"
        found.append(path)
    return found


def some_paths() -> list[tuple[str | None, int | None]]:
    """Paths of a tree with wide and narrow places, some of them with rows of their own."""
    chance = random.Random(11)
    names = ["usr", "lib", "home", "data", "x"]
    paths = {"/": 5}
    for _ in range(600):
        parts = [chance.choice(names) + str(chance.randrange(1, 4)) for _ in range(chance.randrange(1, 6))]
        paths["/" + "/".join(parts)] = round(10 ** chance.uniform(0, 5))
    return list(paths.items())


def test_widths_are_the_sums_of_what_lies_there(open_session: Opener) -> None:
    given = some_paths()
    sums: dict[str, int] = defaultdict(int)
    for path, time in given:
        for each in above(path):
            sums[each] += time
    [spec] = chart.specs(open_session(t=tree(given)), "t/t")
    rows = spec["data"]["values"]
    whole = sum(time for _, time in given)
    assert sums["/"] == whole
    # The axis is in milliseconds.
    widths = {row["name"]: row["to"] - row["from"] for row in rows if "the rest" not in row["name"]}
    assert widths == {
        path: pytest.approx(size / 1e6, abs=1e-6) for path, size in sums.items() if size * 720 >= whole
    }
    assert spec["title"]["subtitle"] == (
        f"{len(widths)} of {len(sums):,} branches drawn, the others are too narrow"
    )
    for row in rows:
        assert row["room"] >= 1
        assert row["share"].endswith(" %")


def test_nothing_is_wider_than_what_it_lies_in_and_nothing_overlaps(open_session: Opener) -> None:
    [spec] = chart.specs(open_session(t=tree(some_paths())), "t/t")
    levels: dict[int, Rows] = defaultdict(list)
    for row in spec["data"]["values"]:
        levels[row["place"]].append(row)
    assert sorted(levels) == list(range(len(levels)))
    for level, rows in levels.items():
        rows.sort(key=lambda row: row["from"])
        for row, following in pairwise(rows):
            assert row["to"] <= following["from"]
        for row in rows if level else []:
            [parent] = [p for p in levels[level - 1] if p["from"] <= row["from"] and row["to"] <= p["to"]]
            assert "the rest" in row["name"] or row["name"].startswith(parent["name"].rstrip("/") + "/")


def test_narrow_ones_are_summed_as_the_rest_of_their_parent(open_session: Opener) -> None:
    given = [("/a", 100_000), *((f"/b/n{n}", 10) for n in range(300)), ("/c/lonely", 10)]
    [spec] = chart.specs(open_session(t=tree(given)), "t/t")
    rows = {row["name"]: row for row in spec["data"]["values"]}
    # One narrow branch alone, of ten nanoseconds, is not drawn.
    assert sorted(rows) == ["/", "/a", "/b", "the rest (300)"]
    assert rows["the rest (300)"]["text"] == "3.00 µs"
    assert rows["the rest (300)"]["to"] == rows["/b"]["to"]
    assert rows["/a"]["share"] == "97.0 %"


def test_levels_have_an_end(open_session: Opener) -> None:
    deep = "/" + "/".join(f"d{n}" for n in range(40))
    [spec] = chart.specs(open_session(t=tree([(deep, 5)])), "t/t")
    assert len(spec["data"]["values"]) == 14
    assert spec["title"]["subtitle"] == "14 of 41 branches drawn, 14 of 41 levels"


def test_hostile_names_are_data(open_session: Opener) -> None:
    evil = "/tmp/</script>\"');alert(1)//" + "x" * 300 + "/\\n${1}"
    [spec] = chart.specs(
        open_session(t=tree([(evil, 5), ("pipe", 3), (None, 2), ("", 2), ("/u", None)])), "t/t"
    )
    rows = spec["data"]["values"]
    assert evil in {row["name"] for row in rows}
    assert {row["name"] for row in rows if row["place"] == 0} == {"/", "pipe"}
    assert max(len(row["label"]) for row in rows) <= 61
    assert "alert" not in json.dumps({key: value for key, value in spec.items() if key != "data"})


@pytest.mark.parametrize("rows", [[("/a", 0)], [("/a", None)], [(None, 5)]])
def test_nothing_to_draw(open_session: Opener, rows: list[tuple[str | None, int | None]]) -> None:
    [spec] = chart.specs(open_session(t=tree(rows)), "t/t")
    assert (spec["data"]["values"], spec["title"]["subtitle"]) == ([], "no data")


def test_directories_count_what_lies_in_them(library: Library, maker: RecordingMaker) -> None:
    calls = [
        {"call": "read", "path": "/srv/a/1", "transferred_bytes": 10, "dur_ns": 5},
        {"call": "read", "path": "/srv/a/2", "transferred_bytes": 20, "dur_ns": 6},
        {"call": "openat", "path": "/srv/a/none", "errno": "ENOENT", "dur_ns": 1},
        {"call": "getdents64", "class": "dir", "path": "/srv/a", "kind": "directory", "dur_ns": 3},
        {"call": "newfstatat", "path": "/", "kind": "directory", "dur_ns": 2},
        {"call": "write", "path": "/top", "transferred_bytes": 7, "dur_ns": 9},
        {"call": "read", "path": "pipe:[4]", "kind": "pipe", "transferred_bytes": 9, "dur_ns": 99},
        {"call": "read", "path": "name", "transferred_bytes": 9, "dur_ns": 99},
        {"call": "getpid", "dur_ns": 99},
    ]
    with Session(Recording.open(maker.make(calls)), library) as session:
        rows = session.run("io/directories").rows()
        [times, volumes] = chart.specs(session, "io/directories")
    assert rows == [("/srv/a", 3, 4, 1, 15, 30), ("/", 1, 2, 0, 11, 7)]
    assert {row["name"]: row["text"] for row in times["data"]["values"]} == {
        "/": "26 ns",
        "/srv": "15 ns",
        "/srv/a": "15 ns",
    }
    assert volumes["encoding"]["x"]["title"] == "Bytes transferred [B]"
