"""Facts about a finding besides its reason: callers, share of the time, confidence."""

from __future__ import annotations

from collections.abc import Iterable

from sysdock.analysis.finding import Finding
from sysdock.sentences import Words, fact
from sysdock.text import percent

# Programs that are named where several processes made the calls.
MOST_PROGRAMS = 3
_ONE = 10**9


def callers(finding: Finding) -> Words | None:
    """The process that made the calls, or how many did; None where that is not known or not in question."""
    if finding.process is not None and finding.programs:
        return fact("diagnosis/process_of", process=finding.process, program=finding.program)
    if finding.process is not None:
        return fact("diagnosis/process", process=finding.process)
    if finding.processes < 2:
        return None
    names = list(finding.programs[:MOST_PROGRAMS]) + ["..."] * (len(finding.programs) > MOST_PROGRAMS)
    code = "diagnosis/processes_of_program" if len(names) == 1 else "diagnosis/processes_of_programs"
    return fact(code, processes=finding.processes, programs=", ".join(names))


def share(finding: Finding) -> Words | None:
    """Which part of the time it takes; None where the recording cannot tell."""
    if finding.share is None or finding.share_of is None:
        return None
    return fact(f"diagnosis/share_of_{finding.share_of}", share=percent(finding.share * _ONE, _ONE))


def certainty_word(finding: Finding) -> Words | None:
    """The certainty of a finding; None if nothing was found."""
    return None if finding.certainty is None else fact(f"diagnosis/confidence_{finding.certainty}")


def certainty(finding: Finding) -> Words | None:
    """The certainty of a finding with its reason; None if nothing was found."""
    word = certainty_word(finding)
    if word is None or not finding.certainty_reason:
        return word
    return fact("diagnosis/confidence_because", confidence=word, why=finding.certainty_reason)


def product_advice(findings: Iterable[Finding]) -> list[Words]:
    """Advice for the products that the findings concern, each once, after its name."""
    found: dict[str, Words] = {}
    for each in findings:
        if each.product and each.product_advice:
            found[each.product] = fact(
                "diagnosis/advice_for_product", product=each.product, advice=each.product_advice
            )
    return list(found.values())
