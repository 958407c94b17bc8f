"""Findings, their order, and which of them another one explains."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from sysdock.sentences import Words, say

# The part of its cost that a finding counts for where its gain is not known, by its certainty.
LIKELY_PARTS = {"high": 0.25, "medium": 0.25, "low": 0.1}


@dataclass(frozen=True)
class Finding:
    """One row of a rule's answer, with the words of its page. Times in ns; None where the log cannot tell.

    `title`, `reason` and `advice` are in every language; `in_language` makes plain text of them.
    `file`, `process` (an id) and the time range (s since the start of the recording) say where to look.
    `source`: the source line that made most of the calls on the file, and its part of them.
    `certainty_reason`: why it is so sure, a clause.
    `programs`: those that made the calls, most calls first, and `processes`: how many processes these were
    (0: not known); `process` is set where it was one.
    `share`: which part `cost_ns` is of the time, 0 to 1; `share_of`: of which, `elapsed`; `elapsed_at_most`
    where several threads may have been in it at a time; `threads`, the time that all threads lived.
    `variant`: which sentence of its status it has. `product`: the product that it is about, if that is known
    and has advice for it, `product_advice`.
    `cost_calls`: of how many calls `cost_ns` is the time; None: it is not the time of calls.
    `urgent`: something fails soon, whatever time it costs.
    `circumstance`: it is about how the recording was made.
    `part_of`: rule and subject of the finding that explains this one. `others`: subjects left out.
    """

    rule: str
    status: str
    subject: str
    value: float | None
    limit_value: float | None
    cost_ns: int | None
    gain_ns: int | None
    certainty: str | None
    reason: Words
    title: Words
    advice: Words
    evidence: str | None
    file: str | None = None
    process: int | None = None
    from_s: float | None = None
    until_s: float | None = None
    explained_by: tuple[str, ...] = ()
    part_of: tuple[str, str] | None = None
    others: int = 0
    source: str | None = None
    cost_calls: int | None = None
    urgent: bool = False
    circumstance: bool = False
    minor: bool = False
    certainty_reason: Words | None = None
    programs: tuple[str, ...] = ()
    processes: int = 0
    share: float | None = None
    share_of: str | None = None
    variant: str | None = None
    product: str | None = None
    product_advice: Words | None = None

    @property
    def is_note(self) -> bool:
        """Whether there is nothing to save, or too little to matter: only something to know."""
        return self.status == "finding" and (self.gain_ns == 0 or self.minor)

    def in_language(self, lang: str) -> Finding:
        """The finding with all its texts in one language."""
        return dataclasses.replace(
            self,
            title=say(self.title, lang),
            reason=say(self.reason, lang),
            advice=say(self.advice, lang),
            certainty_reason=say(self.certainty_reason, lang) if self.certainty_reason else None,
            product_advice=say(self.product_advice, lang) if self.product_advice else None,
        )

    @property
    def program(self) -> str | None:
        """The programs that made the calls, separated by commas; None where that is not known."""
        return ", ".join(self.programs) or None


def by_rule(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Groups of one rule each, in the order of their first one, as `sysdock diagnose` has them."""
    rules: dict[str, list[Finding]] = {}
    for finding in findings:
        rules.setdefault(finding.rule, []).append(finding)
    return list(rules.values())


def with_minor(findings: Sequence[Finding], least_ns: int) -> list[Finding]:
    """Marks those of rules that could save less than `least_ns` in all, as far as that is known."""
    small = {
        group[0].rule
        for group in by_rule([one for one in findings if one.status == "finding"])
        if not any(one.urgent or one.gain_ns is None for one in group) and (total_gain(group) or 0) < least_ns
    }
    return [dataclasses.replace(one, minor=True) if one.rule in small else one for one in findings]


def total_gain(findings: Sequence[Finding]) -> int | None:
    """The most that the subjects of one rule could win together; None where the log cannot tell."""
    gains = [finding.gain_ns for finding in findings if finding.gain_ns is not None]
    return sum(gains) if gains else None


def likely_gain(finding: Finding) -> float:
    """Likely saving [ns], by which findings are ordered; if it is unknown, a part of the cost.

    So a large cost comes before a small saving. The parts are a choice.
    """
    if finding.gain_ns is not None:
        return finding.gain_ns
    return LIKELY_PARTS.get(finding.certainty or "", 0.0) * (finding.cost_ns or 0)


def fold(findings: list[Finding]) -> list[Finding]:
    """Names in `part_of` the finding that explains another, and puts it after that one.

    It is of a rule that the other names, about the same file (or one of them about none), and all that this
    rule found there costs at least half as much: a small matter does not explain a large one.
    """
    heads = [finding for finding in findings if finding.status == "finding"]

    def explainer(finding: Finding) -> Finding | None:
        for rule in finding.explained_by:
            named = [h for h in heads if h.rule == rule and h is not finding and _may_explain(h, finding)]
            costs = [head.cost_ns for head in named if head.cost_ns is not None]
            if named and (finding.cost_ns is None or not costs or 2 * sum(costs) >= finding.cost_ns):
                return named[0]
        return None

    def chief(finding: Finding) -> Finding | None:
        """The finding that explains it and is not explained itself; findings that explain each other stay
        apart.
        """
        met = [finding]
        while (above := explainer(met[-1])) and not any(above is each for each in met):
            met.append(above)
        return None if above is finding or len(met) == 1 else met[-1]

    folded = []
    for finding in findings:
        head = chief(finding) if finding.status == "finding" else None
        folded.append(dataclasses.replace(finding, part_of=(head.rule, head.subject)) if head else finding)
    return _nested(folded)


def _may_explain(head: Finding, finding: Finding) -> bool:
    # An uncertain finding without a promised saving does not take a known saving away.
    promised = finding.gain_ns or 0
    is_vague = head.gain_ns is None and head.certainty == "low" and 2 * promised >= (finding.cost_ns or 0) > 0
    return _same_file(head, finding) and not is_vague


def _same_file(one: Finding, other: Finding) -> bool:
    return one.file is None or other.file is None or one.file == other.file


def _nested(findings: list[Finding]) -> list[Finding]:
    """Main findings by rule: urgent ones, then by what they are likely to save, notes last; then the rest."""
    groups = by_rule(main_findings(findings))
    groups.sort(key=_rank)
    ordered = [each for group in groups for head in group for each in [head, *parts_of(findings, head)]]
    return ordered + [finding for finding in findings if finding.status != "finding"]


def _rank(group: Sequence[Finding]) -> tuple[bool, bool, float]:
    is_note = all(finding.is_note for finding in group)
    return not any(finding.urgent for finding in group), is_note, -sum(likely_gain(each) for each in group)


def main_findings(findings: Sequence[Finding]) -> list[Finding]:
    """Findings that no other explains, largest saving first."""
    return [finding for finding in findings if finding.status == "finding" and not finding.part_of]


def parts_of(findings: Sequence[Finding], head: Finding) -> list[Finding]:
    """Findings that `head` explains; of two heads of one name (a file read, written) the first has them."""
    name = (head.rule, head.subject)
    first = next((each for each in findings if (each.rule, each.subject) == name), head)
    return [each for each in findings if each.part_of == name] if first is head else []
