"""Findings first, each rule once with all its subjects, then what could not be judged, then what is fine."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from sysdock.analysis import Finding, Session
from sysdock.analysis.facts import callers, certainty, product_advice, share
from sysdock.analysis.finding import by_rule, main_findings, parts_of, total_gain
from sysdock.library import Analysis, Column
from sysdock.page.markup import both, both_blocks, join, prose, text
from sysdock.page.numbers import duration, measured
from sysdock.report.sources import sql_block, sql_link
from sysdock.text import in_words

_STATES = {
    "finding": ("\N{BLACK UP-POINTING TRIANGLE} finding", "\N{BLACK UP-POINTING TRIANGLE} 所見"),
    "note": ("i note", "i 注意"),
    "unknown": ("? inconclusive", "? 判定不能"),
    "ok": ("\N{CHECK MARK} passed", "\N{CHECK MARK} 問題なし"),
}
# Findings that are open from the start.
_OPEN = 4
# What the value of a rule is called, by the beginning of its description.
_NOUNS = (
    ("Share ", ("share", "割合")),
    (r"How many times |.* over |.* for each ", ("ratio", "比")),
)
_MEASURED = ("measured", "実測")
# Sizes of requests are best known exactly.
_EXACT_UNITS = ("B", "ns")
_WHY = (("Why it matters", "なぜ問題か"), ("When to ignore it", "無視してよい場合"))


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
        words = both("No findings.", "ルールに該当するものはありませんでした。")
        cards = [f'<p class="empty">{words}</p>']
    unknown, passed = len(by_state["unknown"]), len(by_state["ok"])
    cards += [
        _quiet_cards("unknown", by_state["unknown"], both(f"{unknown} inconclusive", f"判定不能: {unknown}")),
        _quiet_cards("ok", by_state["ok"], both(f"{passed} passed", f"問題なし: {passed}")),
    ]
    title = both("Findings", "所見")
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
        together, together_ja = (" in total", "合計") if len(group) > 1 else ("", "")
        amount = duration(gain)
        won = both(f"could save up to {amount}{together}", f"{together_ja}最大 {amount} 短縮可能")
    recording = shlex.quote(session.recording.folder.name)
    subjects = "".join(_subject(session, finding, recording, findings) for finding in group)
    if group[-1].others:
        count = f"{group[-1].others:,}"
        subjects += f'<li class="muted">{both(f"and {count} more", f"ほか {count} 件")}</li>'
    state = _state("note" if first.is_note else "finding")
    head = f"{state}<h3>{_title(first)}</h3><code>{text(first.rule)}</code>"
    how = ("How this is decided (SQL)", "判定の方法 (SQL)")
    more = both("Why it matters, when to ignore it", "なぜ問題か、無視してよい場合")
    return f"""<article class="card rule finding" id="rule-{text(first.rule.replace("/", "-"))}">
<details class="fold"{" open" * is_open}><summary>{head}<span class="gain">{won}</span></summary>
<ul class="subjects">{subjects}</ul>
<div class="advice">{_advice(session, rule, first)}{_for_products(group)}</div>
<details class="more"><summary>{more}</summary>{_background(session, rule)}</details>
{sql_block(rule, how, f"sysdock diagnose {recording} {rule.id}", {})}
</details></article>"""


def _for_products(group: Sequence[Finding]) -> str:
    """What helps the products that the findings are about."""
    return join(f'<p class="product">{both(*map(text, words))}</p>' for words in product_advice(group))


def _part(session: Session, finding: Finding, recording: str) -> str:
    """A finding that another explains, below it."""
    words = both("also explains:", "これで説明できるもの:")
    subject = _subject(session, finding, recording, ())
    head = f'<span class="muted">{words}</span> {_title(finding)}'
    return f'<li class="part">{head}<ul class="subjects">{subject}</ul></li>'


def _subject(session: Session, finding: Finding, recording: str, findings: Sequence[Finding]) -> str:
    """A finding, and those of `findings` that it explains."""
    parts = join(_part(session, part, recording) for part in parts_of(findings, finding))
    numbers = []
    rule = session.library.rule(finding.rule)
    if finding.cost_ns is not None:
        numbers.append(both(f"takes {duration(finding.cost_ns)}", f"所要 {duration(finding.cost_ns)}"))
    numbers += _compared(finding, next((column for column in rule.columns if column.name == "value"), None))
    numbers += _where(finding)
    evidence = _evidence(finding, recording)
    return (
        f'<li><span class="subject mono">{text(finding.subject)}</span>'
        f'<span class="muted">{sql_link(rule, " &middot; ".join(numbers))}</span>'
        f'<span class="why">{both(text(finding.reason), text(finding.reason_ja))}{evidence}</span></li>'
        f"{parts}"
    )


def _compared(finding: Finding, column: Column | None) -> list[str]:
    """What was measured, and the threshold it was compared with, as HTML."""
    if column is None or finding.value is None or finding.limit_value is None:
        return []
    shown = measured if column.unit in _EXACT_UNITS else in_words
    value, limit = (text(shown(number, column.unit)) for number in (finding.value, finding.limit_value))
    noun, noun_ja = next((nouns for start, nouns in _NOUNS if re.match(start, column.text)), _MEASURED)
    return [both(f"{noun} {value} (threshold {limit})", f"{noun_ja} {value} (しきい値 {limit})")]


def _where(finding: Finding) -> list[str]:
    """Part of the time, process, time range, source line and certainty, as HTML."""
    found = [both(*map(text, fact)) for fact in (share(finding), callers(finding)) if fact]
    if finding.from_s is not None and finding.until_s is not None:
        span = f"{in_words(finding.from_s, 's')} - {in_words(finding.until_s, 's')}"
        found.append(both(f"at {span}", f"時刻 {span}"))
    if finding.source:
        line = f"<code>{text(finding.source)}</code>"
        found.append(both(f"most calls are made at {line}", f"呼び出しの多い行 {line}"))
    if sure := certainty(finding):
        found.append(both(*map(text, sure)))
    return found


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
