"""A series as one picture: the film strip, its legend, and the graph below it."""

from __future__ import annotations

import base64
from typing import Any

from sysdock.chart.output import VEGA_LITE, stacked
from sysdock.disk.map.labels import CLASSES
from sysdock.disk.map.picture import entry, patterns
from sysdock.disk.series.labels import caption, date, heading, left_out, scale
from sysdock.disk.series.strip import Frame, Strip
from sysdock.page.markup import text
from sysdock.page.theme import FONT
from sysdock.sentences import say

COLUMNS = 4
MARGIN = 16
HEAD = 78
GAP = 12
BELOW = 44
_ENTRY = (330, 42)
_LEGEND_COLUMNS = 3
_WIDTH = COLUMNS * 256 + (COLUMNS - 1) * GAP + 2 * MARGIN


def picture(strip: Strip, graph: list[dict[str, Any]], lang: str) -> bytes:
    """The strip and the graph (specifications of charts), as PNG."""
    import vl_convert

    return vl_convert.svg_to_png(svg(strip, graph, lang), scale=1.0)


def svg(strip: Strip, graph: list[dict[str, Any]], lang: str) -> str:
    """The picture as SVG, with the frames as images."""
    import vl_convert

    chart = vl_convert.vegalite_to_svg(stacked(graph), VEGA_LITE, allowed_base_urls=[])
    width = max(_WIDTH, COLUMNS * strip.side + (COLUMNS - 1) * GAP + 2 * MARGIN)
    legend, legend_height = _legend(strip, lang)
    top = place(strip, len(strip.frames) + COLUMNS - 1)[1]
    height = top + legend_height + _height_of(chart) + MARGIN
    remark = say(left_out(strip), lang)
    size = f'width="{width}" height="{height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}">',
        '<rect width="100%" height="100%" fill="#FFFFFF"/>',
        patterns(strip.frames[0].shown["shares"]),
        _words(MARGIN, 26, say(heading(strip), lang), 'font-size="18" font-weight="bold"'),
        _words(MARGIN, 47, say(scale(strip), lang), 'font-size="13" fill="#444444"'),
        *([_words(MARGIN, 65, remark, 'font-size="13" fill="#444444"')] if remark else []),
        *(_frame(strip, number, frame, lang) for number, frame in enumerate(strip.frames)),
        f'<g transform="translate(0 {top})">{"".join(legend)}</g>',
        chart.replace("<svg ", f'<svg x="0" y="{top + legend_height}" ', 1),
        "</svg>",
    ]
    return "\n".join(parts)


def place(strip: Strip, number: int) -> tuple[int, int]:
    """The position of a frame in the picture: left, top."""
    row, column = divmod(number, COLUMNS)
    return MARGIN + column * (strip.side + GAP), HEAD + row * (strip.side + BELOW)


def _frame(strip: Strip, number: int, frame: Frame, lang: str) -> str:
    left, top = place(strip, number)
    data, below = base64.b64encode(frame.png).decode(), top + strip.side
    return (
        f'<image x="{left}" y="{top}" width="{strip.side}" height="{strip.side}" '
        f'image-rendering="optimizeSpeed" href="data:image/png;base64,{data}"/>'
        + _words(left, below + 15, date(frame), 'font-size="12" font-weight="bold"')
        + _words(left, below + 30, say(caption(frame), lang), 'font-size="12" fill="#444444"')
    )


def _legend(strip: Strip, lang: str) -> tuple[list[str], int]:
    parts = []
    for at, share in enumerate(strip.frames[0].shown["shares"]):
        row, column = divmod(at, _LEGEND_COLUMNS)
        name, meaning = (say(words, lang) for words in CLASSES[share["class"]])
        left, top = MARGIN + column * _ENTRY[0], row * _ENTRY[1]
        parts.append(entry(left, top, f"url(#fill-{share['class']})", name, meaning))
    return parts, -(-len(parts) // _LEGEND_COLUMNS) * _ENTRY[1]


def _words(left: int, top: int, words: str, style: str) -> str:
    return f'<text x="{left}" y="{top}" {style}>{text(words)}</text>'


def _height_of(chart: str) -> float:
    return float(chart.partition('height="')[2].partition('"')[0])
