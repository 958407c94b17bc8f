"""Findings first, each rule once with all its subjects, then what could not be judged, then what is fine."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from sysdock.analysis import Finding, Session
from sysdock.analysis.diagnosis import by_rule, total_gain
from sysdock.library import Analysis
from sysdock.report.markup import both, both_blocks, join, prose, text
from sysdock.report.numbers import duration, measured

_STATES = {
    "finding": ("\N{BLACK UP-POINTING TRIANGLE} finding", "\N{BLACK UP-POINTING TRIANGLE} 所見"),
    "unknown": ("? not judged", "? 判定不能"),
    "ok": ("\N{CHECK MARK} fine", "\N{CHECK MARK} 問題なし"),
}
_WHY = (("Why it matters", "なぜ問題か"), ("When to ignore it", "無視してよい場合"))


def findings_section(session: Session, findings: Sequence[Finding]) -> str:
    """All rules with what they say of the recording."""
    by_state = {
        status: by_rule([finding for finding in findings if finding.status == status]) for status in _STATES
    }
    cards = [_finding_card(session, group) for group in by_state["finding"]]
    if not cards:
        words = both("No rule found anything.", "ルールに該当するものはありませんでした。")
        cards = [f'<p class="empty">{words}</p>']
    cards += [_quiet_card("unknown", group) for group in by_state["unknown"]]
    passed = by_state["ok"]
    if passed:
        count = len(passed)
        words = both(f"{count} checked and found to be fine", f"調べて問題がなかったもの: {count}")
        inside = join(_quiet_card("ok", group) for group in passed)
        cards.append(f'<details class="more" id="passed"><summary>{words}</summary>{inside}</details>')
    title = both("Findings", "所見")
    return f'<section id="findings"><h2>{title}</h2>{join(cards)}</section>'


def _finding_card(session: Session, group: list[Finding]) -> str:
    first = group[0]
    rule = session.library.rule(first.rule)
    units = {column.name: column.unit for column in rule.columns}
    gain = total_gain(group)
    won = ""
    if gain is not None:
        together, together_ja = (" together", "合計") if len(group) > 1 else ("", "")
        won = both(f"up to {duration(gain)} to win{together}", f"{together_ja}最大 {duration(gain)} 短縮可能")
    recording = shlex.quote(session.recording.folder.name)
    subjects = "".join(_subject(finding, units.get("value"), recording) for finding in group)
    head = f"{_state('finding')}<h3>{_title(first)}</h3><code>{text(first.rule)}</code>"
    more = both("Why it matters, when to ignore it", "なぜ問題か、無視してよい場合")
    return f"""<article class="card rule finding" id="rule-{text(first.rule.replace("/", "-"))}">
<header>{head}<span class="gain">{won}</span></header>
<ul class="subjects">{subjects}</ul>
<div class="advice">{_advice(session, rule, first)}</div>
<details class="more"><summary>{more}</summary>{_background(session, rule)}</details>
</article>"""


def _subject(finding: Finding, unit: str | None, recording: str) -> str:
    numbers = []
    if finding.cost_ns is not None:
        numbers.append(both(f"takes {duration(finding.cost_ns)}", f"所要 {duration(finding.cost_ns)}"))
    if finding.value is not None and finding.limit_value is not None:
        value, limit = measured(finding.value, unit), measured(finding.limit_value, unit)
        numbers.append(
            both(f"measured {text(value)}, limit {text(limit)}", f"実測 {text(value)}、基準 {text(limit)}")
        )
    evidence = _evidence(finding, recording)
    return (
        f'<li><span class="subject mono">{text(finding.subject)}</span>'
        f'<span class="muted nowrap">{" &middot; ".join(numbers)}</span>'
        f'<span class="why">{both(text(finding.reason), text(finding.reason_ja))}{evidence}</span></li>'
    )


def _evidence(finding: Finding, recording: str) -> str:
    if not finding.evidence:
        return ""
    words = both("Evidence:", "根拠:")
    command = f"sysdock show {recording} {finding.evidence}"
    return f' <span class="muted">{words} <code>{text(command)}</code></span>'


def _advice(session: Session, rule: Analysis, finding: Finding) -> str:
    """What to do, as its page has it; else the one sentence that comes with the finding."""
    sections = session.library.page(rule).sections if rule.page_path.exists() else {}
    english = sections.get("What to do", finding.advice)
    japanese = sections.get("どうするか", english)
    return f"<h4>{both('What to do', 'どうするか')}</h4>" + both_blocks(prose(english), prose(japanese))


def _background(session: Session, rule: Analysis) -> str:
    if not rule.page_path.exists():
        return ""
    sections = session.library.page(rule).sections
    parts = []
    for english, japanese in _WHY:
        parts.append(f"<h4>{both(english, japanese)}</h4>")
        words = sections.get(english, "")
        parts.append(both_blocks(prose(words), prose(sections.get(japanese, words))))
    return join(parts)


def _quiet_card(status: str, group: list[Finding]) -> str:
    reasons = "".join(f"<p>{both(text(finding.reason), text(finding.reason_ja))}</p>" for finding in group)
    first = group[0]
    return f"""<article class="card rule {status}">
<header>{_state(status)}<h3>{_title(first)}</h3><code>{text(first.rule)}</code></header>{reasons}</article>"""


def _state(status: str) -> str:
    return f'<span class="state">{both(*_STATES[status])}</span>'


def _title(finding: Finding) -> str:
    return both(text(finding.title), text(finding.title_ja))
