"""Chart specifications: fields, units, thinning, and that nothing recorded becomes code."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from chart_analyses import BARS, CELLS, EMPTY, ODD, WAVE
from sysdock import chart
from sysdock.analysis import Session
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Recording

Opener = Callable[..., Session]


def test_every_shipped_analysis_draws(library: Library, maker) -> None:
    with contextlib.ExitStack() as opened:
        recordings = [Recording.open(path) for path in maker.make_each_kind()]
        sessions = [opened.enter_context(Session(recording, library)) for recording in recordings]
        for analysis in library.analyses():
            session = next(session for session in sessions if not session.missing(analysis))
            for spec in chart.specs(session, analysis, {}):
                text = json.dumps({key: value for key, value in spec.items() if key != "data"})
                assert "$x" not in text.replace("$schema", "")
                assert set(spec.get("usermeta", {})) <= {"seconds_per_unit"}


def test_points_keep_their_extremes_and_stay_few(open_session: Opener) -> None:
    [spec, _] = chart.specs(open_session(wave=WAVE), "t/wave")
    rows = spec["data"]["values"]
    assert len(rows) <= 5000
    heights = [row["size"] for row in rows]
    # Both spikes are single points among 12,001. The axis is in KiB.
    assert max(heights) == pytest.approx(900_000 / 1024)
    assert min(heights) == 0
    assert {row["series"] for row in rows} == {"many", "few"}
    assert sum(row["series"] == "few" for row in rows) == 10
    assert spec["title"]["subtitle"].startswith(f"{len(rows):,} of 12,001 points drawn")


def test_a_log_scale_says_what_it_leaves_out(open_session: Opener) -> None:
    spec = chart.specs(open_session(wave=WAVE), "t/wave")[1]
    assert spec["encoding"]["y"]["scale"]["type"] == "log"
    assert "log scale" in spec["encoding"]["y"]["title"]
    assert "1 of value 0 cannot stand on a log scale" in spec["title"]["subtitle"]
    assert all(row["size"] > 0 for row in spec["data"]["values"])


def test_axes_have_units_and_start_at_zero(open_session: Opener) -> None:
    points = chart.specs(open_session(wave=WAVE), "t/wave")[0]
    assert points["encoding"]["x"]["title"] == "Time [s]"
    assert points["encoding"]["y"]["title"] == "Height [KiB]"
    assert points["encoding"]["y"]["scale"]["zero"] is True


def test_bars_are_zero_based_and_the_rest_is_summed(open_session: Opener) -> None:
    [stacked, single] = chart.specs(open_session(bars=BARS), "t/bars")
    assert stacked["encoding"]["x"]["scale"]["zero"] is True
    rows = stacked["data"]["values"]
    assert sum(row["calls"] for row in rows) == sum(range(1, 61))
    names = [row["name"] for row in rows]
    assert "the rest (40)" in names
    assert len(set(names)) == 21
    # Averages do not add up: the rest is left out there, and the caption says how many are shown.
    assert "the rest (40)" not in [row["name"] for row in single["data"]["values"]]
    assert single["title"]["subtitle"] == "20 of 60 bars drawn"
    assert single["encoding"]["x"]["title"] == "Average time [ms]"


def test_a_rest_that_would_dwarf_the_bars_is_told_not_drawn(open_session: Opener) -> None:
    many = BARS.replace("range(60)", "range(6000)").replace("CAST(n + 1 AS BIGINT)", "CAST(2 AS BIGINT)")
    session = open_session(bars=many)
    [spec, _] = chart.specs(session, "t/bars")
    assert len({row["name"] for row in spec["data"]["values"]}) == 20
    assert spec["title"]["subtitle"] == "20 of 6,000 bars drawn, the other 5,980 together 11,960"
    [spec, _] = chart.specs(session, "t/bars", lang="ja")
    assert spec["title"]["subtitle"].endswith("残り 5,980 本は合計 11,960")


def test_a_log_without_clock_or_durations_says_so_under_the_title(library: Library, maker) -> None:
    folder = maker.make([{"call": "read"}], clock={"kind": "order", "has_durations": False})
    with Session(Recording.open(folder), library) as session:
        [calls, _, _, times, averages] = chart.specs(session, "io/calls_over_time")
        assert calls["title"]["subtitle"].endswith("the log has no clock: the axis counts lines, not seconds")
        assert times["title"]["subtitle"] == "no data; the log does not tell how long calls took"
        assert averages["title"]["subtitle"] == times["title"]["subtitle"]
        [summary, _, _] = chart.specs(session, "io/summary")
        assert "clock" not in summary["title"]["subtitle"]


def test_a_heat_map_sums_and_leaves_gaps_blank(open_session: Opener) -> None:
    both = {name: CELLS.replace("$STEPS", steps) for name, steps in (("many", "300"), ("few", "50"))}
    session = open_session(**both)
    [spec] = chart.specs(session, "t/many")
    rows = spec["data"]["values"]
    assert sum(row["calls"] for row in rows) == 300 * 2 + 200
    assert max(row["calls"] for row in rows) <= 6
    blank = [row for row in rows if row["label"] == "b" and 105 < row["from_s"] < 195]
    assert blank == []
    assert spec["encoding"]["color"]["scale"]["zero"] is True
    assert "500 values summed in" in spec["title"]["subtitle"]
    # Few steps are drawn as they are.
    [small] = chart.specs(session, "t/few")
    first = small["data"]["values"][0]
    assert (first["from_s"], first["from_s_end"]) == (0, pytest.approx(1, abs=1e-6))
    assert small["title"]["subtitle"] == "100 of 100 values drawn"


@pytest.mark.parametrize(("steps", "merged"), [(50, 1), (300, 3)])
def test_cells_of_a_heat_map_hold_whole_steps(open_session: Opener, steps: int, merged: int) -> None:
    """A silence must not make cells a little wider than a step: every so often one would hold two."""
    silent = CELLS.replace("$STEPS", str(steps)).replace("heat x=from_s", "heat x=from_s x2=until_s")
    silent = silent.replace(
        "-- column: class", "-- column: until_s DOUBLE    End of the step [s].\n-- column: class"
    )
    silent = silent.replace("AS from_s,", "AS from_s, CAST(n + 1 AS DOUBLE) AS until_s,")
    silent = silent.replace("WHERE k = 'a' OR n NOT BETWEEN 100 AND 199", "WHERE n NOT BETWEEN 12 AND 29")
    [spec] = chart.specs(open_session(silent=silent), "t/silent")
    calls = [row["calls"] for row in spec["data"]["values"] if row["label"] == "a"]
    assert calls == [2 * merged] * ((steps - 18) // merged)


def test_small_series_become_the_rest(open_session: Opener) -> None:
    spec = chart.specs(open_session(bars=BARS), "t/bars")[0]
    domain = spec["encoding"]["color"]["scale"]["domain"]
    assert len(domain) == 8
    assert domain[-1] == "the rest"
    assert {row["series"] for row in spec["data"]["values"]} <= set(domain)


def test_nothing_recorded_is_an_expression_or_an_accessor(open_session: Opener) -> None:
    spec = chart.specs(open_session(bars=BARS), "t/bars")[0]
    assert any("alert(1)" in row["name"] for row in spec["data"]["values"])
    spec["encoding"]["color"]["scale"].pop("domain")
    spec.pop("data")
    rest = json.dumps(spec)
    assert "alert" not in rest
    assert "datum." not in rest


def test_without_rows_a_chart_says_so(open_session: Opener) -> None:
    for spec in chart.specs(open_session(empty=EMPTY), "t/empty"):
        assert spec["data"]["values"] == []
        assert spec["title"]["subtitle"] == "no data"


def test_what_is_no_number_is_not_drawn(open_session: Opener) -> None:
    for spec in chart.specs(open_session(odd=ODD), "t/odd"):
        assert [row["value"] for row in spec["data"]["values"]] == [5]


def test_japanese_titles(open_session: Opener) -> None:
    spec = chart.specs(open_session(wave=WAVE), "t/wave", lang="ja")[0]
    assert spec["title"]["text"] == "Wave: 高さ"
    assert "12,001 点" in spec["title"]["subtitle"]


def test_axes_speak_japanese_too(open_session: Opener) -> None:
    spec = chart.specs(open_session(wave=WAVE), "t/wave", lang="ja")[0]
    assert spec["encoding"]["y"]["title"] == "高さ [KiB]"


def test_themes_differ_in_colours_only(open_session: Opener) -> None:
    session = open_session(wave=WAVE)
    [light, _], [dark, _] = (chart.specs(session, "t/wave", theme=theme) for theme in ("light", "dark"))
    assert light["config"]["background"] != dark["config"]["background"]
    assert light["data"] == dark["data"]


def test_size_classes_stand_where_their_exponent_is(library: Library, maker) -> None:
    sizes = [0, 1, 2, 3, 4, 5, 4096, 4097]
    calls = [
        {"t": at, "call": "read", "path": "/a", "transferred_bytes": size, "result": size}
        for at, size in enumerate(sizes)
    ]
    with Session(Recording.open(maker.make(calls)), library) as session:
        spec = chart.specs(session, "io/size_histogram")[0]
    middles = {row["name"]: (row["from"] + row["to"]) / 2 for row in spec["data"]["values"]}
    # Reads are the left half of each class.
    assert {name: round(middle + 0.21) for name, middle in middles.items()} == {
        "0": -1,
        "1": 0,
        "2": 1,
        "3 - 4": 2,
        "5 - 8": 3,
        "2,049 - 4,096": 12,
        "4,097 - 8,192": 13,
    }


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("points x=at_s", "has no `y=`"),
        ("points x=nowhere y=size", "which is not a column"),
        ("points x=at_s y=size colour=kind", "chart option `colour` is unknown"),
        ("points x=at_s y=size y_scale=cubic", "neither linear nor log"),
        ("points x=at_s y=datum[0]", "does not name columns"),
        ("pie x=at_s y=size", "there is no chart `pie`"),
    ],
)
def test_mistakes_in_a_chart_line_are_named(open_session: Opener, line: str, fact: str) -> None:
    first = "points x=at_s y=size y_scale=log"
    with pytest.raises(UserError, match=fact.replace("[", r"\[").replace("`", "`")):
        chart.specs(open_session(wave=WAVE.replace(first, line)), "t/wave")


def test_a_template_with_an_unknown_shape_is_named(open_session: Opener) -> None:
    session = open_session(wave=WAVE)
    path: Path = session.library.root / "charts" / "points.json"
    path.write_text(path.read_text().replace('"shape": "points"', '"shape": "clouds"'))
    with pytest.raises(UserError, match="shape `clouds` is unknown"):
        chart.specs(session, "t/wave")
