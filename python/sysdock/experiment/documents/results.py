"""The results: answers in one line each, then the tables that they rest on, and what they do not show."""

from __future__ import annotations

from collections.abc import Iterator

from sysdock.experiment.documents.blocks import Block, Heading, Items, Paragraph, table
from sysdock.experiment.documents.source import Source
from sysdock.experiment.outcomes import of_verdict
from sysdock.experiment.plan import CONTROL
from sysdock.sentences import Words, fact

_LIMITS = (fact("documents/results_hold_machine_these"),)


def results(source: Source) -> list[Block]:
    """Answers, A/A and exclusions, tables, causes, limits."""
    experiment, say = source.experiment, source.say
    blocks: list[Block] = [
        Heading(1, say(fact("documents/results", title=source.title))),
        *source.incomplete(),
        Heading(2, say(fact("documents/question"))),
        Paragraph(say(experiment.questions).strip()),
        Heading(2, say(fact("documents/answer"))),
        *_answers(source),
    ]
    if experiment.analysis != "experiment/verdicts":
        blocks += [Heading(2, say(fact("documents/result"))), *source.shown(experiment.analysis)]
    bottlenecks = source.shown("experiment/bottlenecks")
    if bottlenecks:
        blocks += [Heading(2, say(fact("documents/bottlenecks"))), *bottlenecks]
    methods = source.shown("experiment/methods")
    if methods:
        blocks += [Heading(2, say(fact("documents/methods"))), *methods]
    causes = source.shown("experiment/causes")
    if causes:
        blocks += [Heading(2, say(fact("documents/causes"))), *causes]
    blocks += [Heading(2, say(fact("documents/verdicts"))), *source.shown("experiment/verdicts")]
    blocks += [
        Heading(2, say(fact("documents/checks"))),
        *source.shown("experiment/checks"),
        *_rejected(source),
    ]
    blocks += [
        Heading(2, say(fact("documents/limits"))),
        Items(tuple(say(words) for words in _limits(source))),
    ]
    return blocks


def _answers(source: Source) -> Iterator[Block]:
    """One line for each case and scenario: the verdict on the metric of the claim."""
    found = []
    for row in source.session.run("experiment/verdicts").dicts():
        if row["is_primary"] and row["scenario"] != CONTROL:
            sentence = source.say(of_verdict(row, source.experiment.claim.margin))
            place = ", ".join(word for word in (row["workload"], row["parameters"], row["scenario"]) if word)
            found.append(f"{place}: {sentence}")
    yield (Items(tuple(found)) if found else Paragraph(source.say(fact("documents/nothing_measured"))))


_REJECTED = """
SELECT scenario, reason, count(*) FROM experiment_runs
WHERE rejected AND block > 0 GROUP BY scenario, reason ORDER BY 3 DESC, 1, 2
"""


def _rejected(source: Source) -> Iterator[Block]:
    rows = source.session.fetch(_REJECTED)
    if rows:
        yield Paragraph(source.say(fact("documents/runs_do_not_count")))
        found = [(scenario, source.note(reason), runs) for scenario, reason, runs in rows]
        yield table(source.head("scenario", "reason", "runs"), found)
    else:
        yield Paragraph(source.say(fact("documents/every_run_counts")))


def _layout(source: Source) -> Words:
    """Whether the place of code and data in memory is one of the things that blocks average out."""
    values = {name: value for _, name, value, _ in source.environment()}
    if values.get("kernel.randomize_va_space") != "2":
        return fact("documents/layout_not_controlled_addresses")
    return fact("documents/layout_each_run_has")


def _limits(source: Source) -> Iterator[Words]:
    yield from _LIMITS
    yield _layout(source)
    if not source.experiment.plan.aa:
        yield fact("documents/no_arm_baseline_not")
