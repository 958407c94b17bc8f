"""The analyses of the report, by area: each with its charts and table, closed until a reader opens it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sysdock.analysis import Result, Session
from sysdock.analysis.side_by_side import side_by_side
from sysdock.chart.drawing import Drawing, drawings_of
from sysdock.errors import NotComputed
from sysdock.library import Analysis, Library
from sysdock.page.document import figure
from sysdock.page.markup import both, inline, join, prose_blocks, text
from sysdock.page.tables import copy_button, search_field, table
from sysdock.report.sources import sql_block, sql_link
from sysdock.sentences import Words, fact

ROWS = 200
# Steps of time that charts are divided into.
_STEPS = 120
# The analyses that readers look for first in an area.
_FIRST = ("time/where", "time/calls", "time/states", "io/summary", "io/files", "io/errors")


@dataclass(frozen=True)
class Answer:
    """An analysis with its parameters and what it found: its charts, and its table as HTML.

    `rows`: how many there are, None where they could not be computed. `first`: those that its table shows.
    `trouble`: why there are no charts, as HTML.
    """

    analysis: Analysis
    params: dict[str, Any]
    drawings: list[Drawing]
    table: str
    rows: int | None
    first: list[dict[str, Any]] = field(default_factory=list)
    trouble: str = ""

    @property
    def place(self) -> str:
        """Its id in the page."""
        return self.analysis.id.replace("/", "-")

    @property
    def area(self) -> str:
        """The area that it belongs to: the first part of its id."""
        return self.analysis.id.partition("/")[0]


@dataclass(frozen=True)
class Area:
    """Analyses of one area, as far as they found anything."""

    name: str
    title: Words
    answers: list[Answer]


class Figures:
    """Charts in the order of the page."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self.specs: list[dict[str, Any]] = []

    def add(self, analysis: Analysis, drawing: Drawing) -> str:
        """The place of a chart, as HTML."""
        named = both(drawing.title)
        caption = both(drawing.caption) + f" {sql_link(analysis, 'SQL')}"
        title = analysis_words(self._library, analysis)
        label = fact("report/chart_label", analysis=title, title=drawing.title, caption=drawing.caption)
        self.specs.append(drawing.spec)
        return figure(len(self.specs) - 1, named, caption, label)


def answers_of(session: Session, lang: str) -> dict[str, Answer]:
    """Answers of all analyses that the recording supports, by id."""
    found = side_by_side(session, partial(_answer, lang=lang), session.answerable())
    return {answer.analysis.id: answer for answer in found}


def _answer(session: Session, analysis: Analysis, lang: str) -> Answer:
    params = _params(session, analysis)
    try:
        result = session.run(analysis, params).keep()
        rows = result.row_count()
        first = result.rows(ROWS)
        shown = _result_table(result, first, rows, analysis_words(session.library, analysis))
    except NotComputed as error:
        return Answer(analysis, params, [], not_computed(error), None)
    drawn, trouble = [], ""
    try:
        drawn = [drawing for drawing in drawings_of(result, lang) if drawing.shown]
    except NotComputed as error:
        trouble = not_computed(error)
    result.forget()
    names = [column.name for column in result.columns]
    named = [dict(zip(names, row, strict=True)) for row in first]
    return Answer(analysis, params, drawn, shown, rows, named, trouble)


def _params(session: Session, analysis: Analysis) -> dict[str, Any]:
    """For analyses with a step of time, one that gives about a hundred: a page cannot ask for it."""
    seconds = session.recording.manifest["duration_ns"] / 1e9
    if not any(param.name == "interval_s" for param in analysis.params) or seconds <= 0:
        return {}
    rough = seconds / _STEPS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(lead * power for lead in (1, 2, 5, 10) if lead * power >= rough)
    return {"interval_s": float(f"{step:.3g}")}


def _result_table(result: Result, rows: list[tuple[Any, ...]], total: int, label: Words) -> str:
    if not rows:
        return ""
    name = f"t-{result.analysis.id.replace('/', '-')}"
    cut = ""
    if total > len(rows):
        words = both(fact("report/first_rows", rows=len(rows), total=total))
        cut = f'<span class="muted">{words}</span>'
    tools = search_field(name) + copy_button(name) + sql_link(result.analysis, "SQL") + cut
    body = table(name, result.columns, rows, label)
    return f'<div class="tools">{tools}</div>\n{body}'


def areas_of(session: Session, answers: Sequence[Answer]) -> list[Area]:
    """Answers with rows, or that could not be computed, by area, summaries first."""
    known = session.library.areas
    names = [*known, *sorted({answer.area for answer in answers} - set(known))]
    shown = sorted(
        (answer for answer in answers if answer.rows != 0),
        key=lambda answer: (_place_of(answer.analysis.id), answer.analysis.id),
    )
    by_area = {name: [answer for answer in shown if answer.area == name] for name in names}
    return [Area(name, known.get(name, name), found) for name, found in by_area.items() if found]


def _place_of(id_: str) -> int:
    return _FIRST.index(id_) if id_ in _FIRST else len(_FIRST)


def area_section(session: Session, area: Area, figures: Figures) -> str:
    """The analyses of one area."""
    cards = join(_card(session, answer, figures) for answer in area.answers)
    title = both(area.title)
    return f'<section class="area" id="area-{text(area.name)}"><h3>{title}</h3>{cards}</section>'


def _card(session: Session, answer: Answer, figures: Figures) -> str:
    drawn = [figures.add(answer.analysis, drawing) for drawing in answer.drawings]
    charts = f'<div class="charts">{join(drawn)}</div>' if drawn else answer.trouble
    given = " ".join(f"{key} = {value}" for key, value in answer.params.items())
    head = f"<h4>{analysis_title(session, answer.analysis)}</h4>{_count(answer)}"
    return f"""<section class="card analysis" id="{text(answer.place)}"><details class="fold">
<summary>{head} <code>{text(answer.analysis.id)}</code> <span class="muted">{text(given)}</span></summary>
{_help(session, answer.analysis)}
{charts}
{answer.table}
{source(session, answer)}
</details></section>"""


def _count(answer: Answer) -> str:
    if answer.rows is None:
        return f'<span class="muted">{both(fact("report/not_computed"))}</span>'
    return f'<span class="muted">{both(fact("report/rows", rows=answer.rows))}</span>'


def source(session: Session, answer: Answer) -> str:
    """The source of the numbers: the command that prints them all, and its SQL."""
    words = fact("report/how_these_numbers_computed")
    options = "".join(f" -p {key}={value}" for key, value in answer.params.items())
    command = f"sysdock show {shlex.quote(session.recording.folder.name)} {answer.analysis.id}{options}"
    filters = session.filters.describe()
    command += f" {filters}" if filters else ""
    return sql_block(answer.analysis, words, command, answer.params)


def analysis_title(session: Session, analysis: Analysis) -> str:
    """Its title in every language, as HTML."""
    return both(analysis_words(session.library, analysis))


def analysis_words(library: Library, analysis: Analysis) -> Words:
    """Its title, from its page if it has one."""
    return library.page(analysis).titles if analysis.page_path.exists() else analysis.title


def _help(session: Session, analysis: Analysis) -> str:
    """The explanation of its page, collapsed."""
    if analysis.page_path.exists():
        words = prose_blocks(session.library.page(analysis).texts)
    else:
        words = f"<p>{inline(analysis.text)}</p>"
    label = both(fact("report/what_shows"))
    return f'<details class="help"><summary><b aria-hidden="true">?</b> {label}</summary>{words}</details>'


def empty_list(session: Session, answers: Sequence[Answer]) -> str:
    """Analyses without rows, as one line that opens to their names."""
    empty = [answer for answer in answers if answer.rows == 0]
    if not empty:
        return ""
    words = both(fact("report/no_rows", analyses=len(empty)))
    items = "".join(
        f'<li id="{text(answer.place)}">{analysis_title(session, answer.analysis)} '
        f"<code>{text(answer.analysis.id)}</code>{source(session, answer)}</li>"
        for answer in empty
    )
    return f'<details class="card more" id="empty"><summary>{words}</summary><ul>{items}</ul></details>'


def not_computed(error: NotComputed) -> str:
    """The text in place of an answer that the engine could not compute, as HTML."""
    return f'<p class="warn">{both(error.sentence)}</p>'
