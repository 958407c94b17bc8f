"""An experiment without a file: some commands against the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sysdock.library import Claim, Experiment, Plan, Reject, Scenario, Workload
from sysdock.library.experiments import Factor
from sysdock.library.toml_text import quoted

_QUESTION = "Does B take another time than A?"
_QUESTION_JA = "B の時間は A と違うか。"


def names_of(commands: Sequence[str]) -> list[str]:
    """A, B, C, ..."""
    return [chr(ord("A") + number) for number in range(len(commands))]


def of_commands(
    commands: Sequence[str],
    *,
    blocks: int | None,
    metric: str,
    margin: float,
    minutes: float,
    explain: bool = False,
    duet: bool = False,
) -> Experiment:
    """Commands of the shell as scenarios. blocks None: looks after 10, 20 and 40."""
    names = names_of(commands)
    text = "A command of the shell."
    text_ja = "シェルのコマンド。"
    return Experiment(
        id="compare",
        path=Path("experiment.toml"),
        title="Commands compared",
        title_ja="コマンドの比較",
        question=_QUESTION,
        question_ja=_QUESTION_JA,
        analysis="experiment/verdicts",
        claim=Claim(primary=metric, margin=margin, detect=1.0),
        plan=Plan(
            baseline=names[0],
            looks=(blocks,) if blocks else (10, 20, 40),
            pilot=min(8, blocks) if blocks else 8,
            dry=1,
            aa=False,
            minutes=minutes,
            explain_every=1 if explain else 0,
            duet=duet,
        ),
        parameters=(),
        factors=(Factor("command", tuple(commands), None, text, text_ja),),
        scenarios=tuple(
            Scenario(name, {"command": command}, command, command)
            for name, command in zip(names, commands, strict=True)
        ),
        prepare=(),
        settings={},
        workloads=(Workload("command", text, text_ja, ("sh", "-c", "{command}")),),
        # On a busy machine, blocks are compared and not runs: nothing is left out.
        reject=Reject(swap=False, throttled=False, foreign_cpu=None, steal=None),
    )


def as_toml(experiment: Experiment) -> str:
    """Its file, as a recording keeps it: `resume` and `report` read it."""
    claim, plan = experiment.claim, experiment.plan
    lines = [
        f"{key} = {quoted(getattr(experiment, key))}"
        for key in ("title", "title_ja", "question", "question_ja")
    ]
    lines += ["", "[claim]", f"primary = {quoted(claim.primary)}", f"margin_percent = {100 * claim.margin!r}"]
    lines += [
        "detect_percent = 100",
        "",
        "[plan]",
        f"looks = {list(plan.looks)}",
        f"pilot = {plan.pilot}",
        "dry = 1",
    ]
    lines += ["aa = false", f"minutes = {plan.minutes!r}", f"explain_every = {plan.explain_every}"]
    lines += [f"duet = {str(plan.duet).lower()}"]
    lines += ["", "[reject]"]
    lines += ["swap = false", "throttled = false", "foreign_cpu_percent = false", "steal_percent = false"]
    levels = ", ".join(quoted(level) for level in experiment.factors[0].levels)
    lines += ["", "[factors.command]", f"levels = [{levels}]", 'text = "A command of the shell."']
    lines += ['text_ja = "シェルのコマンド。"']
    for each in experiment.scenarios:
        lines += ["", f"[scenarios.{each.name}]", f"command = {quoted(each.levels['command'])}"]
        lines += [f"text = {quoted(each.text)}", f"text_ja = {quoted(each.text_ja)}"]
    lines += ["", "[[workloads]]", 'name = "command"', 'run = ["sh", "-c", "{command}"]']
    lines += ['text = "A command of the shell."', 'text_ja = "シェルのコマンド。"', ""]
    return "\n".join(lines)
