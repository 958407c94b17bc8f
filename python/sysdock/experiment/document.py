"""The readable result of an experiment: question, environment, procedure, result; in both languages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sysdock.analysis import Session
from sysdock.analysis.writing import cell, heading
from sysdock.library import Experiment

NAME = "report.md"
_WORDS = {
    "en": {
        "question": "Question",
        "environment": "Environment",
        "procedure": "Procedure",
        "result": "Result",
        "parameters": "Parameters",
        "rounds": "{rounds} rounds, in which the subjects have their turns; numbers are their medians.",
        "partial": "**Not complete**: ended by `{ended}`. The table has what was measured until then.",
        "again": "The same again",
        "table": "`sysdock show REC {analysis}` prints this table, and says what its columns mean.",
    },
    "ja": {
        "question": "問い",
        "environment": "環境",
        "procedure": "手順",
        "result": "結果",
        "parameters": "パラメータ",
        "rounds": "読み込みは {rounds} 回ずつ、対象を交互に行う。数値は中央値。",
        "partial": "**未完了**: `{ended}` により終了。表はそれまでの測定値。",
        "again": "再実行",
        "table": "この表は `sysdock show REC {analysis}` で表示でき、列の意味もそこにある。",
    },
}
# Of the tables of the environment and of the parameters.
_FACTS = {"en": ("what", "name", "value"), "ja": ("区分", "名前", "値")}
_LISTS = {"en": ("parameter", "values", "meaning"), "ja": ("パラメータ", "値", "意味")}


def document(experiment: Experiment, session: Session, command: str) -> str:
    """Markdown; `command` repeats the experiment."""
    return "\n".join(
        [*_part(experiment, session, command, "en"), "", *_part(experiment, session, command, "ja")]
    )


def _part(experiment: Experiment, session: Session, command: str, lang: str) -> list[str]:
    words = _WORDS[lang]
    english = lang == "en"
    manifest = session.recording.manifest
    lines = [f"# {experiment.title if english else experiment.title_ja}", ""]
    if not manifest["complete"]:
        lines += [words["partial"].format(ended=session.recording.ended_by), ""]
    lines += [f"## {words['question']}", "", experiment.question if english else experiment.question_ja, ""]
    lines += [f"## {words['environment']}", "", *_table(_FACTS[lang], _facts(session)), ""]
    lines += [f"## {words['procedure']}", ""]
    lines += [
        f"{number}. {step.text if english else step.text_ja}"
        for number, step in enumerate(experiment.steps, 1)
    ]
    lines += ["", words["rounds"].format(rounds=experiment.rounds), ""]
    lines += [f"## {words['parameters']}", "", *_table(_LISTS[lang], _parameters(experiment, english)), ""]
    result = session.run(experiment.analysis)
    head = [heading(column) for column in result.columns]
    rows = (
        [cell(value, column) for value, column in zip(row, result.columns, strict=True)]
        for row in result.rows()
    )
    lines += [f"## {words['result']}", "", *_table(head, rows), ""]
    lines += [words["table"].format(analysis=experiment.analysis), ""]
    return [*lines, f"## {words['again']}", "", f"    {command}", ""]


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
