"""Lines over time: every step is a value, a true 0 or a gap, and none is invented."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from make_recording import RecordingMaker
from sysdock import chart
from sysdock.analysis import Session
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Filters, Recording

# Steps as wide as WIDTH; PRESENT says which of them have a row.
STEPS = """-- Steps
-- For tests.
-- needs:  recording
-- column: from_s DOUBLE     Start of the step [s].
-- column: until_s DOUBLE    End of the step [s].
-- column: kind VARCHAR      Series.
-- column: bytes BIGINT      Bytes [B].
-- column: avg_ns BIGINT     Average [ns].
-- chart:  lines x=from_s x2=until_s y=bytes color=kind title="Bytes" title_ja="バイト数"
-- chart:  lines x=from_s x2=until_s y=avg_ns color=kind
-- chart:  lines x=from_s x2=until_s y=avg_ns color=kind y_scale=log
-- chart:  lines x=from_s x2=until_s y=bytes color=kind gaps=break
-- portable: false
SELECT round(n * CAST(WIDTH AS DOUBLE), 9) AS from_s, round((n + 1) * CAST(WIDTH AS DOUBLE), 9) AS until_s, concat('kind ', k) AS kind,
    CAST((n % 7 + 1) * k AS BIGINT) AS bytes, CAST(CASE WHEN n % 50 = 49 THEN NULL ELSE n % 11 END AS BIGINT) AS avg_ns
FROM range(COUNT) AS t(n), range(1, KINDS + 1) AS s(k)
WHERE PRESENT
"""

Rows = list[dict[str, Any]]


def steps(count: int, width: float = 1.0, present: str = "true", kinds: int = 1) -> str:
    """The analysis above, filled in."""
    words = {"COUNT": count, "WIDTH": width, "PRESENT": present, "KINDS": kinds}
    text = STEPS
    for word, value in words.items():
        text = text.replace(word, str(value))
    return text


def level(rows: Rows, field: str, x: str) -> dict[str, list[tuple[float, float, float]]]:
    """The level stretches that a `step-after` line through these rows draws, per series: from, until, height."""
    found = defaultdict(list)
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        if following and (following["series"], following["run"]) == (row["series"], row["run"]):
            found[row["series"]].append((row[x], following[x], row[field]))
    return dict(found)


def height(stretches: list[tuple[float, float, float]], x: float) -> float | None:
    """What a line shows at x; None in a gap."""
    shown = [y for since, until, y in stretches if since <= x < until]
    assert len(shown) <= 1
    return shown[0] if shown else None


@pytest.fixture
def draw(library: Library, maker: RecordingMaker, open_session: Callable[..., Session]):
    """Charts of an analysis of the test over a recording of `seconds`."""

    def drawn(sql: str, seconds: float = 10.0, **filters: str) -> list[dict[str, Any]]:
        session = open_session(steps=sql)
        session.recording.manifest["duration_ns"] = round(seconds * 1e9)
        with Session(session.recording, session.library, Filters(**filters)) as opened:
            return chart.specs(opened, "t/steps")

    return drawn


def test_bytes_over_time_are_what_a_slow_count_of_the_calls_gives(
    library: Library, maker: RecordingMaker
) -> None:
    chance = random.Random(7)
    calls = []
    for _ in range(400):
        # Two silences: one for both directions, one for writes alone.
        t = chance.choice([chance.uniform(0, 2), chance.uniform(6, 9.9)])
        call = "read" if 6 < t < 8 else chance.choice(["read", "write"])
        size = chance.randrange(1, 5000)
        calls.append(
            {"t": round(t, 6), "call": call, "path": "/a", "transferred_bytes": size, "result": size}
        )
    calls.append({"t": 0.0, "call": "close", "path": "/a"})
    with Session(Recording.open(maker.make(calls)), library) as session:
        [spec] = chart.specs(session, "io/bytes_over_time", {"interval_s": 0.1})
    rows = spec["data"]["values"]
    unit = 1024 if "[KiB]" in spec["encoding"]["y"]["title"] else 1
    stretches = level(rows, "value", "from_s")
    last = max(call["t"] for call in calls)
    for number in range(int(last / 0.1) + 1):
        for call in ("read", "write"):
            inside = [c for c in calls if c["call"] == call and number == int(c["t"] * 1_000_000) // 100_000]
            expected = sum(c["transferred_bytes"] for c in inside) / unit
            middle = (number * 0.1 + min((number + 1) * 0.1, last)) / 2
            assert height(stretches[f"{call} bytes"], middle) == pytest.approx(expected)
    # The last step ends with the recording.
    assert max(row["from_s"] for row in rows) == pytest.approx(last)
    assert "steps of 100 ms, a step without calls is 0" in spec["title"]["subtitle"]


def test_a_sum_without_a_row_is_0_and_an_average_is_a_gap(draw) -> None:
    sums, averages, _, broken = draw(steps(8, present="n NOT BETWEEN 3 AND 4"))
    at = {name: level(spec["data"]["values"], field, "from_s") for name, spec, field in (
        ("sums", sums, "bytes"), ("averages", averages, "avg_ns"), ("broken", broken, "bytes"),
    )}  # fmt: skip
    shown = [height(at["sums"]["kind 1"], n + 0.5) for n in range(10)]
    # The recording lasts ten seconds, and the last two have no row either.
    assert shown == [1, 2, 3, 0, 0, 6, 7, 1, 0, 0]
    assert [height(at["averages"]["kind 1"], n + 0.5) for n in range(10)] == [
        0,
        1,
        2,
        None,
        None,
        5,
        6,
        7,
        None,
        None,
    ]
    assert [height(at["broken"]["kind 1"], n + 0.5) for n in range(5)] == [1, 2, 3, None, None]
    # Only a step with a row has a mark.
    assert sum(row["middle"] is not None for row in sums["data"]["values"]) == 6
    assert sums["title"]["subtitle"] == "6 of 6 values drawn, steps of 1 s, a step without calls is 0"
    assert averages["title"]["subtitle"].endswith("steps of 1 s, a step without a value is a gap")


def test_nothing_is_drawn_outside_of_what_was_recorded(draw) -> None:
    spec = draw(steps(3), seconds=2.25)[0]
    assert max(row["from_s"] for row in spec["data"]["values"]) == 2.25
    assert spec["encoding"]["x"]["scale"]["domain"] == [0, 2.25]


def test_what_a_filter_left_out_is_not_drawn_as_0(draw) -> None:
    spec = draw(steps(6, present="n IN (2, 4)"), from_="1.5", to="5")[0]
    places = [row["from_s"] for row in spec["data"]["values"]]
    assert (min(places), max(places)) == (1.5, 5)


def test_a_filter_may_cut_a_step(draw) -> None:
    spec = draw(steps(6, present="n BETWEEN 2 AND 4"), from_="2.75", to="4.5")[0]
    places = [row["from_s"] for row in spec["data"]["values"]]
    assert places == [2.75, 3, 4, 4.5]
    assert spec["encoding"]["x"]["scale"]["domain"] == [2.75, 4.5]


def test_what_lies_outside_of_the_recording_is_drawn_all_the_same(draw) -> None:
    spec = draw(steps(4).replace("range(4)", "range(-3, 1)"), seconds=0.5)[0]
    assert spec["encoding"]["x"]["scale"]["domain"] == [-3, 0.5]
    assert [row["from_s"] for row in spec["data"]["values"]] == [-3, -2, -1, 0, 0.5]


def test_an_unknown_value_is_a_gap_and_not_0(draw) -> None:
    unknown = steps(5).replace(
        "CAST((n % 7 + 1) * k AS BIGINT) AS bytes", "CASE WHEN n <> 2 THEN n + 1 END AS bytes"
    )
    spec = draw(unknown, seconds=5)[0]
    [stretches] = level(spec["data"]["values"], "bytes", "from_s").values()
    assert [height(stretches, n + 0.5) for n in range(5)] == [1, 2, None, 4, 5]


def test_a_log_scale_counts_its_zeros_and_breaks_there(draw) -> None:
    spec = draw(steps(13), seconds=13)[2]
    rows = spec["data"]["values"]
    assert all(row["avg_ns"] > 0 for row in rows)
    assert "2 of value 0 cannot stand on a log scale" in spec["title"]["subtitle"]
    [stretches] = level(rows, "avg_ns", "from_s").values()
    assert height(stretches, 0.5) is height(stretches, 11.5) is None


def test_many_steps_are_summed_and_averages_keep_their_extremes(draw) -> None:
    count, width = 100_003, 0.001
    spike = steps(count, width).replace("n % 11 END", "CASE n WHEN 54321 THEN 9000 ELSE n % 11 END END")
    sums, averages, *_ = draw(spike, seconds=count * width)
    rows = sums["data"]["values"]
    assert len(rows) <= 1000
    [stretches] = level(rows, "bytes", "from_s").values()
    merged = -(-count // 360)
    for since, until, value in stretches[:-1]:
        first = round(since / width)
        assert round(until / width) - first == merged
        # The axis is in KiB.
        assert value * 1024 == pytest.approx(sum(n % 7 + 1 for n in range(first, first + merged)))
    assert sum(y for *_, y in stretches) * 1024 == pytest.approx(sum(n % 7 + 1 for n in range(count)))
    assert sums["title"]["subtitle"].startswith("100,003 of 100,003 values drawn, summed in steps of 278 ms")
    heights = [row["avg_ns"] for row in averages["data"]["values"]]
    # The axis is in microseconds.
    assert (min(heights), max(heights)) == (0, 9)
    assert "lowest and highest of each 278 ms" in averages["title"]["subtitle"]


def test_at_most_eight_series_and_no_average_of_the_rest(draw) -> None:
    sums, averages, *_ = draw(steps(6, kinds=12))
    assert len({row["series"] for row in sums["data"]["values"]}) == 8
    assert "the rest" in sums["encoding"]["color"]["scale"]["domain"]
    rest = level(sums["data"]["values"], "bytes", "from_s")["the rest"]
    named = {int(name.split()[1]) for name in sums["encoding"]["color"]["scale"]["domain"][:-1]}
    assert height(rest, 0.5) == sum(set(range(1, 13)) - named)
    assert "the rest" not in {row["series"] for row in averages["data"]["values"]}
    assert "42 of 72 values drawn" in averages["title"]["subtitle"]
    assert averages["title"]["subtitle"].endswith("the rest has no value of its own")


def test_one_row(draw) -> None:
    for spec in draw(steps(1), seconds=0):
        assert spec["title"]["subtitle"].startswith(("1 of 1 values drawn", "no data"))


def test_no_row(draw) -> None:
    for spec in draw(steps(0)):
        assert (spec["data"]["values"], spec["title"]["subtitle"]) == ([], "no data")


def test_pages_can_brush_over_it(draw) -> None:
    spec = draw(steps(3, 0.0001), seconds=0.0003)[0]
    assert spec["usermeta"] == {"seconds_per_unit": pytest.approx(1e-6)}
    assert spec["encoding"]["x"]["title"] == "Start of the step [µs]"


@pytest.mark.parametrize(
    ("before", "after", "fact"),
    [
        (" x2=until_s y=bytes", " y=bytes", "has no `x2=`"),
        ("gaps=break", "gaps=join", "neither zero nor break"),
        ("y_scale=log", "y_scale=log gaps=zero", "a log scale has no 0"),
    ],
)
def test_mistakes_are_named(draw, before: str, after: str, fact: str) -> None:
    with pytest.raises(UserError, match=fact):
        draw(steps(3).replace(before, after))
