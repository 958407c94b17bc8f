"""`sysdock experiment`: measurements that can be repeated."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sysdock.cli.options import format_option

if TYPE_CHECKING:
    from sysdock.library import Experiment

_EPILOG = """Example:

\b
  sysdock experiment list
  sysdock experiment run disk/fragments -o fragments
"""
_LIST_EPILOG = """Example:

\b
  sysdock experiment list
"""
_SHOW_EPILOG = """Example:

\b
  sysdock experiment show disk/fragments
"""
_RUN_EPILOG = """Example:

\b
  sysdock experiment run disk/fragments -o fragments
  sysdock experiment run disk/fragments -o quick --rounds 3 --set file_system=ext4,xfs --set files=8
"""


@click.group("experiment", epilog=_EPILOG)
def command() -> None:
    """Measure what something costs, in a way that can be repeated elsewhere."""


@command.command("list", epilog=_LIST_EPILOG)
@format_option
def list_(format_: str) -> None:
    """The experiments that there are."""
    from sysdock.cli.list_all import print_list

    print_list("experiments", format_)


@command.command("show", epilog=_SHOW_EPILOG)
@click.argument("name", metavar="NAME")
def show(name: str) -> None:
    """What an experiment asks, its parameters, and its steps."""
    from sysdock.library import Library
    from sysdock.text import printable_lines

    experiment = Library().experiment(name)
    sys.stdout.write(printable_lines("\n".join(_described(experiment))) + "\n")


@command.command("run", epilog=_RUN_EPILOG)
@click.argument("name", metavar="NAME")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="REC",
    help="Folder to make; new. Default: the last part of NAME. What is measured is made in it.",
)
@click.option("--rounds", type=click.IntRange(min=1), metavar="N", help="Rounds. Default: the experiment's.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="PARAMETER=A,B",
    help="Other values of a parameter. May be given several times.",
)
@click.option("--keep", is_flag=True, help="Keep the images of the file systems that were made.")
@click.option("--trust", is_flag=True, help="Run an experiment that does not come with sysdock.")
def run(
    name: str, output: Path | None, rounds: int | None, settings: tuple[str, ...], keep: bool, trust: bool
) -> None:
    """Make the cases of an experiment one after the other, measure each, write a recording with a report.

    Needs root. Ctrl-C ends it in order: what was made is taken down, what was measured is kept.
    """
    from sysdock.cli.output import remark
    from sysdock.errors import UserError
    from sysdock.experiment import run as run_experiment
    from sysdock.library import Library

    library = Library()
    if not library.is_own and not trust:
        fact = "this experiment does not come with sysdock, and would run as root"
        raise UserError(fact, "read it, then give --trust", str(library.root))
    experiment = _changed(library.experiment(name), rounds, settings)
    folder = output or Path(name.rsplit("/", 1)[-1])
    words = ["sysdock", "experiment", "run", name, "-o", str(folder)]
    words += ["--rounds", str(rounds)] if rounds else []
    words += [word for setting in settings for word in ("--set", setting)]
    run_experiment(experiment, library, folder, command=shlex.join(words), keep=keep, say=remark)
    _answer(experiment, folder)


def _answer(experiment: Experiment, folder: Path) -> None:
    """The table of results, and where the rest is."""
    from sysdock.analysis import Session
    from sysdock.cli.output import print_result, remark
    from sysdock.recording import Recording

    with Session(Recording.open(folder)) as session:
        print_result(session.run(experiment.analysis), "table", 0)
    remark(f"{folder}/report.md written; next: sysdock show {folder} {experiment.analysis}")


def _changed(experiment: Experiment, rounds: int | None, settings: tuple[str, ...]) -> Experiment:
    from dataclasses import replace

    from sysdock.errors import UserError

    for setting in settings:
        name, equals, texts = setting.partition("=")
        if not equals or not all(texts.split(",")):
            raise UserError(f"`{setting}` is not PARAMETER=A,B", "write `piece_bytes=4096,65536`", "--set")
        experiment = experiment.with_values(name, texts.split(","))
    return replace(experiment, rounds=rounds) if rounds else experiment


def _described(experiment: Experiment) -> list[str]:
    lines = [experiment.title, "", experiment.question, "", "parameters:"]
    for parameter in experiment.parameters:
        values = ", ".join(map(str, parameter.values))
        lines.append(f"  {parameter.name} = {values}{f' {parameter.unit}' if parameter.unit else ''}")
        lines.append(f"      {parameter.text}")
    lines += ["", "steps of each case:"]
    lines += [f"  {number}. {step.text}" for number, step in enumerate(experiment.steps, 1)]
    cases = len(experiment.cases())
    lines += [
        "",
        f"{cases} cases, {experiment.rounds} rounds; results: sysdock show REC {experiment.analysis}",
    ]
    return lines
