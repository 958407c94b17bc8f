"""The graph of a series: what its scans say over time, by the chart template `curves`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sysdock.chart.scale import axis_of
from sysdock.chart.template import fill
from sysdock.disk.series.scans import Snapshot
from sysdock.disk.totals import ANALYSIS
from sysdock.library import ChartTemplate, Library
from sysdock.sentences import Words, fact, say

TEMPLATE = "curves"
_TIME = fact("disk_series/time_scan_utc")
_HEIGHT = 150
_SERIES = {
    "free_bytes": fact("disk_series/all"),
    "largest_free_bytes": fact("disk_series/largest_piece"),
}


@dataclass(frozen=True)
class Panel:
    """Columns of the analysis in one chart; a title and how to read it."""

    columns: tuple[str, ...]
    title: Words
    reading: Words


PANELS = (
    Panel(
        ("layout_score",),
        fact("disk_series/layout_score"),
        fact("disk_series/n_1_every_block_directly"),
    ),
    Panel(
        ("per_file",),
        fact("disk_series/fragments_per_file"),
        fact("disk_series/n_1_every_file_one"),
    ),
    Panel(
        ("free_bytes", "largest_free_bytes"),
        fact("disk_series/free_space_largest_piece"),
        fact("disk_series/less_more_fragmented_new"),
    ),
    Panel(
        ("free_extents",),
        fact("disk_series/pieces_free_space"),
        fact("disk_series/many_small_new_files"),
    ),
)


def specs(found: Sequence[Snapshot], library: Library, lang: str) -> list[dict[str, Any]]:
    """A complete Vega-Lite specification for each of `PANELS`, without a theme."""
    return [_spec(library.chart(TEMPLATE), panel, found, library, lang) for panel in PANELS]


def _spec(
    template: ChartTemplate, panel: Panel, found: Sequence[Snapshot], library: Library, lang: str
) -> dict[str, Any]:
    units = {column.name: column.unit for column in library.analysis(ANALYSIS).columns}
    held = [each.facts[name] for each in found for name in panel.columns if each.facts[name] is not None]
    axis = axis_of("", units[panel.columns[0]], (0.0, float(max(held, default=0))))
    names = {name: say(_SERIES[name], lang) for name in panel.columns if name in _SERIES}
    values = {
        "x": "time",
        "x_type": "temporal",
        "x_format": "%Y-%m-%d %H:%M:%S",
        "x_scale": {"type": "utc"},
        "x_title": say(_TIME, lang),
        "y": "value",
        "y_title": axis.title.strip(),
        "y_scale": {**axis.scale, "zero": panel.columns != ("layout_score",)},
        "series": "series" if names else None,
        "series_domain": list(names.values()) or None,
        "series_title": "",
    }
    rows = [
        {
            "time": int(each.time.timestamp() * 1000),
            "value": each.facts[name] / axis.divisor,
            **({"series": names[name]} if names else {}),
        }
        for each in found
        for name in panel.columns
        if each.facts[name] is not None
    ]
    head = {"text": say(panel.title, lang), "subtitle": say(panel.reading, lang)}
    return {
        **fill(template.spec(), values, str(template.path)),
        "height": _HEIGHT,
        "title": head,
        "data": {"values": rows},
    }
