"""The one-screen answer after a recording, and the text form of a diagnosis."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sysdock.analysis.facts import callers, certainty, certainty_word, product_advice, share
from sysdock.analysis.finding import by_rule, main_findings, parts_of, total_gain
from sysdock.analysis.marks import marks_of
from sysdock.sections import Capture, sections_of
from sysdock.sections.coverage import lost_of
from sysdock.sections.description import statements
from sysdock.sentences import Words, catalogue, fact, listed, named, say
from sysdock.text import (
    fitted,
    human_ns,
    pad,
    percent,
    printable,
    shorten,
    width,
    wrapped,
)

if TYPE_CHECKING:
    from sysdock.analysis import Finding, Session

LINES, COLUMNS = 24, 100
# On a narrower terminal the tables show only the first and the third of their numbers.
_ALL_NUMBERS_FROM = 80
_NUMBER = 13
# A rule gets its title, and at most this many lines of reasons, and of advice.
_MOST_LINES = 3
_MOST_MARKS = 2


class _Words:
    """The words of the first screen in a language."""

    def __init__(self, lang: str) -> None:
        self.lang = lang

    def __call__(self, name: str, **values: Any) -> str:
        return say(fact(f"screen/{name}", **values), self.lang)

    def listed(self, parts: Iterable[Words]) -> str:
        """Facts of one line."""
        return say(listed(parts), self.lang)


def words_to_paint(lang: str) -> dict[str, str]:
    """Names of statuses and headings on the first screen, for `painted`."""
    statuses = {state: f"status_{state}" for state in ("finding", "note", "unknown", "ok")}
    names = {**statuses, **{name: name for name in ("findings", "do", "next", "report")}}
    return {name: catalogue().template(f"screen/{code}", lang) for name, code in names.items()}


def answer_lines(session: Session, report: Path | None, lang: str, columns: int | None = None) -> list[str]:
    """The answer on one screen: what ran, top calls and files, findings, what to type next.

    columns: of the terminal; at most `COLUMNS` are used.
    """
    words, room = _Words(lang), min(columns or COLUMNS, COLUMNS)
    tops: list[str] = []
    findings = session.diagnose(lang, alongside=lambda other: tops.extend(_tops(other, lang, room)))
    described = statements(session, str(session.recording.folder))
    lines = [*_head(session, words), *tops]
    lines += fitted((printable(say(statement.text, lang)) for statement in described), columns)
    tail = _tail(session, report, words)
    lines += _findings(findings, lang, LINES - len(lines) - len(tail), room)
    return [shorten(line.rstrip(), room) for line in [*lines, *tail]]


def _head(session: Session, words: _Words) -> list[str]:
    recording, manifest = session.recording, session.recording.manifest
    facts = [
        manifest.get("host") or "-",
        human_ns(manifest["duration_ns"]) if recording.has_clock else words("no_clock"),
        *(_coverage(capture, words) for capture in recording.captures),
    ]
    if not manifest["complete"]:
        facts.append(words("incomplete", how=named("endings", recording.ended_by)))
    marks = [words("mark", mark=one.words) for one in marks_of(session)[:_MOST_MARKS]]
    head = [say(session.subject, words.lang), ", ".join(facts), *marks]
    return [*map(printable, head), ""]


def _coverage(capture: Capture, words: _Words) -> str:
    total, unit = capture["total"], named("units", capture["unit"])
    return words(
        "understood",
        share=percent(capture["understood"], total),
        total=total,
        unit=unit,
        lost=lost_of([capture]),
    )


def _tops(session: Session, lang: str, room: int) -> list[str]:
    """The tables of all sections."""
    lines = []
    for section in sections_of(session):
        for table in section.screen(session):
            heads = [say(column, lang) for column in table.columns]
            lines.append(_row(say(table.title, lang), heads, room))
            lines += ["  " + printable(say(table.trouble, lang))] if table.trouble else []
            names = [_of_part(name, lang) if table.of_parts else name for name, _ in table.rows]
            lines += [
                _row("  " + printable(name), numbers, room)
                for name, (_, numbers) in zip(names, table.rows, strict=True)
            ]
    return lines


def _of_part(name: str, lang: str) -> str:
    """The name of a part and its detail: words that an analysis chose itself."""
    part, comma, detail = name.partition(", ")
    words = fact("screen/part_detail", part=part, detail=detail) if comma else fact("screen/part", part=part)
    return say(words, lang)


def _row(name: str, numbers: Sequence[str], room: int) -> str:
    shown = numbers if room >= _ALL_NUMBERS_FROM else (numbers[0], numbers[2])
    left = room - _NUMBER * len(shown)
    return pad(shorten(name, left, middle=True), left) + "".join(
        pad(number, _NUMBER, right=True) for number in shown
    )


def _findings(findings: list[Finding], lang: str, room: int, columns: int) -> list[str]:
    """Findings by rule, the largest saving first; the last line gives the number of rules that are left
    out.
    """
    words = _Words(lang)
    lines = ["", _counts(findings, words)]
    room -= len(lines)
    groups = by_rule(main_findings(findings))
    blocks = [_Block(group, lang, columns) for group in groups]
    fitting = len(blocks) if _Block.LEAST * len(blocks) <= room else (room - 1) // _Block.LEAST
    spare = room - _Block.LEAST * fitting - (fitting < len(blocks))
    for block in blocks[:fitting]:
        more = min(spare, block.wanted - _Block.LEAST)
        spare -= more
        lines += block.lines(_Block.LEAST + more)
    if fitting < len(blocks):
        return [*lines, "  " + words("more", count=len(blocks) - fitting)]
    unknown = [finding for finding in findings if finding.status == "unknown"]
    return lines + [
        f"  {words('status_unknown')} {say(each.title, lang)}: {printable(say(each.reason, lang))}"
        for each in unknown[:spare]
    ]


class _Block:
    """The lines of one rule: title and gain, reasons, facts, advice; cut to the available room.

    Facts are whose calls it is about, their part of the time and the certainty. Of several findings, each has
    its part of the time in front of its reason, and how sure the first one is stands below all of them. Where
    there is no room for a line of facts, the title says how sure it is. What helps a product comes last.
    """

    LEAST = 3

    def __init__(self, group: Sequence[Finding], lang: str, columns: int) -> None:
        first, indent, words = group[0], "    ", _Words(lang)
        self.alone = len(group) == 1
        self.columns, self.words = columns, words
        self.gain = _gain(total_gain(group), words)
        self.sure = say(certainty_word(first), lang)
        subject = first.subject if self.alone else words("several", count=len(group))
        self.what = printable(f"{say(first.title, lang)}: {subject}" if subject else say(first.title, lang))
        if self.alone:
            self.reasons = wrapped(printable(say(first.reason, lang)), columns, indent)
        else:
            half = columns // 2
            self.reasons = [
                f"{indent}{shorten(printable(f.subject), half, middle=True)}{_brackets(f, lang)}: "
                f"{printable(say(f.reason, lang))}"
                for f in group
            ]
        facts = [callers(first), share(first), certainty(first)] if self.alone else [certainty(first)]
        described = words.listed(printable(say(each, lang)) for each in facts if each)
        self.facts = wrapped(_capital(described), columns, indent) if described else []
        self.advice = wrapped(words("do") + printable(say(first.advice, lang)), columns, indent)
        more = [printable(say(advice, lang)) for advice in product_advice(group)[:1]]
        self.product = [line for advice in more for line in wrapped(advice, columns, indent)]
        self.only = wrapped(words("do") + more[0], columns, indent) if more else self.advice

    @property
    def wanted(self) -> int:
        """Lines it would fill."""
        long = sum(min(len(part), _MOST_LINES) for part in (self.reasons, self.advice, self.product))
        return max(self.LEAST, 1 + len(self.facts) + long)

    def lines(self, room: int) -> list[str]:
        """At most `room` lines, at least `LEAST`."""
        facts = _cut(self.facts, room - self.LEAST, self.columns) if room > self.LEAST else []
        room -= 1 + len(facts)
        reasons = min(len(self.reasons), _MOST_LINES, max(1, room - min(len(self.advice), _MOST_LINES)))
        # Subjects are a list that may simply end, sentences are not.
        why = _cut(self.reasons, reasons, self.columns) if self.alone else self.reasons[:reasons]
        return [self.title(not facts), *why, *facts, *self.what_to_do(room - reasons)]

    def what_to_do(self, room: int) -> list[str]:
        """The advice in at most `room` lines; only that for the product if there is no room for both."""
        general = min(len(self.advice), _MOST_LINES)
        if not self.product or room <= general:
            return _cut(self.only, room, self.columns)
        special = min(_MOST_LINES, room - general)
        return _cut(self.advice, general, self.columns) + _cut(self.product, special, self.columns)

    def title(self, with_certainty: bool) -> str:
        """The first line. How sure it is gives way to the name on a narrow terminal."""
        behind = self.gain
        if with_certainty and self.sure and width(behind + self.sure) <= self.columns // 2:
            behind = f" ({self.words.listed([behind[2:-1], self.sure])})" if behind else f" ({self.sure})"
        return shorten(f"  {self.what}", self.columns - width(behind), middle=True) + behind


def _brackets(finding: Finding, lang: str) -> str:
    """The finding's part of the time, in brackets; empty if it is unknown."""
    part = share(finding)
    return f" ({say(part, lang)})" if part else ""


def _cut(lines: list[str], count: int, columns: int) -> list[str]:
    """The first `count` lines, with a mark at the end where there were more."""
    if len(lines) <= count:
        return lines
    return [*lines[: count - 1], shorten(lines[count - 1] + "…", columns)]


def _counts(findings: Sequence[Finding], words: _Words) -> str:
    counts = Counter(finding.status for finding in findings)
    numbers = {status: counts[status] for status in ("unknown", "ok")}
    numbers["finding"] = len(main_findings(findings))
    return words("findings", **numbers)


def _gain(gain_ns: int | None, words: _Words) -> str:
    return f" ({words('gain', gain=gain_ns)})" if gain_ns else ""


def _tail(session: Session, report: Path | None, words: _Words) -> list[str]:
    folder = printable(shlex.quote(str(session.recording.folder)))
    lines = ["", f"{words('report')} {printable(str(report))}"] if report else [""]
    # The report takes longer than all else: it is made when it is asked for.
    asked = "" if report else f"   sysdock report {folder}"
    questions = [section.question for section in sections_of(session) if section.question]
    shown = f"   sysdock show {folder} {questions[0]}" if questions else ""
    return [*lines, f"{words('next')} sysdock diagnose {folder}{shown}{asked}"]


def diagnosis_lines(
    findings: list[Finding], recording: Path, lang: str, columns: int | None = None
) -> list[str]:
    """All findings with reason, advice, and the command that shows the lines behind each."""
    words, room = _Words(lang), min(columns or COLUMNS, COLUMNS)
    lines = [_counts(findings, words)]
    for finding in findings:
        if finding.part_of:
            continue
        lines += ["", *_stated(finding, lang, room)]
        if finding.status == "finding":
            lines += wrapped(words("do") + printable(say(finding.advice, lang)), room, "  ")
            for advice in product_advice([finding]):
                lines += wrapped(printable(say(advice, lang)), room, "  ")
            lines += _shown(finding, recording, words)
            for part in parts_of(findings, finding):
                # A finding that another one explains needs no advice.
                stated = _stated(part, lang, room - 4)
                lines += [
                    "  " + words("explains").rstrip(),
                    *("    " + line for line in stated),
                    *_shown(part, recording, words, "    "),
                ]
        if finding.others:
            lines.append("  " + words("others", count=finding.others))
    return lines


def _stated(finding: Finding, lang: str, room: int) -> list[str]:
    """Status, title, subject and gain; the reason; where, which part of the time, and how sure."""
    words = _Words(lang)
    title = say(finding.title, lang)
    what = f"{title}: {finding.subject}" if finding.subject else title
    state = "note" if finding.is_note else finding.status
    # A finding that another one explains is below that, so its state is clear.
    head = "" if finding.part_of else words(f"status_{state}") + "  "
    lines = [f"{head}{printable(what)}{_gain(finding.gain_ns, words)}"]
    lines += wrapped(printable(say(finding.reason, lang)), room, "  ")
    where = []
    if by := callers(finding):
        where.append(printable(say(by, lang)))
    if finding.from_s is not None and finding.until_s is not None:
        where.append(words("times", begin=finding.from_s * 1e9, until=finding.until_s * 1e9))
    if finding.source:
        where.append(words("source", source=printable(finding.source)))
    if where:
        lines += wrapped(words("where") + words.listed(where), room, "  ")
    facts = [printable(say(each, lang)) for each in (share(finding), certainty(finding)) if each]
    return lines + (wrapped(_capital(words.listed(facts)), room, "  ") if facts else [])


def _capital(text: str) -> str:
    """The text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def _shown(finding: Finding, recording: Path, words: _Words, indent: str = "  ") -> list[str]:
    if not finding.evidence:
        return []
    # Not wrapped: it is to be copied.
    command = f"sysdock show {shlex.quote(str(recording))} {finding.evidence}"
    return [indent + words("evidence") + printable(command)]
