"""A series as one page: the film strip, the graph and the numbers. Nothing is fetched."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from sysdock.disk.map.labels import CLASSES
from sysdock.disk.map.picture import patterns
from sysdock.disk.series.graph import PANELS
from sysdock.disk.series.labels import caption, date, heading, left_out, scale
from sysdock.disk.series.strip import Frame, Strip
from sysdock.library import Column
from sysdock.page.document import document, figure, page_head
from sysdock.page.markup import attribute, both
from sysdock.page.tables import copy_button, table
from sysdock.sentences import fact, listed, say

Table = tuple[Sequence[Column], list[tuple[Any, ...]]]


def page(strip: Strip, graph: list[dict[str, Any]], numbers: Table, lang: str) -> bytes:
    """The page; `graph`: specifications of `PANELS`, `numbers`: columns and lines of the series."""
    name = f"{say(heading(strip), lang)} - sysdock"
    body = f"""{page_head(lang)}
<main><h1>{both(heading(strip))}</h1>
<section class="card"><h2>{both(fact("disk_series/film_strip"))}</h2>
<p class="muted">{both(scale(strip))} {both(left_out(strip) or "")}</p>
<ol class="strip">{"".join(_frame(frame, strip.side) for frame in strip.frames)}</ol>
{_legend(strip)}</section>
<section class="card"><h2>{both(fact("disk_series/graph"))}</h2>
{"".join(_figure(number) for number in range(len(graph)))}</section>
<section class="card"><h2>{both(fact("disk_series/numbers"))}</h2>
{copy_button("numbers")}
{table("numbers", *numbers, fact("disk_series/numbers_each_scan"))}</section></main>"""
    return document(name, lang, body, graph, style=("report.css", "series.css")).encode()


def _frame(frame: Frame, side: int) -> str:
    data = base64.b64encode(frame.png).decode()
    label = attribute("alt", fact("disk_series/dated", date=date(frame), caption=caption(frame)))
    return (
        f'<li><img src="data:image/png;base64,{data}" width="{side}" height="{side}"{label}>'
        f'<time>{date(frame)}</time><span class="muted">{both(caption(frame))}</span></li>'
    )


def _legend(strip: Strip) -> str:
    shares = strip.frames[0].shown["shares"]
    # Drawn once, hidden: the fields of the legend take their patterns from it.
    fills = f'<svg width="0" height="0" aria-hidden="true">{patterns(shares)}</svg>'
    entries = []
    for share in shares:
        name, meaning = CLASSES[share["class"]]
        fill = f"url(#fill-{share['class']})"
        swatch = f'<svg width="22" height="22"><rect width="22" height="22" fill="{fill}"/></svg>'
        words = both(name) + f' <span class="muted">{both(meaning)}</span>'
        entries.append(f"<li>{swatch}<span>{words}</span></li>")
    return f'{fills}<ul class="classes">{"".join(entries)}</ul>'


def _figure(number: int) -> str:
    panel = PANELS[number]
    return figure(number, both(panel.title), both(panel.reading), listed([panel.title, panel.reading]))
