"""Writes the report: overview, timeline, findings, all analyses, environment, issues of the import."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from sysdock.analysis import Finding, Session
from sysdock.analysis.finding import by_rule, main_findings
from sysdock.errors import NotComputed
from sysdock.library import Column
from sysdock.page.document import document, language_names
from sysdock.page.markup import attribute, both, join, text
from sysdock.page.tables import table
from sysdock.report.analyses import (
    ROWS,
    Answer,
    Area,
    Figures,
    answers_of,
    area_section,
    areas_of,
    empty_list,
    not_computed,
)
from sysdock.report.findings import findings_section
from sysdock.report.overview import overview_section
from sysdock.report.time_spent import timeline_section
from sysdock.sentences import Words, fact, say

ISSUES = 50


def report(session: Session, lang: str = "en") -> str:
    """The report as HTML text."""
    findings = session.findings()
    answers = answers_of(session, lang)
    figures = Figures(session.library)
    timeline = timeline_section(session, answers, figures)
    if timeline:
        # Its charts are at the top; its card has the table.
        answers["time/timeline"] = dataclasses.replace(answers["time/timeline"], drawings=[])
    areas = areas_of(session, list(answers.values()))
    body = join(
        [
            _top(lang),
            f'<div class="frame">{_contents(session, findings, areas, bool(timeline))}<main>',
            overview_section(session, findings, answers),
            _no_script(),
            _range(),
            timeline,
            findings_section(session, findings),
            _analyses(session, areas, list(answers.values()), figures),
            _undefined_tables(session),
            _environment(session),
            _issues(session),
            "</main></div>",
        ]
    )
    name = say(session.subject, lang)
    return document(f"{name} - sysdock", lang, body, figures.specs)


def _analyses(session: Session, areas: Sequence[Area], answers: Sequence[Answer], figures: Figures) -> str:
    head = both(fact("report/what_program_did"))
    every, none = both(fact("report/open_all")), both(fact("report/close_all"))
    buttons = (
        f'<div class="tools" data-folds hidden><button type="button" data-open="1">{every}</button>'
        f'<button type="button" data-open="">{none}</button></div>'
    )
    cards = join(area_section(session, area, figures) for area in areas)
    return f'<section id="analyses"><h2>{head}</h2>{buttons}{cards}{empty_list(session, answers)}</section>'


def _contents(
    session: Session, findings: Sequence[Finding], areas: Sequence[Area], has_timeline: bool
) -> str:
    """The sections of the page, and how much is in each."""
    found = len(by_rule(main_findings(findings)))
    links = [_link("overview", both(fact("report/overview")))]
    links += [_link("timeline", both(fact("report/timeline")))] if has_timeline else []
    links += [_link("findings", both(fact("report/findings")), found)]
    below = "".join(_link(f"area-{text(area.name)}", both(area.title), len(area.answers)) for area in areas)
    count = sum(len(area.answers) for area in areas)
    links += [_link("analyses", both(fact("report/analyses")), count, below)]
    links += [
        _link("environment", both(fact("report/environment"))),
        _link("issues", both(fact("report/import"))),
    ]
    label = attribute("aria-label", fact("report/contents"))
    return f'<nav class="contents"{label}><ul>{"".join(links)}</ul></nav>'


def _link(place: str, words: str, count: int | None = None, below: str = "") -> str:
    number = "" if count is None else f' <span class="muted">{count:,}</span>'
    nested = f"<ul>{below}</ul>" if below else ""
    return f'<li><a href="#{place}">{words}</a>{number}{nested}</li>'


def _top(lang: str) -> str:
    languages = _switch("lang", fact("report/language"), language_names(), lang)
    names = [
        ("auto", both(fact("report/auto"))),
        ("light", both(fact("report/light"))),
        ("dark", both(fact("report/dark"))),
    ]
    themes = _switch("theme", fact("report/theme"), names, "auto")
    return f'<header class="top"><span class="mark">sysdock</span>{languages}{themes}</header>'


def _switch(name: str, label: Words, choices: list[tuple[str, str]], chosen: str) -> str:
    """Radio buttons: the style sheet reads them, so that the switch works without a script."""
    inputs = "".join(
        f'<input type="radio" name="{name}" id="{name}-{value}" value="{value}"'
        f'{" checked" * (value == chosen)}><label for="{name}-{value}">{words}</label>'
        for value, words in choices
    )
    return f'<div class="switch" role="radiogroup"{attribute("aria-label", label)}>{inputs}</div>'


def _no_script() -> str:
    words = both(
        fact("report/charts_need_javascript_tables"),
    )
    return f'<noscript><p class="warn">{words}</p></noscript>'


def _range() -> str:
    """The time range that all charts over time show; the page's code shows it and fills it in."""
    words = both(fact("report/time_range_s"))
    hint = both(fact("report/or_drag_over_chart"))
    return (
        f'<form id="range" class="tools" hidden><label>{words} '
        '<input type="number" name="from" step="any"></label>'
        '<label>- <input type="number" name="until" step="any"></label>'
        f'<button type="submit">{both(fact("report/show"))}</button>'
        f'<button type="reset">{both(fact("report/all"))}</button> <span class="muted">{hint}</span></form>'
    )


def _undefined_tables(session: Session) -> str:
    """The first rows of tables of a recorder that is not known here: no analysis reads them."""
    names = [name for name in session.recording.tables if not session.library.has_table(name)]
    if not names:
        return ""
    head = both(fact("report/tables_without_definition"))
    return (
        f'<section id="others"><h2>{head}</h2>{join(_undefined(session, name) for name in names)}</section>'
    )


def _undefined(session: Session, name: str) -> str:
    columns = [Column(c.name, c.sql_type, None, c.text) for c in session.views.table(name).columns]
    head = f"<h3><code>{text(name)}</code></h3>"
    try:
        rows = session.fetch(f'SELECT * FROM "{name}" LIMIT {ROWS}') if columns else []
    except NotComputed as error:
        return f'<div class="card">{head}{not_computed(error)}</div>'
    total = session.recording.rows(name)
    words = both(fact("report/first_rows_2", rows=len(rows), total=total))
    shown = table(f"t-{text(name)}", columns, rows, name)
    return f'<div class="card">{head}<p class="muted">{words}</p>{shown}</div>'


def _environment(session: Session) -> str:
    head = f'<section id="environment"><h2>{both(fact("report/environment"))}</h2>'
    if "environment" not in session.recording.tables:
        return f'{head}<p class="empty">{both(fact("report/not_recorded"))}</p></section>'
    try:
        rows = session.fetch("SELECT section, name, value, source FROM environment")
    except NotComputed as error:
        return f"{head}{not_computed(error)}</section>"
    table_ = session.library.table("environment")
    # Values that say how something was measured, or why it is unknown, are facts.
    units = {"value": "fact"}
    columns = [
        Column(column.name, "VARCHAR", units.get(column.name), column.text) for column in table_.columns
    ]
    words = both(fact("report/entries", rows=len(rows)))
    body = table("t-environment", columns, rows, fact("report/environment"))
    return f'{head}<details class="card fold"><summary>{words}</summary>{body}</details></section>'


def _issues(session: Session) -> str:
    head = f'<section id="issues"><h2>{both(fact("report/issues_import"))}</h2>'
    if "import_issues" not in session.recording.tables:
        return f'{head}<p class="empty">{both(fact("report/not_recorded"))}</p></section>'
    try:
        return f"{head}{_issue_table(session)}</section>"
    except NotComputed as error:
        return f"{head}{not_computed(error)}</section>"


def _issue_table(session: Session) -> str:
    """Number of issues of each kind, and the first of them."""
    [(total,)] = session.fetch("SELECT count(*) FROM import_issues")
    if not total:
        words = both(fact("report/none_every_line_parsed"))
        return f'<p class="card">{words}</p>'
    kinds = session.fetch("SELECT issue, count(*) FROM import_issues GROUP BY issue ORDER BY 2 DESC, 1")
    listed = ", ".join(f"{text(kind)} {count:,}" for kind, count in kinds)
    names = ("source", "line", "issue", "understood", "detail", "excerpt")
    rows = session.fetch(f"SELECT {', '.join(names)} FROM import_issues LIMIT {ISSUES}")
    texts = {column.name: column for column in session.library.table("import_issues").columns}
    columns = [
        Column(name, "INTEGER" if name == "line" else "VARCHAR", texts[name].unit, texts[name].text)
        for name in names
    ]
    words = both(fact("report/first", rows=len(rows), total=total))
    shown = table("t-issues", columns, rows, fact("report/issues_import"))
    return (
        f'<details class="card fold"><summary>{listed}</summary><p class="muted">{words}</p>{shown}</details>'
    )
