"""Runs the rules, judges how far their answers can be trusted, and puts them in order."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from sysdock.analysis.attribution import with_callers
from sysdock.analysis.finding import Finding, fold, likely_gain, with_minor
from sysdock.analysis.least_data import too_little
from sysdock.analysis.products import with_products
from sysdock.analysis.session import values_of
from sysdock.analysis.side_by_side import side_by_side
from sysdock.analysis.source_lines import with_source_lines
from sysdock.analysis.tracer import untraced
from sysdock.errors import NotComputed, UserError
from sysdock.library import Analysis, Page
from sysdock.library.page import heading
from sysdock.library.rule_shape import CERTAINTIES, STATUSES
from sysdock.recording import quote
from sysdock.recording.manifest import is_not_requested
from sysdock.sentences import Prose, Words, fact, languages, listed, named, prose, sentences
from sysdock.text import percent

if TYPE_CHECKING:
    from sysdock.analysis.session import Session

# Below this share of understood lines, what a rule did not see may well be in the lines that were not read.
ENOUGH_UNDERSTOOD = 0.99
# The same of files that a scan could read; the tables of places of files and blocks.
_ENOUGH_READ = 0.99
_PLACES = {"inodes", "extents", "layout", "free_extents"}
# A finding that saves less than this part of the time or this time, whichever is greater, is a note.
LEAST_SAVING = 0.02
LEAST_SAVING_NS = 10_000_000
# Subjects of one rule that are kept: those that could save most. `others` of the last counts the rest.
MOST_SUBJECTS = 10


def diagnose(session: Session, alongside: Callable[[Session], None] | None = None) -> list[Finding]:
    """Findings of all rules, largest saving first, what another explains after it; then unknown, then ok.

    `alongside`: what else to ask, by one of the threads that run the rules.
    """
    rules = [rule for rule in session.library.rules() if not _is_beyond(session, rule)]

    def work(mine: Session, rule: Analysis | None) -> list[Finding]:
        if rule:
            return _beyond_reach(mine, rule) or judge(mine, rule)
        if alongside:
            alongside(mine)
        return []

    found = [finding for findings in side_by_side(session, work, [None, *rules]) for finding in findings]
    found = with_minor(untraced(session, found), _least_saving_ns(session))
    return fold(_placed(session, found))


def _least_saving_ns(session: Session) -> int:
    """Least saving of a finding that is more than a note; 0 if the recording has no times."""
    recording = session.recording
    if not (recording.has_clock and recording.has_durations):
        return 0
    return max(LEAST_SAVING_NS, int(LEAST_SAVING * recording.manifest["duration_ns"]))


def _is_beyond(session: Session, rule: Analysis) -> bool:
    """Whether a rule is about something that was not requested for this recording."""
    missing = [session.library.table(name) for name in session.missing(rule)]
    if "ranks" in session.contents and not all(table.merged for table in missing):
        # A merge leaves these out: they say something in the recording of each rank only.
        return True
    return not {table.about for table in missing} - {None} <= session.recording.families | session.contents


def diagnose_by(session: Session, rule: Analysis, params: Mapping[str, Any]) -> list[Finding]:
    """All that one rule finds, with these parameters, largest saving first."""
    found = untraced(session, judge(session, rule, params, most=None))
    return _placed(session, found)


def _placed(session: Session, found: Iterable[Finding]) -> list[Finding]:
    """Findings in order, with source line, callers and product if known."""
    with_lines = with_source_lines(session, sorted(found, key=_order))
    return sorted(with_products(session.library, with_callers(session, with_lines)), key=_order)


def judge(
    session: Session,
    rule: Analysis,
    params: Mapping[str, Any] | None = None,
    most: int | None = MOST_SUBJECTS,
) -> list[Finding]:
    """Findings of one rule, for at most `most` subjects; `unknown` for a rule that cannot be run.

    `params`: values in place of those of the session, which go before the defaults of its parameters. The
    sentences state those that were bound.
    """
    params = {**session.limits.get(rule.id, {}), **(params or {})}
    values = values_of(rule, params)
    page = _page(session, rule)
    if lacking := lack(session, rule):
        return [_without_values(rule, page, "unknown", lacking)]
    if session.filters.only_errors:
        return [_without_values(rule, page, "unknown", fact("diagnosis/only_errors"))]
    try:
        result = session.run(rule, params)
        rows = result.dicts()
    except NotComputed as error:
        return [_without_values(rule, page, "unknown", error.sentence)]
    if not rows:
        problem = "the rule returned no row"
        raise UserError(
            problem, "a rule always returns at least one row: finding, ok or unknown", result.place
        )
    findings = [_finding(rule, page, values, row) for row in rows]
    return _with_doubts(session, rule, _cut(sorted(findings, key=_order), most))


def _beyond_reach(session: Session, rule: Analysis) -> list[Finding]:
    """A finding `ok` of a rule for which the recording is too small; empty if the rule has to be run."""
    if session.filters.only_errors:
        return []
    values = values_of(rule, session.limits.get(rule.id, {}))
    reason = too_little(session, rule, values)
    if reason is None:
        return []
    return _with_doubts(session, rule, [_without_values(rule, _page(session, rule), "ok", reason)])


def _with_doubts(session: Session, rule: Analysis, findings: list[Finding]) -> list[Finding]:
    """The findings; what is `ok` in a recording that may lack the reason for it is `unknown`."""
    doubt = doubts(session, session.library.sources(rule.needs))
    if session.filters.only_ok:
        doubt = fact("diagnosis/nothing_found_but_only_2")
    return [_doubted(finding, doubt) if doubt else finding for finding in findings]


def lack(session: Session, rule: Analysis) -> Words | None:
    """Which tables of a rule the recording has not; None where it has all."""
    missing = session.missing(rule)
    if not missing:
        return None
    families = _not_requested(session, missing)
    return sentences(
        fact("diagnosis/tables_missing", number=len(missing), tables=listed(missing)),
        fact("diagnosis/how_to_record", families=listed(f"`{name}`" for name in families))
        if families
        else None,
    )


def _not_requested(session: Session, missing: Iterable[str]) -> list[str]:
    """The families of the recorder that write these tables and were not requested."""
    wanted = {session.library.table(name).about for name in missing}
    states = [state for capture in session.recording.captures for state in capture.get("families") or []]
    found = {state["family"] for state in states if is_not_requested(state)}
    return sorted(found & (wanted - {None}))


def _cut(findings: list[Finding], most: int | None) -> list[Finding]:
    if most is None or len(findings) <= most:
        return findings
    last = dataclasses.replace(findings[most - 1], others=len(findings) - most)
    return [*findings[: most - 1], last]


def _page(session: Session, rule: Analysis) -> Page:
    """The page of a rule; one without a page is still run (`sysdock check` says that it is missing)."""
    if not rule.page_path.exists():
        return Page(prose(rule.title), {heading("what_to_do", languages()[0]): rule.text}, [])
    return session.library.page(rule)


def doubts(session: Session, tables: Iterable[str]) -> Words | None:
    """Why an `ok` read from `tables` cannot be trusted; None where it can."""
    try:
        return _doubts(session, set(tables))
    except NotComputed as error:
        return fact("diagnosis/nothing_found_but_how", why=error.words)


def _doubts(session: Session, tables: set[str]) -> Words | None:
    about = {session.library.table(name).about for name in tables} - {None}
    captures = [capture for capture in session.recording.captures if not about or about & _families(capture)]
    if not all(capture["complete"] for capture in captures):
        return fact("diagnosis/nothing_found_but_recording")
    for capture in captures:
        if doubt := _doubt_of_capture(session, capture, tables):
            return doubt
    lossy = [name for name in tables if name in session.recording.tables and session.recording.lost(name)]
    lost = sum(map(session.recording.lost, lossy)) or sum(capture["lost"] for capture in captures)
    if lost:
        return fact("diagnosis/nothing_found_but_events", lost=lost)
    return None


def _families(capture: Mapping[str, Any]) -> set[str]:
    return {state["family"] for state in capture.get("families") or []}


def _doubt_of_capture(session: Session, capture: dict[str, Any], tables: set[str]) -> Words | None:
    """A remark that too little of the input was understood; of a scan, that too little was read."""
    if "scan" in _families(capture):
        return _doubt_of_scan(session, tables)
    share = capture["understood"] / capture["total"] if capture["total"] else 1.0
    if share >= ENOUGH_UNDERSTOOD:
        return None
    shown = percent(capture["understood"], capture["total"])
    return fact("diagnosis/nothing_found_but_only", shown=shown, unit=named("units", capture["unit"]))


def _doubt_of_scan(session: Session, tables: set[str]) -> Words | None:
    """Parts that a scan could not read: blocks, and files."""
    if not _PLACES & tables:
        return None
    if "import_issues" in session.recording.tables:
        [(kinds,)] = session.fetch("SELECT count(*) FROM import_issues WHERE NOT understood")
        if kinds:
            return fact("sections/parts_not_read")
    [(files, unread)] = session.fetch("SELECT sum(files), sum(unread_files) FROM file_systems")
    if not files or (files - unread) / files >= _ENOUGH_READ:
        return None
    share = percent(files - unread, files)
    return fact("sections/only_share_read", share=share)


def _doubted(finding: Finding, doubt: Words) -> Finding:
    if finding.status != "ok":
        return finding
    return dataclasses.replace(finding, status="unknown", reason=doubt)


def reasons(rule: Analysis, params: Mapping[str, Any], row: Mapping[str, Any]) -> Prose:
    """The sentences of a rule for one of its rows (by column).

    UserError: a status that is none, or one that the rule has no sentence for.
    """
    place, status, variant = str(rule.sql_path), row["status"], row.get("variant")
    if status not in STATUSES:
        raise UserError(f"status `{status}` is not one of {', '.join(STATUSES)}", place=place)
    values = {**params, **row}
    units = {param.name: param.unit for param in rule.params} | {c.name: c.unit for c in rule.columns}
    try:
        return Prose({lang: rule.says.say(status, variant, lang, values, units) for lang in languages()})
    except KeyError:
        name = f"{status}.{variant}" if variant else status
        hint = " and ".join(f"`says: {name} {lang}  ...`" for lang in languages())
        raise UserError(f"no sentence for {name}", f"write {hint} in the header", place) from None


def _finding(rule: Analysis, page: Page, params: Mapping[str, Any], row: dict[str, Any]) -> Finding:
    reason = reasons(rule, params, row)
    if row["certainty"] not in (None, *CERTAINTIES):
        fact = f"certainty `{row['certainty']}` is not one of {', '.join(CERTAINTIES)}"
        raise UserError(fact, place=str(rule.sql_path))
    explained_by = tuple(name.strip() for name in (row.get("explained_by") or "").split(",") if name.strip())
    return Finding(
        rule=rule.id,
        status=row["status"],
        subject=row["subject"] or "",
        reason=reason,
        evidence=_evidence(rule, row) if row["status"] == "finding" else None,
        explained_by=explained_by,
        cost_calls=row.get("cost_calls"),
        urgent=bool(row.get("urgent")),
        circumstance=bool(row.get("circumstance")),
        value=row["value"],
        limit_value=row["limit_value"],
        cost_ns=row["cost_ns"],
        # Only findings promise a gain.
        gain_ns=row["gain_ns"] if row["status"] == "finding" else None,
        certainty=row["certainty"],
        certainty_reason=page.how_sure(row["certainty"], row.get("variant")),
        variant=row.get("variant"),
        file=row.get("file"),
        process=row.get("process"),
        from_s=row.get("from_s"),
        until_s=row.get("until_s"),
        **_words(rule, page, row.get("variant")),
    )


def _without_values(rule: Analysis, page: Page, status: str, reason: Words) -> Finding:
    return Finding(
        rule=rule.id,
        status=status,
        subject="",
        reason=reason,
        evidence=None,
        value=None,
        limit_value=None,
        cost_ns=None,
        gain_ns=None,
        certainty=None,
        **_words(rule, page),
    )


class _Words(TypedDict):
    """Texts of a finding, from the page of its rule."""

    title: Words
    advice: Words


def _words(rule: Analysis, page: Page, variant: str | None = None) -> _Words:
    return {"title": page.titles, "advice": page.advice(variant) or ""}


def _evidence(rule: Analysis, row: Mapping[str, Any]) -> str | None:
    """The analysis and filters that show the lines of a finding, quoted for a shell.

    `{name}` stands for a column of the rule, `{first}` for the first word of the subject.
    `{name*}` for all that lies below it. An option whose value is NULL is left out.
    """
    if rule.evidence is None:
        return None
    words = {**row, "first": (row["subject"] or "").partition(" ")[0]}

    def option(found: re.Match[str]) -> str:
        value = words.get(found[2])
        if value is None:
            return ""
        text = quote(value) if isinstance(value, str) else f"{value:.9f}".rstrip("0").rstrip(".")
        return f"{found[1] or ''}{shlex.quote(text + ('/*' if found[3] else ''))}"

    return re.sub(r"(\s--?[a-z-]+ )?\{([a-z_0-9]+)(\*?)\}", option, rule.evidence)


def _order(finding: Finding) -> tuple[Any, ...]:
    """Urgent findings first, then by likely saving, then notes, then circumstances."""
    cost = finding.cost_ns if finding.cost_ns is not None else -1
    rank = STATUSES.index(finding.status), not finding.urgent, finding.circumstance, finding.is_note
    return *rank, -likely_gain(finding), -cost, finding.rule, finding.subject
