"""An experiment without a file: some commands against the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sysdock.entries import quoted
from sysdock.library import Claim, Experiment, Plan, Reject, Scenario, Workload
from sysdock.library.experiments import ONE_COMMAND, Factor
from sysdock.sentences import Prose, fact, in_all, languages, prose, say, translated_keys

_TITLE, _QUESTION, _COMMAND = (
    Prose(in_all(fact(f"experiment/one_off_{name}"))) for name in ("title", "question", "command")
)


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
    text = say(_COMMAND, languages()[0])
    return Experiment(
        id="compare",
        path=Path("experiment.toml"),
        title=say(_TITLE, languages()[0]),
        titles=_TITLE,
        question=say(_QUESTION, languages()[0]),
        questions=_QUESTION,
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
        factors=(Factor("command", tuple(commands), None, text, _COMMAND),),
        scenarios=tuple(
            Scenario(
                name, {"command": command}, command, prose(command, **dict.fromkeys(languages()[1:], command))
            )
            for name, command in zip(names, commands, strict=True)
        ),
        prepare=(),
        settings={},
        workloads=(Workload("command", text, _COMMAND, ONE_COMMAND),),
        # On a busy machine, blocks are compared and not runs, so no run is rejected.
        reject=Reject(swap=False, throttled=False, foreign_cpu=None, steal=None),
    )


def as_toml(experiment: Experiment) -> str:
    """The experiment's file, as a recording keeps it: `resume` and `report` read it."""
    claim, plan = experiment.claim, experiment.plan
    lines = [*_stated("title", experiment.titles), *_stated("question", experiment.questions)]
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
    lines += ["", "[factors.command]", f"levels = [{levels}]", *_stated("text", _COMMAND)]
    for each in experiment.scenarios:
        lines += ["", f"[scenarios.{each.name}]", f"command = {quoted(each.levels['command'])}"]
        lines += _stated("text", each.texts)
    lines += ["", "[[workloads]]", 'name = "command"', f"run = [{', '.join(map(quoted, ONE_COMMAND))}]"]
    lines += [*_stated("text", _COMMAND), ""]
    return "\n".join(lines)


def _stated(key: str, words: Prose) -> list[str]:
    """The lines of a text in every language."""
    names = zip(languages(), translated_keys(key), strict=True)
    return [f"{name} = {quoted(say(words, lang))}" for lang, name in names]
