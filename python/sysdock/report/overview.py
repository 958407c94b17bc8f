"""The head of the report: the verdict in one line, what was recorded, when, where, and how completely."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from sysdock.analysis import Finding, Session
from sysdock.analysis.finding import by_rule, main_findings, total_gain
from sysdock.analysis.marks import marks_of
from sysdock.analysis.tracer import tracer_cost
from sysdock.errors import NotComputed
from sysdock.page.markup import Html, both, join, text
from sysdock.page.numbers import duration, moment, size
from sysdock.report.analyses import Answer
from sysdock.report.sources import sql_link
from sysdock.report.time_spent import where_bar
from sysdock.sections import Capture, Statement
from sysdock.sections.coverage import lost_of
from sysdock.sections.description import statements
from sysdock.sentences import Words, fact, facts_of, named
from sysdock.text import percent

# Number of findings that a reader sees before anything else.
_FIRST = 3
# Users that are named.
_USERS = 5
_USERS_SQL = """SELECT user_id, count(DISTINCT process_id) AS processes FROM processes
WHERE user_id IS NOT NULL GROUP BY user_id ORDER BY processes DESC, user_id"""
_TRACED = fact("report/all_times_include_overhead")


def _traced(session: Session) -> str:
    """A warning that times include the cost of a tracer, with its approximate size, as HTML."""
    if not session.recording.clock.get("includes_tracer"):
        return ""
    cost = tracer_cost(session)
    words = both(_TRACED) + (" " + both(cost.words) if cost else "")
    return f'<p class="note">{words}</p>'


def overview_section(session: Session, findings: Sequence[Finding], answers: Mapping[str, Answer]) -> str:
    """Verdict, counts and facts."""
    counts = {status: sum(f.status == status for f in findings) for status in ("unknown", "ok")}
    counts = {"finding": len(main_findings(findings)), **counts}
    labels = {
        "finding": both(fact("report/count_of_findings", number=counts["finding"])),
        "unknown": both(fact("report/inconclusive_3")),
        "ok": both(fact("report/passed_3")),
    }
    tiles = "".join(
        f'<div class="count {status}"><b>{number}</b>{labels[status]}</div>'
        for status, number in counts.items()
    )
    more = both(fact("report/how_recorded"))
    warnings = join(f'<p class="warn">{words}</p>' for words in _warnings(session))
    traced = _traced(session)
    says = f'<p class="says">{_verdict(session, findings)}</p>{_first_three(session, findings)}'
    return f"""<section class="card" id="overview"><div class="verdict">
<div><h1>{title(session)}</h1>{says}</div>
<div class="counts">{tiles}</div></div>
{where_bar(session, answers)}
{_list(_facts(session))}
<details class="more"><summary>{more}</summary>{_list(_further_facts(session))}
<p class="muted">{_where_facts_are(session)}</p></details>
{warnings}
{traced}</section>"""


def _where_facts_are(session: Session) -> str:
    command = Html(f"<code>sysdock info {text(shlex.quote(session.recording.folder.name))}</code>")
    return both(fact("report/prints_same_facts", command=command))


def title(session: Session) -> str:
    """The recorded subject, as HTML."""
    shown = both(session.subject)
    return f'<span class="mono">{shown}</span>' if session.recording.manifest.get("command") else shown


def _verdict(session: Session, findings: Sequence[Finding]) -> str:
    found = [finding for finding in main_findings(findings) if not finding.is_note]
    if not found and (stated := statements(session, session.recording.folder.name)):
        return join(f"{both(statement.text)} {_commands(statement)}" for statement in stated)
    if not found:
        return _nothing_large(findings)
    group = by_rule(found)[0]
    first, others = group[0], len(group) - 1
    subject = Html(f"<code>{text(first.subject)}</code>")
    what: Words = fact("report/title_and_subject", title=first.title, subject=subject)
    if others:
        what = fact("report/and_others", what=what, others=others)
    if first.gain_ns is None:
        return both(fact("report/look_first", what=what))
    gain = Html(sql_link(session.library.rule(first.rule), duration(total_gain(group))))
    return both(fact("report/largest_saving", gain=gain, what=what))


def _nothing_large(findings: Sequence[Finding]) -> str:
    """The verdict where nothing but notes was found, if that."""
    code = "minor_findings_only" if main_findings(findings) else "no_bottleneck_found"
    if any(finding.status == "unknown" for finding in findings):
        code += "_some_inconclusive"
    return both(fact(f"report/{code}"))


def _commands(statement: Statement) -> str:
    return join(f"<code>{text(command)}</code>" for command in statement.commands)


def _first_three(session: Session, findings: Sequence[Finding]) -> str:
    """The rules whose findings could save most, with links to what they found and what to do about it."""
    groups = by_rule(main_findings(findings))[:_FIRST]
    if not groups:
        return ""
    items = []
    for group in groups:
        first, gain = group[0], total_gain(group)
        amount = Html(sql_link(session.library.rule(first.rule), duration(gain)))
        won = both(fact("report/up", amount=amount)) if gain else ""
        place = text(first.rule.replace("/", "-"))
        link = f'<a href="#rule-{place}">{both(first.title)}</a>{won}'
        subject = f": <code>{text(first.subject)}</code>" if first.subject else ""
        items.append(f"<li>{link}{subject}</li>")
    return f'<ol class="first">{join(items)}</ol>'


def _facts(session: Session) -> list[tuple[str, str]]:
    """Essential facts about the recording: name and value as HTML."""
    recording, manifest = session.recording, session.recording.manifest
    unknown = both(fact("report/unknown"))
    clock = recording.clock
    started = moment(manifest["started_ns"]) if clock.get("kind") in ("epoch", "time_of_day") else unknown
    calls = f"{recording.rows('calls'):,}" if "calls" in recording.tables else unknown
    return [
        (both(fact("report/host")), text(manifest.get("host") or "") or unknown),
        (both(fact("report/started")), started),
        (
            both(fact("report/duration")),
            duration(manifest["duration_ns"]) if recording.has_clock else unknown,
        ),
        (both(fact("report/ended")), _ended(session)),
        (both(fact("report/system_calls")), calls),
        (both(fact("report/lost_events")), both(lost_of(recording.captures))),
    ]


def _further_facts(session: Session) -> list[tuple[str, str]]:
    """The method and source of the recording: for readers who doubt a number."""
    recording, manifest = session.recording, session.recording.manifest
    marks = (both(one.words) for one in marks_of(session))
    facts = [
        (both(fact("report/directory")), text(manifest.get("directory") or "")),
        (both(fact("report/understood")), join(_coverage(capture) for capture in recording.captures)),
        (both(fact("report/recorder")), text(_recorders(session))),
        (both(fact("report/input")), _sources(session)),
        (both(fact("report/recording")), text(recording.folder.name)),
        (both(fact("report/clock")), _clock(recording.clock.get("note"))),
        (both(fact("report/marks")), join(marks)),
        (both(fact("report/users")), _users(session)),
    ]
    return [(name, value) for name, value in facts if value]


def _clock(note: Sequence[Any] | None) -> str:
    return both(facts_of(note)) if note else ""


def _list(facts: Sequence[tuple[str, str]]) -> str:
    items = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    return f'<dl class="facts">{items}</dl>'


def _coverage(capture: Capture) -> str:
    understood, total = capture["understood"], capture["total"]
    unit = named("units", capture["unit"])
    if not total:
        words = fact("report/no_units", unit=unit)
    else:
        words = fact("report/units_understood", share=percent(understood, total), total=total, unit=unit)
    return f"<div>{both(words)}</div>"


def _recorders(session: Session) -> str:
    captures = session.recording.captures
    return ", ".join(" ".join([capture["recorder"], *(capture.get("options") or [])]) for capture in captures)


def _users(session: Session) -> str:
    """Whose processes are shown, where they are of several users: readers may be none of them."""
    if "processes" not in session.recording.tables:
        return ""
    try:
        rows = session.dicts(_USERS_SQL)
    except NotComputed as error:
        return both(error.words)
    if len(rows) < 2:
        return ""
    first = rows[:_USERS]
    more = len(rows) - len(first)
    named = ", ".join(f"{row['user_id']} ({row['processes']:,})" for row in first)
    code = "report/processes_of_more_users" if more else "report/processes_of_users"
    return both(fact(code, users=len(rows), named=named, more=more))


def _ended(session: Session) -> str:
    manifest = session.recording.manifest
    if manifest.get("exit_signal"):
        return both(fact("report/killed", signal=manifest["exit_signal"]))
    if manifest.get("exit_code") is None:
        return both(fact("report/unknown"))
    return both(fact("report/exit_status", status=manifest["exit_code"]))


def _sources(session: Session) -> str:
    """The logs that were imported; what a recorder wrote for itself is of no interest."""
    sources = session.recording.sources
    shown = [f"{text(source.get('path'))} ({size(source.get('bytes'))})" for source in sources[:3]]
    if len(sources) > 3:
        shown.append(both(fact("report/more_3", sources=len(sources) - 3)))
    return ", ".join(shown)


def _warnings(session: Session) -> list[str]:
    """Warnings to read before believing a number."""
    manifest = session.recording.manifest
    found = []
    if not manifest["complete"]:
        ended = session.recording.ended_by
        found.append(
            both(
                fact("report/recording_incomplete", ended=named("endings", ended)),
            )
        )
    if session.recording.lost_events:
        lost = f"{session.recording.lost_events:,}"
        found.append(
            both(
                fact("report/events_lost_actual_counts", lost=lost),
            )
        )
    if not session.recording.has_clock:
        found.append(
            both(
                fact("report/log_has_no_timestamps"),
            )
        )
    if not session.recording.has_durations:
        found.append(
            both(
                fact("report/log_has_no_durations"),
            )
        )
    for option, value in dataclasses.asdict(session.filters).items():
        if value:
            name = f"--{option.rstrip('_').replace('_', '-')}"
            option = Html(f"<code>{text(name if value is True else f'{name} {value}')}</code>")
            found.append(both(fact("report/filtered", option=option)))
    found += [both(note) for note in session.notes]
    return found
