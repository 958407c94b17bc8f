"""The results: answers in one line each, then the tables that they rest on, and what they do not show."""

from __future__ import annotations

from collections.abc import Iterator

from sysdock.experiment.documents.blocks import Block, Heading, Items, Paragraph, table
from sysdock.experiment.documents.source import Source
from sysdock.experiment.plan import CONTROL
from sysdock.experiment.words import of_verdict

_LIMITS = (
    (
        "The results hold for this machine, these programs and these data: see the environment definition.",
        "結果は、環境定義に記したマシン、プログラム、データについてのものである。",
    ),
)


def results(source: Source) -> list[Block]:
    """Answers, A/A and exclusions, tables, causes, limits."""
    experiment, say = source.experiment, source.say
    blocks: list[Block] = [
        Heading(1, say(f"Results: {source.title}", f"結果: {source.title}")),
        *source.incomplete(),
        Heading(2, say("Question", "問い")),
        Paragraph(say(experiment.question, experiment.question_ja).strip()),
        Heading(2, say("Answer", "結論")),
        *_answers(source),
    ]
    if experiment.analysis != "experiment/verdicts":
        blocks += [Heading(2, say("Result", "結果")), *source.shown(experiment.analysis)]
    bottlenecks = source.shown("experiment/bottlenecks")
    if bottlenecks:
        blocks += [Heading(2, say("Bottlenecks", "ボトルネック")), *bottlenecks]
    methods = source.shown("experiment/methods")
    if methods:
        blocks += [Heading(2, say("Methods", "メソッド")), *methods]
    causes = source.shown("experiment/causes")
    if causes:
        blocks += [Heading(2, say("Causes", "原因")), *causes]
    blocks += [Heading(2, say("Verdicts", "判定")), *source.shown("experiment/verdicts")]
    blocks += [Heading(2, say("Checks", "検査")), *source.shown("experiment/checks"), *_rejected(source)]
    blocks += [Heading(2, say("Limits", "限界")), Items(tuple(say(*words) for words in _limits(source)))]
    return blocks


def _answers(source: Source) -> Iterator[Block]:
    """One line for each case and scenario: the verdict on the metric of the claim."""
    found = []
    for row in source.session.run("experiment/verdicts").dicts():
        if row["is_primary"] and row["scenario"] != CONTROL:
            sentence = source.say(*of_verdict(row, source.experiment.claim.margin))
            place = ", ".join(word for word in (row["workload"], row["parameters"], row["scenario"]) if word)
            found.append(f"{place}: {sentence}")
    yield (
        Items(tuple(found))
        if found
        else Paragraph(source.say("Nothing was measured.", "測定値がありません。"))
    )


_REJECTED = """
SELECT scenario, reason, count(*) FROM experiment_runs
WHERE rejected AND block > 0 GROUP BY scenario, reason ORDER BY 3 DESC, 1, 2
"""


def _rejected(source: Source) -> Iterator[Block]:
    rows = source.session.fetch(_REJECTED)
    if rows:
        yield Paragraph(source.say("Runs that do not count:", "却下された実行:"))
        found = [(scenario, source.note(reason), runs) for scenario, reason, runs in rows]
        yield table(("scenario", "reason", "runs") if source.english else ("シナリオ", "理由", "回数"), found)
    else:
        yield Paragraph(source.say("Every run counts.", "却下された実行はない。"))


def _layout(source: Source) -> tuple[str, str]:
    """Whether the place of code and data in memory is one of the things that blocks average out."""
    values = {name: value for _, name, value, _ in source.environment()}
    if values.get("kernel.randomize_va_space") != "2":
        return (
            "Layout not controlled: addresses are not randomized on this machine. If scenarios are different "
            "builds of a program, the place of code and data alone can change the time by some percent.",
            "メモリ配置は制御していない。このマシンではアドレスがランダム化されない。シナリオが"
            "プログラムの別のビルドである場合、コードとデータの配置だけで時間が数 % 変わることがある。",
        )
    return (
        "Layout: each run has addresses of its own (address space randomization) and an environment of a "
        "size of its own. The order of functions within a program is not varied: of different builds, "
        "compare several with another link order.",
        "メモリ配置: 実行ごとにアドレス (アドレス空間のランダム化) と環境変数のサイズが変わる。"
        "プログラム内の関数の並びは変えていないので、別のビルドを比べるときは"
        "リンク順の異なるものも比べること。",
    )


def _limits(source: Source) -> Iterator[tuple[str, str]]:
    yield from _LIMITS
    yield _layout(source)
    if not source.experiment.plan.aa:
        yield (
            "No A/A arm: the baseline was not compared with itself.",
            "A/A なし: 基準どうしの比較は行っていない。",
        )
