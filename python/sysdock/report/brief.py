"""The report without pictures: Markdown for a ticket, JSON for a machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sysdock.analysis import Finding, Session
from sysdock.analysis.facts import callers, certainty, product_advice, share
from sysdock.analysis.finding import by_rule, main_findings, parts_of, total_gain
from sysdock.analysis.marks import marks_of
from sysdock.analysis.tracer import tracer_cost
from sysdock.analysis.writing import json_text
from sysdock.chart.drawing import title_in_words
from sysdock.errors import NotComputed
from sysdock.library import Analysis, Column
from sysdock.library.headings import heading
from sysdock.page.numbers import duration, measured, moment
from sysdock.sections.coverage import lost_of
from sysdock.sections.description import statements
from sysdock.sentences import fact, facts_from_json, is_source, named, say
from sysdock.text import percent, visible

# Analyses that a ticket shows, and how many rows of each.
_SHOWN = ("time/where", "io/summary", "io/files", "io/errors")
_ROWS = 10
_JSON_ROWS = 1000


class _Words:
    """The words of this report in a language."""

    def __init__(self, lang: str) -> None:
        self.lang = lang

    def __call__(self, name: str, **values: Any) -> str:
        return say(fact(f"brief/{name}", **values), self.lang)


def markdown(session: Session, lang: str = "en") -> str:
    """The report as Markdown: findings with advice, what was recorded, the largest rows of three analyses."""
    words = _Words(lang)
    findings = session.diagnose(lang)
    what = _code(say(session.subject, lang))
    lines = [f"# {words('title', what=what)}", "", *_findings(session, findings, words)]
    if cost := tracer_cost(session):
        lines += [say(cost.words, lang), ""]
    lines += [f"## {words('facts')}", "", *_facts(session, words), ""]
    for name in _SHOWN:
        lines += _analysis(session, name, words)
    return "\n".join(lines) + "\n"


def _findings(session: Session, findings: Sequence[Finding], words: _Words) -> list[str]:
    lines = []
    mains = by_rule(main_findings(findings))
    unknown = [finding for finding in findings if finding.status == "unknown"]
    if not mains and (stated := statements(session, session.recording.folder.name)):
        for statement in stated:
            lines += [
                say(statement.text, words.lang),
                "",
                *(f"    {shown}" for shown in statement.commands),
                "",
            ]
    elif not mains:
        lines += [words("nothing") + (f" {words('doubt')}" if unknown else ""), ""]
    else:
        lines += [f"## {words('findings')}", ""]
    for group in mains:
        gain = total_gain(group)
        won = f" ({words('note')})" if group[0].is_note else ""
        won = f" ({words('gain', gain=duration(gain))})" if gain else won
        lines += [f"### {group[0].title}{won}", ""]
        for finding in group:
            lines += _finding(session, finding, words)
            lines += [
                f"  - {words('explains')}: {part.title}: {_code(part.subject)}: {_plain(str(part.reason))}"
                for part in parts_of(findings, finding)
            ]
        if group[-1].others:
            lines.append(f"- ... {group[-1].others}")
        lines += ["", f"**{words('do')}:** {group[0].advice}", ""]
        for advice in product_advice(group):
            lines += [say(advice, words.lang), ""]
    if unknown:
        lines += [f"## {words('unknown')}", ""]
        lines += [f"- {finding.title}: {_plain(str(finding.reason))}" for finding in unknown] + [""]
    fine = sum(finding.status == "ok" for finding in findings)
    return [*lines, words("fine", count=fine), ""]


def _finding(session: Session, finding: Finding, words: _Words) -> list[str]:
    line = f"- {_code(finding.subject)}: {_plain(str(finding.reason))}"
    facts = [say(each, words.lang) for each in (callers(finding), share(finding), certainty(finding)) if each]
    if facts:
        line += f"\n  {_plain(', '.join(facts))}"
    if finding.source:
        line += f"\n  {words('source')}: {_code(finding.source)}"
    if not finding.evidence:
        return [line]
    command = f"sysdock show {session.recording.folder.name} {finding.evidence}"
    return [line, f"  {words('evidence')}: {_code(command)}"]


def _facts(session: Session, words: _Words) -> list[str]:
    manifest = session.recording.manifest
    recording = session.recording
    clock = recording.clock.get("kind") in ("epoch", "time_of_day")
    facts = {
        "command": _code(manifest["command"]) if manifest.get("command") else "-",
        "host": _plain(manifest.get("host") or "-"),
        "started": moment(manifest["started_ns"]) if clock else "-",
        "duration": duration(manifest["duration_ns"]) if recording.has_clock else "-",
    }
    rows = [(words(key), value) for key, value in facts.items()]
    for capture in recording.captures:
        share = percent(capture["understood"], capture["total"])
        name = words("understood", unit=named("units", capture["unit"]))
        rows.append((name, f"{share} / {capture['total']:,}"))
    how = say(named("endings", recording.ended_by), words.lang)
    ended = words("yes") if manifest["complete"] else f"{words('no')} ({how})"
    rows += [(words("mark"), _plain(say(one.words, words.lang))) for one in marks_of(session)]
    rows += [(words("lost"), say(lost_of(recording.captures), words.lang)), (words("complete"), ended)]
    return ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]


def _analysis(session: Session, name: str, words: _Words) -> list[str]:
    analysis = session.answering(session.library.analysis(name))
    if analysis is None:
        return []
    lang = words.lang
    title = say(title_in_words(session, analysis), lang)
    try:
        result = session.run(analysis)
        rows = result.rows(_ROWS)
        total = result.row_count()
    except NotComputed as error:
        return [f"## {title} (`{analysis.id}`)", "", _plain(say(error.sentence, lang)), ""]
    counted = words("rows", shown=len(rows), total=total)
    lines = [f"## {title} (`{analysis.id}`)", "", f"{counted}.", ""]
    heads = [column.name if is_source(lang) else heading(column, lang) for column in result.columns]
    lines += ["| " + " | ".join(heads) + " |"]
    lines += ["|" + "---|" * len(result.columns)]
    lines += ["| " + " | ".join(_cells(result.columns, row, lang)) + " |" for row in rows]
    return [*lines, ""]


def _cells(columns: Sequence[Column], row: tuple[Any, ...], lang: str) -> list[str]:
    return [
        measured(value, column.unit)
        if column.type in ("BIGINT", "INTEGER", "DOUBLE")
        else _plain(say(facts_from_json(value), lang))
        if column.unit == "fact" and value
        else _code(value)
        for column, value in zip(columns, row, strict=True)
    ]


_MARKUP = "\\`*_{}[]<>#|~!&"


def _plain(text: str) -> str:
    """Recorded words in a line of Markdown: nothing in them is markup."""
    words = visible(" ".join(text.split()))
    return "".join(f"\\{char}" if char in _MARKUP else char for char in words)


def _code(value: Any) -> str:
    """A recorded name as code; a bar would end a cell, a back-tick the code."""
    if value is None or value == "":
        return ""
    text = visible(str(value).replace("\n", " ")).strip() or "' '"
    fence = "``" if "`" in text else "`"
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")


def as_json(session: Session, lang: str = "en") -> str:
    """The report as one JSON object.

    Its keys: `recording`, `tracer_cost`, `findings`, and `analyses` (columns, rows, row_count).
    """
    findings = [_finding_object(finding) for finding in session.diagnose(lang)]
    analyses = {}
    for analysis in session.answerable():
        analyses[analysis.id] = _analysis_object(session, analysis)
    cost = tracer_cost(session)
    answer = {
        "format": "sysdock report",
        "version": 1,
        "recording": session.recording.manifest | {"tables": sorted(session.recording.tables)},
        "filters": session.filters.describe(),
        "tracer_cost": cost and {"each_ns": cost.each_ns, "calls": cost.calls},
        "findings": findings,
        "analyses": analyses,
    }
    return json_text(answer, indent=1) + "\n"


def _analysis_object(session: Session, analysis: Analysis) -> dict[str, Any]:
    """Title, columns and rows; in place of rows `not_computed` where the engine could not compute them."""
    columns = [
        {"name": column.name, "type": column.type, "unit": column.unit, "text": column.text}
        for column in analysis.columns
    ]
    head = {"title": analysis.title, "columns": columns}
    try:
        result = session.run(analysis).keep()
        return {**head, "row_count": result.row_count(), "rows": result.dicts(_JSON_ROWS)}
    except NotComputed as error:
        return {**head, "row_count": None, "rows": None, "not_computed": error.fact}


def _finding_object(finding: Finding) -> dict[str, Any]:
    names: tuple[str, ...] = ("rule", "status", "subject", "value", "limit_value", "cost_ns", "gain_ns")
    names += ("certainty", "certainty_reason", "share", "share_of", "reason")
    names += (
        "title",
        "advice",
        "evidence",
        "file",
        "process",
        "program",
        "from_s",
        "until_s",
        "others",
        "source",
        "product",
        "product_advice",
    )
    found = {name: getattr(finding, name) for name in names}
    part_of = finding.part_of and {"rule": finding.part_of[0], "subject": finding.part_of[1]}
    return {**found, "part_of": part_of}
