"""Words around a chart: what it shows, how much of the result, and what became of the rest."""

from __future__ import annotations

from sysdock.chart.reduce import REST, Marks, Wanted
from sysdock.library import ChartLine
from sysdock.library.headings import japanese, plain
from sysdock.text import human_bytes, human_ns

_NOUNS = {
    "bars": ("bars", "本"),
    "points": ("points", "点"),
    "classes": ("classes", "階級"),
    "spans": ("rows", "行"),
    "cells": ("values", "個"),
    "lines": ("values", "個"),
    "ranges": ("rows", "行"),
    "icicle": ("branches", "本の枝"),
    "states": ("threads", "本のスレッド"),
    "latencies": ("values", "個"),
    "flame": ("rectangles", "個の長方形"),
}


def title_of(line: ChartLine, wanted: Wanted, lang: str) -> str:
    """The title of the chart line in `lang`, else the names of the columns."""
    if lang == "ja":
        stated = line.options.get("title_ja", line.options.get("title"))
        return stated or "、".join(map(japanese, wanted.y))
    return line.options.get("title") or ", ".join(map(plain, wanted.y))


def caption_of(marks: Marks, shape: str, lang: str, unit: str | None = None) -> str:
    """How much is drawn, as in `500 of 12,000 points drawn (lowest and highest of each step)`.

    unit: of the values, for the sum of bars that are not drawn.
    """
    if not marks.rows:
        return "データがありません" if lang == "ja" else "no data"
    rest = None if marks.rest_sum is None else _amount(marks.rest_sum, unit)
    return _japanese(marks, shape, rest) if lang == "ja" else _english(marks, shape, rest)


def _amount(value: float, unit: str | None) -> str:
    if unit in ("ns", "B"):
        return human_ns(value) if unit == "ns" else human_bytes(value)
    return f"{value:,.6g} {unit or ''}".rstrip()


def _english(marks: Marks, shape: str, rest: str | None) -> str:
    some = marks.shown < marks.total
    first = "the first " if shape in ("spans", "ranges") and some else ""
    parts = [f"{first}{marks.shown:,} of {marks.total:,} {_NOUNS[shape][0]} drawn"]
    if shape == "points" and some:
        parts.append("lowest and highest of each step")
    if shape == "cells" and some:
        parts[0] = f"{marks.total:,} values summed in {marks.shown:,} cells"
    if marks.summed:
        parts.append(f"the other {marks.summed:,} " + (f"together {rest}" if rest else "summed"))
    if marks.left_out:
        parts.append(f"{marks.left_out:,} of value 0 cannot stand on a log scale")
    parts += [english for english, _ in marks.notes]
    return ", ".join(parts)


def _japanese(marks: Marks, shape: str, rest: str | None) -> str:
    counter = _NOUNS[shape][1]
    parts = [f"{marks.total:,} {counter}のうち {marks.shown:,} {counter}を表示"]
    if shape == "points" and marks.shown < marks.total:
        parts.append("区間ごとの最小と最大")
    if shape == "cells" and marks.shown < marks.total:
        parts[0] = f"{marks.total:,} {counter}の値を {marks.shown:,} マスに合計"
    if marks.summed:
        parts.append(f"残り {marks.summed:,} {counter}は" + (f"合計 {rest}" if rest else f" {REST} に合計"))
    if marks.left_out:
        parts.append(f"値が 0 の {marks.left_out:,} 点は対数軸に表示できない")
    parts += [japanese for _, japanese in marks.notes]
    return "、".join(parts)
