"""Runs the rules and judges how far their answers can be trusted."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sysdock.errors import UserError
from sysdock.library import Analysis, Page
from sysdock.recording import Recording, quote
from sysdock.text import percent

if TYPE_CHECKING:
    from sysdock.analysis.session import Session

STATUSES = ("finding", "unknown", "ok")
# Below this share of understood lines, what a rule did not see may well be in the lines that were not read.
ENOUGH_UNDERSTOOD = 0.99


@dataclass(frozen=True)
class Finding:
    """One row of a rule's answer, with the words of its page. Times in ns; None where the log cannot tell.

    `title`, `reason` and `advice` are in the language that was asked for, the `_ja` ones always Japanese.
    """

    rule: str
    status: str
    subject: str
    value: float | None
    limit_value: float | None
    cost_ns: int | None
    gain_ns: int | None
    reason: str
    reason_ja: str
    title: str
    title_ja: str
    advice: str
    advice_ja: str
    evidence: str | None

    def in_language(self, lang: str) -> Finding:
        """The same with title, reason and advice in `lang` (`en` or `ja`)."""
        if lang != "ja":
            return self
        return dataclasses.replace(self, title=self.title_ja, reason=self.reason_ja, advice=self.advice_ja)


def diagnose(session: Session) -> list[Finding]:
    """Findings of all rules, most to win first, then unknown, then ok."""
    found = [finding for rule in session.library.rules() for finding in judge(session, rule)]
    return sorted(found, key=_order)


def judge(session: Session, rule: Analysis) -> list[Finding]:
    """What one rule says of the recording; a rule that cannot be run is `unknown`."""
    page = _page(session, rule)
    missing = session.missing(rule)
    if missing:
        names = ", ".join(missing)
        reason = f"The recording has no table {names}."
        return [_unknown(rule, page, reason, f"この記録には表 {names} がありません。")]
    if session.filters.only_errors:
        reason = "--only-errors leaves out the calls that this rule compares with."
        return [_unknown(rule, page, reason, "--only-errors では、このルールが比べる呼び出しが除かれます。")]
    result = session.run(rule)
    rows = result.rows()
    if not rows:
        fact = "the rule returned no row"
        raise UserError(fact, "a rule always returns at least one row: finding, ok or unknown", result.place)
    findings = [_finding(rule, page, row, result.place) for row in rows]
    doubt = doubts(session.recording, rule)
    if session.filters.only_ok:
        doubt = (
            "Nothing was found, but --only-ok leaves out the calls that failed.",
            "見つかったものはありませんが、--only-ok では失敗した呼び出しが除かれます。",
        )
    return [_doubted(finding, doubt) if doubt else finding for finding in findings]


def _page(session: Session, rule: Analysis) -> Page:
    """The page of a rule; one without a page is still run (`sysdock check` says that it is missing)."""
    if not rule.page_path.exists():
        return Page(rule.title, None, {"What to do": rule.text}, [])
    return session.library.page(rule)


def doubts(recording: Recording, rule: Analysis) -> tuple[str, str] | None:
    """Why an `ok` of this rule cannot be trusted, in English and Japanese; None where it can."""
    manifest = recording.manifest
    if not manifest["complete"]:
        return (
            "Nothing was found, but the recording is incomplete.",
            "見つかったものはありませんが、記録が途中で終わっています。",
        )
    if recording.coverage < ENOUGH_UNDERSTOOD:
        share = percent(manifest["lines_understood"], manifest["lines_total"])
        return (
            f"Nothing was found, but only {share} of the lines were understood.",
            f"見つかったものはありませんが、ログの行のうち {share} しか解釈できませんでした。",
        )
    lossy = [name for name in rule.needs if name in recording.tables and recording.lost(name)]
    lost = sum(recording.lost(name) for name in lossy) or manifest["lost_events"]
    if lost:
        return (
            f"Nothing was found, but {lost} events were lost.",
            f"見つかったものはありませんが、{lost} 個のイベントが失われています。",
        )
    return None


def _doubted(finding: Finding, doubt: tuple[str, str]) -> Finding:
    if finding.status != "ok":
        return finding
    return dataclasses.replace(finding, status="unknown", reason=doubt[0], reason_ja=doubt[1])


def _finding(rule: Analysis, page: Page, row: tuple, place: str) -> Finding:
    subject, status, value, limit_value, cost_ns, gain_ns, reason, reason_ja = row
    if status not in STATUSES:
        raise UserError(f"status `{status}` is none of {', '.join(STATUSES)}", place=place)
    subject = subject if subject is not None else ""
    return Finding(
        rule=rule.id,
        status=status,
        subject=subject,
        value=value,
        limit_value=limit_value,
        cost_ns=cost_ns,
        gain_ns=gain_ns,
        reason=reason or "",
        reason_ja=reason_ja or reason or "",
        evidence=_evidence(rule, subject) if status == "finding" else None,
        **_words(rule, page),
    )


def _unknown(rule: Analysis, page: Page, reason: str, reason_ja: str) -> Finding:
    numbers = {"value": None, "limit_value": None, "cost_ns": None, "gain_ns": None}
    return Finding(
        rule=rule.id,
        status="unknown",
        subject="",
        reason=reason,
        reason_ja=reason_ja,
        evidence=None,
        **numbers,
        **_words(rule, page),
    )


def _words(rule: Analysis, page: Page) -> dict[str, str]:
    advice = page.first_paragraph("What to do") or ""
    return {
        "title": page.title or rule.title,
        "title_ja": page.title_ja or page.title,
        "advice": advice,
        "advice_ja": page.first_paragraph("どうするか") or advice,
    }


def _evidence(rule: Analysis, subject: str) -> str | None:
    """The analysis and filters that show the lines behind a finding, quoted for a shell.

    `{subject}` stands for the subject, `{first}` for its first word (the call in `openat ENOENT`).
    """
    if rule.evidence is None:
        return None
    words = {"{subject}": subject, "{first}": subject.partition(" ")[0]}
    return re.sub(r"\{(subject|first)\}", lambda found: shlex.quote(quote(words[found[0]])), rule.evidence)


def _order(finding: Finding) -> tuple:
    gain = finding.gain_ns if finding.gain_ns is not None else -1
    cost = finding.cost_ns if finding.cost_ns is not None else -1
    return STATUSES.index(finding.status), -gain, -cost, finding.rule, finding.subject


def by_rule(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Groups of one rule each, in the order of their first one, as `sysdock diagnose` has them."""
    rules: dict[str, list[Finding]] = {}
    for finding in findings:
        rules.setdefault(finding.rule, []).append(finding)
    return list(rules.values())


def total_gain(findings: Sequence[Finding]) -> int | None:
    """The most that the subjects of one rule could win together; None where the log cannot tell."""
    gains = [finding.gain_ns for finding in findings if finding.gain_ns is not None]
    return sum(gains) if gains else None
