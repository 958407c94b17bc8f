"""Facts about a finding besides its reason, in both languages: callers, share of the time, confidence."""

from __future__ import annotations

from collections.abc import Iterable

from sysdock.analysis.finding import Finding
from sysdock.text import percent

# Programs that are named where several processes made the calls.
MOST_PROGRAMS = 3
_CERTAINTIES = {"high": "高", "medium": "中", "low": "低"}
_SHARES = {
    "elapsed": ("takes {share} of the elapsed time", "経過時間の {share}"),
    "elapsed_at_most": ("takes at most {share} of the elapsed time", "経過時間の最大 {share}"),
    "threads": ("takes {share} of the time of all threads", "全スレッドの時間の {share}"),
}
_ONE = 10**9

# A text in English, and in Japanese.
Words = tuple[str, str]


def callers(finding: Finding) -> Words | None:
    """The process that made the calls, or how many did; None where that is not known or not in question."""
    if finding.process is not None:
        program = f" ({finding.program})" if finding.programs else ""
        return f"process {finding.process}{program}", f"プロセス {finding.process}{program}"
    if finding.processes < 2:
        return None
    names = list(finding.programs[:MOST_PROGRAMS]) + ["..."] * (len(finding.programs) > MOST_PROGRAMS)
    count, listed = f"{finding.processes:,}", ", ".join(names)
    if len(names) == 1:
        return f"{count} processes of {listed}", f"{listed} の {count} プロセス"
    return f"{count} processes ({listed})", f"{count} プロセス ({listed})"


def share(finding: Finding) -> Words | None:
    """Which part of the time it takes; None where the recording cannot tell."""
    if finding.share is None or finding.share_of is None:
        return None
    shown = percent(finding.share * _ONE, _ONE)
    english, japanese = _SHARES[finding.share_of]
    return english.format(share=shown), japanese.format(share=shown)


def certainty_word(finding: Finding) -> Words | None:
    """How sure it is; None where nothing was found."""
    if finding.certainty is None:
        return None
    return f"{finding.certainty} confidence", f"確度: {_CERTAINTIES[finding.certainty]}"


def certainty(finding: Finding) -> Words | None:
    """How sure it is, and why; None where nothing was found."""
    word = certainty_word(finding)
    if word is None or not finding.certainty_reason:
        return word
    why, why_ja = finding.certainty_reason, finding.certainty_reason_ja or finding.certainty_reason
    return f"{word[0]} ({why})", f"{word[1]} ({why_ja})"


def product_advice(findings: Iterable[Finding]) -> list[Words]:
    """What helps the products that the findings are about, each once, after its name."""
    found = {}
    for each in findings:
        if each.product and each.product_advice:
            japanese = each.product_advice_ja or each.product_advice
            found[each.product] = f"{each.product}: {each.product_advice}", f"{each.product}: {japanese}"
    return list(found.values())
