"""Findings first, each rule once with all its subjects, then what could not be judged, then what is fine."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from sysdock.analysis import Finding, Session
from sysdock.analysis.facts import callers, certainty, product_advice, share
from sysdock.analysis.finding import by_rule, main_findings, parts_of, total_gain
from sysdock.library import Analysis, Column
from sysdock.page.markup import Html, both, join, prose_blocks, text
from sysdock.page.numbers import duration, measured
from sysdock.report.sources import sql_block, sql_link
from sysdock.sentences import Prose, fact, in_all, with_unit

_STATES = {
    "finding": fact("report/finding"),
    "note": fact("report/i_note"),
    "unknown": fact("report/inconclusive"),
    "ok": fact("report/passed"),
}
# Findings that are open from the start.
_OPEN = 4
# Names of the values of rules, by the beginning of their description.
_NOUNS = (
    ("Share ", fact("report/share")),
    (r"How many times |.* over |.* for each ", fact("report/ratio")),
)
_MEASURED = fact("report/measured")
# Sizes of requests are best known exactly.
_EXACT_UNITS = ("B", "ns")
# Sections of a page that say why.
_WHY = ("why_it_matters", "when_to_ignore_it")


def findings_section(session: Session, findings: Sequence[Finding]) -> str:
    """All rules with what they say of the recording."""
    by_state = {
        status: by_rule([finding for finding in findings if finding.status == status])
        for status in ("unknown", "ok")
    }
    groups = by_rule(main_findings(findings))
    cards = [
        _finding_card(session, group, findings, is_open=number < _OPEN) for number, group in enumerate(groups)
    ]
    if not cards:
        words = both(fact("report/no_findings"))
        cards = [f'<p class="empty">{words}</p>']
    unknown, passed = len(by_state["unknown"]), len(by_state["ok"])
    cards += [
        _quiet_cards("unknown", by_state["unknown"], both(fact("report/inconclusive_2", unknown=unknown))),
        _quiet_cards("ok", by_state["ok"], both(fact("report/passed_2", passed=passed))),
    ]
    title = both(fact("report/findings"))
    return f'<section id="findings"><h2>{title}</h2>{join(cards)}</section>'


def _quiet_cards(status: str, groups: Sequence[list[Finding]], words: str) -> str:
    """Rules that found nothing, as one line that opens to what each of them says."""
    if not groups:
        return ""
    inside = join(_quiet_card(status, group) for group in groups)
    return f'<details class="more" id="rules-{status}"><summary>{words}</summary>{inside}</details>'


def _finding_card(
    session: Session, group: list[Finding], findings: Sequence[Finding], *, is_open: bool
) -> str:
    first = group[0]
    rule = session.library.rule(first.rule)
    gain = total_gain(group)
    won = ""
    if gain:
        code = "report/could_save_together" if len(group) > 1 else "report/could_save"
        won = both(fact(code, amount=duration(gain)))
    recording = shlex.quote(session.recording.folder.name)
    subjects = "".join(_subject(session, finding, recording, findings) for finding in group)
    if group[-1].others:
        subjects += f'<li class="muted">{both(fact("report/more", count=group[-1].others))}</li>'
    state = _state("note" if first.is_note else "finding")
    head = f"{state}<h3>{_title(first)}</h3><code>{text(first.rule)}</code>"
    how = fact("report/how_decided_sql")
    more = both(fact("report/why_matters_when_ignore"))
    return f"""<article class="card rule finding" id="rule-{text(first.rule.replace("/", "-"))}">
<details class="fold"{" open" * is_open}><summary>{head}<span class="gain">{won}</span></summary>
<ul class="subjects">{subjects}</ul>
<div class="advice">{_advice(session, rule, first)}{_for_products(group)}</div>
<details class="more"><summary>{more}</summary>{_background(session, rule)}</details>
{sql_block(rule, how, f"sysdock diagnose {recording} {rule.id}", {})}
</details></article>"""


def _for_products(group: Sequence[Finding]) -> str:
    """Advice for the products that the findings concern."""
    return join(f'<p class="product">{both(words)}</p>' for words in product_advice(group))


def _part(session: Session, finding: Finding, recording: str) -> str:
    """A finding that another explains, below it."""
    words = both(fact("report/also_explains"))
    subject = _subject(session, finding, recording, ())
    head = f'<span class="muted">{words}</span> {_title(finding)}'
    return f'<li class="part">{head}<ul class="subjects">{subject}</ul></li>'


def _subject(session: Session, finding: Finding, recording: str, findings: Sequence[Finding]) -> str:
    """A finding, and those of `findings` that it explains."""
    parts = join(_part(session, part, recording) for part in parts_of(findings, finding))
    numbers = []
    rule = session.library.rule(finding.rule)
    if finding.cost_ns is not None:
        numbers.append(both(fact("report/takes", duration=duration(finding.cost_ns))))
    numbers += _compared(finding, next((column for column in rule.columns if column.name == "value"), None))
    numbers += _where(finding)
    evidence = _evidence(finding, recording)
    return (
        f'<li><span class="subject mono">{text(finding.subject)}</span>'
        f'<span class="muted">{sql_link(rule, " &middot; ".join(numbers))}</span>'
        f'<span class="why">{both(finding.reason)}{evidence}</span></li>'
        f"{parts}"
    )


def _compared(finding: Finding, column: Column | None) -> list[str]:
    """The measured value, and the threshold it was compared with, as HTML."""
    if column is None or finding.value is None or finding.limit_value is None:
        return []
    shown = measured if column.unit in _EXACT_UNITS else with_unit
    value, limit = (shown(number, column.unit) for number in (finding.value, finding.limit_value))
    noun = next((noun for start, noun in _NOUNS if re.match(start, column.text)), _MEASURED)
    return [both(fact("report/threshold", noun=noun, value=value, limit=limit))]


def _where(finding: Finding) -> list[str]:
    """Part of the time, process, time range, source line and certainty, as HTML."""
    found = [both(words) for words in (share(finding), callers(finding)) if words]
    if finding.from_s is not None and finding.until_s is not None:
        span = fact("report/at_time", begin=finding.from_s, end=finding.until_s)
        found.append(both(span))
    if finding.source:
        line = Html(f"<code>{text(finding.source)}</code>")
        found.append(both(fact("report/most_calls_made", line=line)))
    if sure := certainty(finding):
        found.append(both(sure))
    return found


def _evidence(finding: Finding, recording: str) -> str:
    if not finding.evidence:
        return ""
    words = both(fact("report/evidence"))
    command = f"sysdock show {recording} {finding.evidence}"
    return f' <span class="muted">{words} <code>{text(command)}</code></span>'


def _advice(session: Session, rule: Analysis, finding: Finding) -> str:
    """The advice of its page; otherwise the sentence that comes with the finding."""
    section = session.library.page(rule).section("what_to_do") if rule.page_path.exists() else None
    words = section or Prose(in_all(finding.advice))
    return f"<h4>{both(fact('report/what_do'))}</h4>{prose_blocks(words)}"


def _background(session: Session, rule: Analysis) -> str:
    if not rule.page_path.exists():
        return ""
    page = session.library.page(rule)
    parts = [f"<h4>{both(fact(f'pages/{name}'))}</h4>{prose_blocks(page.section(name))}" for name in _WHY]
    return join(parts)


def _quiet_card(status: str, group: list[Finding]) -> str:
    reasons = "".join(f"<p>{both(finding.reason)}</p>" for finding in group)
    first = group[0]
    return f"""<article class="card rule {status}">
<header>{_state(status)}<h3>{_title(first)}</h3><code>{text(first.rule)}</code></header>{reasons}</article>"""


def _state(status: str) -> str:
    return f'<span class="state">{both(_STATES[status])}</span>'


def _title(finding: Finding) -> str:
    return both(finding.title)
