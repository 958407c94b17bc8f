"""The readable result of an experiment: question, environment, procedure, result; in both languages."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sysdock.analysis import Session
from sysdock.analysis.writing import cell, heading
from sysdock.experiment.plan import CONTROL
from sysdock.experiment.words import of_verdict
from sysdock.library import Experiment

NAME = "report.md"
_WORDS = {
    "en": {
        "question": "Question",
        "answer": "Answer",
        "environment": "Environment",
        "procedure": "Procedure",
        "result": "Result",
        "causes": "Causes",
        "parameters": "Parameters",
        "scenarios": "Scenarios",
        "claim": "Fixed before the first run: {primary}, {better} is better; a change below {margin:g} % "
        "does not matter; level {alpha:g}. Baseline: {baseline}. In each block every scenario runs once, in "
        "an order drawn from the seed {seed}; blocks are judged after {looks}.",
        "before": "Before each run: {settings}.",
        "run": "Run `{command}`.",
        "partial": "**Not complete**: ended by `{ended}`. The tables have what was measured until then.",
        "again": "The same again",
        "table": "`sysdock show REC {analysis}` prints this table, and says what its columns mean.",
        "none": "Nothing was measured.",
    },
    "ja": {
        "question": "問い",
        "answer": "結論",
        "environment": "環境",
        "procedure": "手順",
        "result": "結果",
        "causes": "原因",
        "parameters": "パラメータ",
        "scenarios": "シナリオ",
        "claim": "最初の測定の前に決めたこと: 指標 {primary} ({better} がよい)、"
        "{margin:g} % 未満の変化は問わない、有意水準 {alpha:g}。基準は {baseline}。"
        "各ブロックですべてのシナリオを一回ずつ、"
        "シード {seed} から引いた順序で実行し、{looks} ブロック後に判定する。",
        "before": "各実行の前: {settings}。",
        "run": "`{command}` を実行する。",
        "partial": "**未完了**: `{ended}` により終了。表はそれまでの測定値。",
        "again": "再実行",
        "table": "この表は `sysdock show REC {analysis}` で表示でき、列の意味もそこにある。",
        "none": "測定値がありません。",
    },
}
# Of the tables of the environment and of the parameters.
_FACTS = {"en": ("what", "name", "value"), "ja": ("区分", "名前", "値")}
_LISTS = {"en": ("parameter", "values", "meaning"), "ja": ("パラメータ", "値", "意味")}


_SCENARIOS = {"en": ("scenario", "levels", "meaning"), "ja": ("シナリオ", "水準", "意味")}


def document(experiment: Experiment, session: Session, options: Mapping[str, Any]) -> str:
    """Markdown, in English and then in Japanese. `options`: what the recording keeps (command, seed)."""
    return "\n".join(
        [*_part(experiment, session, options, "en"), "", *_part(experiment, session, options, "ja")]
    )


def _part(experiment: Experiment, session: Session, options: Mapping[str, Any], lang: str) -> list[str]:
    words = _WORDS[lang]
    english = lang == "en"
    lines = [f"# {experiment.title if english else experiment.title_ja}", ""]
    if not session.recording.manifest["complete"]:
        lines += [words["partial"].format(ended=session.recording.ended_by), ""]
    lines += [f"## {words['question']}", "", experiment.question if english else experiment.question_ja, ""]
    lines += [f"## {words['answer']}", "", *_answers(experiment, session, lang), ""]
    lines += [f"## {words['environment']}", "", *_table(_FACTS[lang], _facts(session)), ""]
    lines += [f"## {words['procedure']}", "", *_procedure(experiment, options, lang), ""]
    if experiment.parameters:
        lines += [
            f"## {words['parameters']}",
            "",
            *_table(_LISTS[lang], _parameters(experiment, english)),
            "",
        ]
    lines += [f"## {words['scenarios']}", "", *_table(_SCENARIOS[lang], _scenarios(experiment, english)), ""]
    lines += [f"## {words['result']}", ""]
    for analysis in dict.fromkeys((experiment.analysis, "experiment/verdicts", "experiment/checks")):
        lines += [*_result(session, analysis), "", words["table"].format(analysis=analysis), ""]
    if session.fetch("SELECT count(*) FROM experiment_causes")[0][0]:
        lines += [f"## {words['causes']}", "", *_result(session, "experiment/causes"), ""]
        lines += [words["table"].format(analysis="experiment/causes"), ""]
    return [*lines, f"## {words['again']}", "", f"    {options['command']}", ""]


def _answers(experiment: Experiment, session: Session, lang: str) -> list[str]:
    """One line for each case and scenario: the verdict on the metric of the claim."""
    found = []
    for row in session.run("experiment/verdicts").dicts():
        if row["is_primary"] and row["scenario"] != CONTROL:
            sentence = of_verdict(row, experiment.claim.margin)[0 if lang == "en" else 1]
            place = ", ".join(word for word in (row["workload"], row["parameters"], row["scenario"]) if word)
            found.append(f"- {place}: {sentence}")
    return found or [_WORDS[lang]["none"]]


def _procedure(experiment: Experiment, options: Mapping[str, Any], lang: str) -> list[str]:
    words, english = _WORDS[lang], lang == "en"
    claim, plan = experiment.claim, experiment.plan
    steps = [step.text if english else step.text_ja for step in experiment.prepare]
    if experiment.settings:
        settings = ", ".join(f"`{name}` = `{value}`" for name, value in experiment.settings.items())
        steps.append(words["before"].format(settings=settings))
    for each in experiment.workloads:
        text = each.text if english else each.text_ja
        steps.append(f"{text} {words['run'].format(command=shlex.join(each.run))}")
    better = claim.better if english else {"lower": "小さいほう", "higher": "大きいほう"}[claim.better]
    fixed = words["claim"].format(
        primary=claim.primary,
        better=better,
        margin=100 * claim.margin,
        alpha=claim.alpha,
        baseline=plan.baseline,
        seed=options["seed"],
        looks=", ".join(map(str, plan.looks)),
    )
    return [*(f"{number}. {text}" for number, text in enumerate(steps, 1)), "", fixed]


def _result(session: Session, analysis: str) -> list[str]:
    result = session.run(analysis)
    head = [heading(column) for column in result.columns]
    rows = (
        [cell(value, column) for value, column in zip(row, result.columns, strict=True)]
        for row in result.rows()
    )
    return _table(head, rows)


def _scenarios(experiment: Experiment, english: bool) -> Iterable[tuple[str, ...]]:
    for each in experiment.scenarios:
        levels = ", ".join(f"{name} = {value}" for name, value in experiment.levels(each).items())
        yield each.name, levels, each.text if english else each.text_ja


def _facts(session: Session) -> list[tuple[str, ...]]:
    sql = "SELECT section, name, coalesce(value, '-') FROM environment"
    return session.execute(sql).fetchall()


def _parameters(experiment: Experiment, english: bool) -> Iterable[tuple[str, ...]]:
    for parameter in experiment.parameters:
        values = ", ".join(f"{value:,}" if isinstance(value, int) else value for value in parameter.values)
        unit = f" {parameter.unit}" if parameter.unit else ""
        yield parameter.name, f"{values}{unit}", parameter.text if english else parameter.text_ja


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(str(text).replace("|", "\\|") for text in line) + " |" for line in lines]
