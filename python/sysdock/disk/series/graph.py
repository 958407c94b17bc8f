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

TEMPLATE = "curves"
_TIME = {"en": "time of the scan, UTC", "ja": "走査の時刻 (UTC)"}
_HEIGHT = 150
_SERIES = {
    "free_bytes": ("all of it", "全体"),
    "largest_free_bytes": ("its largest piece", "最大の断片"),
}


@dataclass(frozen=True)
class Panel:
    """Columns of the analysis in one chart; a title and how to read it, in both languages."""

    columns: tuple[str, ...]
    title: tuple[str, str]
    reading: tuple[str, str]


PANELS = (
    Panel(
        ("layout_score",),
        ("Layout score", "配置スコア"),
        ("1: every block directly follows the one before it", "1 ならすべてのブロックが連続しています"),
    ),
    Panel(
        ("per_file",),
        ("Fragments per file", "ファイルあたりの断片"),
        ("1: every file is in one piece", "1 ならすべてのファイルが連続しています"),
    ),
    Panel(
        ("free_bytes", "largest_free_bytes"),
        ("Free space, and its largest piece", "空き領域と、その最大の断片"),
        ("the less, the more fragmented new files are", "少ないほど新しいファイルは断片化します"),
    ),
    Panel(
        ("free_extents",),
        ("Pieces of free space", "空き領域の断片"),
        ("many and small: new files are fragmented", "小さく多いほど新しいファイルは断片化します"),
    ),
)


def specs(found: Sequence[Snapshot], library: Library, lang: str) -> list[dict[str, Any]]:
    """A complete Vega-Lite specification for each of `PANELS`, without a theme."""
    return [_spec(library.chart(TEMPLATE), panel, found, library, lang) for panel in PANELS]


def _spec(
    template: ChartTemplate, panel: Panel, found: Sequence[Snapshot], library: Library, lang: str
) -> dict[str, Any]:
    number = int(lang == "ja")
    units = {column.name: column.unit for column in library.analysis(ANALYSIS).columns}
    held = [each.facts[name] for each in found for name in panel.columns if each.facts[name] is not None]
    axis = axis_of("", units[panel.columns[0]], (0.0, float(max(held, default=0))))
    names = {name: _SERIES[name][number] for name in panel.columns if name in _SERIES}
    values = {
        "x": "time",
        "x_type": "temporal",
        "x_format": "%Y-%m-%d %H:%M:%S",
        "x_scale": {"type": "utc"},
        "x_title": _TIME[lang],
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
    head = {"text": panel.title[number], "subtitle": panel.reading[number]}
    return {
        **fill(template.spec(), values, str(template.path)),
        "height": _HEIGHT,
        "title": head,
        "data": {"values": rows},
    }
