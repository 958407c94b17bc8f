"""A series as one page: the film strip, the graph and the numbers. Nothing is fetched."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from sysdock.disk.map.picture import patterns
from sysdock.disk.map.words import CLASSES
from sysdock.disk.series.graph import PANELS
from sysdock.disk.series.strip import Frame, Strip
from sysdock.disk.series.words import caption, date, heading, left_out, scale
from sysdock.library import Column
from sysdock.page.document import document, figure, page_head
from sysdock.page.markup import attribute, both, text
from sysdock.page.tables import copy_button, table

Table = tuple[Sequence[Column], list[tuple[Any, ...]]]


def page(strip: Strip, graph: list[dict[str, Any]], numbers: Table, lang: str) -> bytes:
    """The page; `graph`: specifications of `PANELS`, `numbers`: columns and lines of the series."""
    name = f"{heading(strip, lang)} - sysdock"
    body = f"""{page_head(lang)}
<main><h1>{_both(heading, strip)}</h1>
<section class="card"><h2>{both("Film strip", "フィルム")}</h2>
<p class="muted">{_both(scale, strip)} {_both(left_out, strip)}</p>
<ol class="strip">{"".join(_frame(frame, strip.side) for frame in strip.frames)}</ol>
{_legend(strip)}</section>
<section class="card"><h2>{both("Graph", "グラフ")}</h2>
{"".join(_figure(number) for number in range(len(graph)))}</section>
<section class="card"><h2>{both("Numbers", "数値")}</h2>
{copy_button("numbers")}
{table("numbers", *numbers, ("Numbers of each scan", "走査ごとの数値"))}</section></main>"""
    return document(name, lang, body, graph, style=("report.css", "series.css")).encode()


def _both(words: Any, of: Any) -> str:
    english, japanese = words(of, "en"), words(of, "ja")
    return both(text(english), text(japanese)) if english else ""


def _frame(frame: Frame, side: int) -> str:
    data = base64.b64encode(frame.png).decode()
    label = attribute("alt", *(f"{date(frame)}: {caption(frame, lang)}" for lang in ("en", "ja")))
    return (
        f'<li><img src="data:image/png;base64,{data}" width="{side}" height="{side}"{label}>'
        f'<time>{date(frame)}</time><span class="muted">{_both(caption, frame)}</span></li>'
    )


def _legend(strip: Strip) -> str:
    shares = strip.frames[0].shown["shares"]
    # Drawn once, hidden: the fields of the legend take their patterns from it.
    fills = f'<svg width="0" height="0" aria-hidden="true">{patterns(shares)}</svg>'
    entries = []
    for share in shares:
        (name, name_ja), (meaning, meaning_ja) = CLASSES[share["class"]]
        fill = f"url(#fill-{share['class']})"
        swatch = f'<svg width="22" height="22"><rect width="22" height="22" fill="{fill}"/></svg>'
        words = both(name, name_ja) + f' <span class="muted">{both(meaning, meaning_ja)}</span>'
        entries.append(f"<li>{swatch}<span>{words}</span></li>")
    return f'{fills}<ul class="classes">{"".join(entries)}</ul>'


def _figure(number: int) -> str:
    panel = PANELS[number]
    english, japanese = zip(panel.title, panel.reading, strict=True)
    return figure(number, both(*panel.title), both(*panel.reading), (", ".join(english), "、".join(japanese)))
