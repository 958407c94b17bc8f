"""The distribution of the time, as a bar, and the activity of each process over time: the top of a report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sysdock.analysis import Session
from sysdock.page.markup import attribute, both, join
from sysdock.page.numbers import duration
from sysdock.report.analyses import Answer, Figures, analysis_title
from sysdock.report.sources import sql_link
from sysdock.sentences import fact, listed

# Parts that have a colour of their own; the others are one, in one more colour.
_PARTS = 7
_TIMELINE = "time/timeline"
_UNIT = re.compile(r"\[[^\]]+\]$")
# Height of each of its charts [px].
_HEIGHT = 90
# Charts of the timeline: where waits were recorded, time in calls says no more.
_CHARTS = 3


def where_bar(session: Session, answers: Mapping[str, Answer]) -> str:
    """The time of the command by what it went to: `time/where`, or what answers for it in this recording.

    The rows of the command as a whole come first, so that those which its table shows are enough.
    """
    analysis = session.answering(session.library.analysis("time/where"))
    if analysis is None or analysis.id not in answers:
        return ""
    rows = [row for row in answers[analysis.id].first if row["process"] is None]
    whole = sum(row["time_ns"] for row in rows)
    if not whole:
        return ""
    parts = _largest(rows)
    rects, names, left = [], [], 0.0
    for number, (name, detail, time_ns) in enumerate(parts):
        width = 100 * time_ns / whole
        rects.append(f'<rect class="part{number}" x="{left:.3f}%" width="{width:.3f}%" height="100%"/>')
        left += width
        colour = f'<rect class="part{number}" width="100%" height="100%"/>'
        swatch = f'<svg class="swatch" aria-hidden="true">{colour}</svg>'
        named = f"{both(fact('report/part', part=name))} <b>{width:.1f} %</b>"
        details = both(fact("report/part_detail", detail=detail)) if detail else ""
        amount = f'<span class="muted">{duration(time_ns)}{details}</span>'
        names.append(f"<li>{swatch}{named} {amount}</li>")
    shares = [
        fact("report/part_share", part=name, share=f"{100 * time_ns / whole:.1f} %")
        for name, _, time_ns in parts
    ]
    label = attribute("aria-label", listed(shares))
    head = sql_link(analysis, both(fact("report/where_time_went")))
    bar = f'<svg class="bar" role="img"{label}>{"".join(rects)}</svg>'
    return f'<div class="where"><h2>{head}</h2>\n{bar}<ul>{"".join(names)}</ul></div>'


def _largest(rows: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    """Name, what took longest of it, and time [ns] of the largest parts, then of all others together."""
    ordered = sorted(rows, key=lambda row: -row["time_ns"])
    named = ordered if len(ordered) == _PARTS + 1 else ordered[:_PARTS]
    parts = [(row["part"], row["detail"] or "", row["time_ns"]) for row in named]
    if others := ordered[len(named) :]:
        parts.append(("others", "", sum(row["time_ns"] for row in others)))
    return parts


def timeline_section(session: Session, answers: Mapping[str, Answer], figures: Figures) -> str:
    """Calls, bytes and waits by process on one axis of time."""
    answer = answers.get(_TIMELINE)
    if answer is None or not answer.drawings:
        return ""
    drawn = []
    for drawing in answer.drawings[:_CHARTS]:
        drawing.spec["height"] = _HEIGHT
        # The title above names it, and has room.
        y = drawing.spec["encoding"]["y"]
        unit = _UNIT.search(y["title"] or "")
        y["title"] = unit and unit[0]
        drawn.append(figures.add(answer.analysis, drawing))
    title = analysis_title(session, answer.analysis)
    return f"""<section id="timeline"><h2>{title}</h2>
<div class="card"><div class="charts stacked">{join(drawn)}</div></div></section>"""
