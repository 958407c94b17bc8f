"""`sysdock experiment`: measurements that can be repeated."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sysdock.cli.options import as_root_option, format_option

if TYPE_CHECKING:
    from sysdock.experiment.run_recording import Kept
    from sysdock.library import Experiment, Library

_EPILOG = """Example:

\b
  sysdock experiment list
  sysdock experiment compare -- 'sort words' 'LC_ALL=C sort words'
  sysdock experiment plan disk/fragments
  sysdock experiment run disk/fragments -o fragments
  sysdock experiment resume fragments        after Ctrl-C
"""
_OUTPUT = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="REC",
    help="New folder for the recording. Default: the last part of NAME. What is measured is made in it.",
)
_SEED = click.option(
    "--seed", type=click.IntRange(min=0), metavar="N", help="Seed of the order. Default: drawn, and kept."
)
_SET = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="PARAMETER=A,B",
    help="Other values of a parameter. May be given several times.",
)
_BLOCKS = click.option(
    "--blocks",
    type=click.IntRange(min=1),
    metavar="N",
    help="So many blocks, judged once. Default: the experiment's.",
)
_BUSY = click.option("--busy", is_flag=True, help="Count runs that other programs on the CPUs disturbed.")
_EXPLAIN = click.option(
    "--explain",
    is_flag=True,
    help="Run each scenario once more in every block, under the recorder, and say why they differ.",
)
_TRUST = click.option("--trust", is_flag=True, help="Run an experiment that does not come with sysdock.")
_FAIL_ON = click.option(
    "--fail-on",
    type=click.Choice(["changed"]),
    help="Exit with status 1 if a verdict of the claim is `changed`.",
)


# Colours of verdicts, and of results of a replay.
VERDICTS = {
    "changed": "finding",
    "equivalent": "ok",
    "inconclusive": "unknown",
    "invalid": "note",
    "reproduced": "ok",
    "not reproduced": "finding",
    "not comparable": "unknown",
}


@click.group("experiment", epilog=_EPILOG)
def command() -> None:
    """Measure whether a change makes a difference, in a repeatable experiment.

    Scenarios run in randomized blocks, each from the same state of the machine. The verdict is changed,
    equivalent, inconclusive (with the smallest change that so many blocks show) or invalid (with the reason).
    """


@command.command("list", epilog="Example:\n\n\b\n  sysdock experiment list\n")
@format_option
def list_(format_: str) -> None:
    """List the experiments."""
    from sysdock.cli.list_all import print_list

    print_list("experiments", format_)


@command.command("show", epilog="Example:\n\n\b\n  sysdock experiment show disk/fragments\n")
@click.argument("name", metavar="NAME|FILE")
def show(name: str) -> None:
    """Show the question of an experiment, its parameters, scenarios and workloads."""
    from sysdock.cli.output import say
    from sysdock.screen.experiment import described
    from sysdock.text import printable

    experiment = _find(name)
    heads = (experiment.title, "scenarios (baseline:", "prepared for each case:", "measured in each block:")
    say(map(printable, described(experiment)), heads=heads)


@command.command("plan", epilog="Example:\n\n\b\n  sysdock experiment plan disk/fragments --seed 1\n")
@click.argument("name", metavar="NAME|FILE")
@_SEED
@_SET
@_BLOCKS
@_EXPLAIN
def plan(name: str, seed: int | None, settings: tuple[str, ...], blocks: int | None, explain: bool) -> None:
    """Show what would run, in which order, without running it."""
    from sysdock.cli.output import say
    from sysdock.experiment.plan import lines
    from sysdock.text import printable

    experiment = _changed(_find(name), settings, blocks)
    experiment = experiment.explained() if explain else experiment
    heads = (
        "claim:",
        "cases:",
        "blocks:",
        "level of each look:",
        "comparisons of the claim:",
        "time:",
        "seed:",
    )
    say(map(printable, lines(experiment, _seed(seed))), heads=heads)


@command.command(
    "run",
    epilog="Example:\n\n\b\n  sysdock experiment run disk/fragments -o fragments\n"
    "  sysdock experiment run disk/fragments -o quick --blocks 8 --set file_system=ext4,xfs\n",
)
@click.argument("name", metavar="NAME|FILE")
@_OUTPUT
@_SEED
@_SET
@_BLOCKS
@_BUSY
@_EXPLAIN
@_TRUST
@_FAIL_ON
@click.pass_context
def run(
    ctx: click.Context,
    name: str,
    output: Path | None,
    seed: int | None,
    settings: tuple[str, ...],
    blocks: int | None,
    busy: bool,
    explain: bool,
    trust: bool,
    fail_on: str | None,
) -> None:
    """Run all blocks of an experiment and write a recording with verdicts.

    Ctrl-C ends it in order: what was changed or made is undone, what was measured is kept, and
    `sysdock experiment resume` goes on from there.
    """
    from sysdock.library import Library

    experiment = _changed(_find(name), settings, blocks)
    experiment = experiment.on_busy_machine() if busy else experiment
    experiment = experiment.explained() if explain else experiment
    folder = output or Path(Path(name).stem)
    if not Library().is_own or name.endswith(".toml"):
        _want_trust(experiment, folder, str(experiment.path), Library(), trust=trust)
    words = ["sysdock", "experiment", "run", name, "-o", str(folder)]
    words += [word for setting in settings for word in ("--set", setting)]
    words += ["--blocks", str(blocks)] if blocks else []
    words += ["--busy"] if busy else []
    words += ["--explain"] if explain else []
    options = {"command": shlex.join(words), "id": experiment.id, "seed": _seed(seed)}
    options |= {"blocks": blocks, "busy": busy, "explain": explain}
    options["set"] = [
        [key, values.split(",")] for key, _, values in (text.partition("=") for text in settings)
    ]
    kept = _run(experiment, folder, options)
    _answer(ctx, experiment, kept.folder, fail_on)


@command.command("resume", epilog="Example:\n\n\b\n  sysdock experiment resume fragments\n")
@click.argument("recording", metavar="REC", type=click.Path(path_type=Path))
@_TRUST
@_FAIL_ON
@click.pass_context
def resume(ctx: click.Context, recording: Path, trust: bool, fail_on: str | None) -> None:
    """Resume an interrupted experiment."""
    from sysdock.experiment.run_recording import Kept
    from sysdock.experiment.running import go_on, refuse
    from sysdock.library import Library

    library = Library()
    kept, experiment = Kept.again(recording, library)
    experiment = _trusted(kept, experiment, recording, trust)
    refuse(experiment, library)
    with _progress() as progress:
        go_on(experiment, kept, progress)
    _answer(ctx, experiment, recording, fail_on)


@command.command(
    "report",
    epilog="Example:\n\n\b\n  sysdock experiment report fragments\n"
    "  sysdock experiment report fragments --against other -o documents\n",
)
@click.argument("recording", metavar="REC", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the documents. Default: `documents` in the recording.",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="REC",
    help="Another recording of an experiment: say how the machines differ.",
)
def report(recording: Path, output: Path | None, against: Path | None) -> None:
    """Write the three documents of an experiment: environment definition, procedure and results.

    Each is written as Markdown in English and Japanese, and as a page of HTML with both. `run` writes them,
    too.
    """
    from sysdock.analysis import Session
    from sysdock.cli.output import remark
    from sysdock.experiment.documents import FOLDER, write_documents
    from sysdock.experiment.run_recording import Kept
    from sysdock.library import Library
    from sysdock.recording import Recording

    library = Library()
    kept, experiment = Kept.again(recording, library)
    other = None
    if against:
        with Session(Recording.open(against), library) as session:
            other = session.fetch("SELECT section, name, value, source FROM environment")
    with Session(Recording.open(recording), library) as session:
        folder = output or recording / FOLDER
        for path in write_documents(experiment, session, kept.options, folder, other):
            if path.suffix == ".html":
                remark(f"{path} written")


@command.command(
    "replay",
    epilog="Example:\n\n\b\n  sysdock experiment replay fragments -o again\n"
    "  sysdock experiment replay fragments -o again --format json\n",
)
@click.argument("recording", metavar="REC", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="NEW", required=True, help="Folder to make."
)
@_BUSY
@_TRUST
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
def replay(recording: Path, output: Path, busy: bool, trust: bool, format_: str) -> None:
    """Run the experiment of a recording again, perhaps on another machine, and compare the results.

    Each verdict is reproduced, not reproduced, or not comparable, with the reason. The order of the runs is
    drawn again.
    """
    from sysdock.experiment.run_recording import Kept
    from sysdock.library import Library

    library = Library()
    kept, experiment = Kept.again(recording, library)
    experiment = _trusted(kept, experiment, output, trust)
    experiment = experiment.on_busy_machine() if busy else experiment
    command = shlex.join(["sysdock", "experiment", "replay", str(recording), "-o", str(output)])
    options = {**kept.options, "command": command, "seed": _seed(None), "busy": busy or kept.options["busy"]}
    again = _run(experiment, output, options)
    _print_outcomes(recording, again.folder, library, format_)


def _print_outcomes(first: Path, again: Path, library: Library, format_: str) -> None:
    from dataclasses import asdict

    from sysdock.analysis.writing import json_text
    from sysdock.cli.output import say
    from sysdock.experiment.replaying import compare, named
    from sysdock.recording import Recording
    from sysdock.text import printable

    outcomes, differences = compare(Recording.open(first), Recording.open(again), library)
    if format_ == "json":
        answer = {
            "outcomes": [asdict(each) for each in outcomes],
            "differences": [asdict(each) for each in differences],
        }
        sys.stdout.write(json_text(answer, indent=1) + "\n")
        return
    lines = [f"{each.place}: {each.outcome} ({each.reason})" for each in outcomes]
    lines += ["", f"the machines differ in {named(differences)}" if differences else "the machines are alike"]
    say(map(printable, lines), statuses=VERDICTS)


def _trusted(kept: Kept, experiment: Experiment, folder: Path, trust: bool) -> Experiment:
    """The experiment that a recording repeats: our own file where it is one that comes with sysdock."""
    from sysdock.experiment.trust import own_experiment

    own = own_experiment(experiment, kept.options, kept.library)
    if own is None:
        _want_trust(experiment, folder, str(kept.folder), kept.library, trust=trust)
    return own or experiment


def _want_trust(experiment: Experiment, folder: Path, place: str, library: Library, *, trust: bool) -> None:
    """Says what it runs and sets: as the error that refuses it, or before it begins."""
    from sysdock.cli.output import remark
    from sysdock.experiment.trust import refused, trusted

    if not trust:
        raise refused(experiment, folder, place, library)
    remark(trusted(experiment, folder, library))


@command.command("repair", epilog="Example:\n\n\b\n  sysdock experiment repair\n")
@click.pass_context
def repair(ctx: click.Context) -> None:
    """Undo what experiments that were killed had changed on this machine.

    Exit status 1: something could not be undone.
    """
    from sysdock.cli.output import remark
    from sysdock.experiment.state import repair as repair_

    done = repair_(remark)
    if not done:
        remark("nothing to repair")
    ctx.exit(0 if all(each.complete for each in done) else 1)


@command.command(
    "compare",
    epilog="Example:\n\n\b\n  sysdock experiment compare -- 'sort words' 'LC_ALL=C sort words'\n"
    "  sysdock experiment compare --blocks 12 --metric cpu_s -- './old' './new'\n",
)
@click.argument("commands", nargs=-1, required=True, metavar="'CMD A' 'CMD B'...")
@_BLOCKS
@_SEED
@_OUTPUT
@_EXPLAIN
@click.option(
    "--duet",
    is_flag=True,
    help="Run the commands of a block at the same time, each on its own CPUs: for pure computing.",
)
@click.option(
    "--metric", default="elapsed_s", show_default=True, metavar="NAME", help="What the verdict is about."
)
@click.option(
    "--margin",
    type=float,
    default=1.0,
    show_default=True,
    metavar="PERCENT",
    help="A smaller change does not matter.",
)
@click.option(
    "--minutes",
    type=float,
    default=60.0,
    show_default=True,
    metavar="N",
    help="No block begins after so long.",
)
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
@_FAIL_ON
@as_root_option
@click.pass_context
def compare(
    ctx: click.Context,
    commands: tuple[str, ...],
    blocks: int | None,
    seed: int | None,
    output: Path | None,
    explain: bool,
    duet: bool,
    metric: str,
    margin: float,
    minutes: float,
    format_: str,
    fail_on: str | None,
    as_root: bool,
) -> None:
    """Compare commands of the shell with the first of them.

    They run in randomized blocks until the verdict is clear: judged after 10, 20 and 40 blocks.
    """
    from sysdock.cli.compare_runs import compare_commands

    options = {"blocks": blocks, "metric": metric, "margin": margin / 100, "minutes": minutes}
    options |= {"explain": explain, "duet": duet}
    is_changed = compare_commands(commands, options, _seed(seed), output, format_, as_root=as_root)
    ctx.exit(1 if fail_on and is_changed else 0)


def _find(name: str) -> Experiment:
    """The experiment of that name, or in that file."""
    from sysdock.library import Library
    from sysdock.library.experiments import parse_experiment

    if name.endswith(".toml"):
        return parse_experiment(Path(name), Path(name).stem)
    return Library().experiment(name)


def _seed(seed: int | None) -> int:
    import secrets

    return secrets.randbits(32) if seed is None else seed


def _run(experiment: Experiment, folder: Path, options: dict[str, Any]) -> Kept:
    from sysdock.experiment import run as run_experiment
    from sysdock.experiment.trust import own_experiment
    from sysdock.library import Library

    with _progress() as progress:
        try:
            return run_experiment(experiment, Library(), folder, options, progress)
        except BaseException:
            if (folder / "recording.json").is_file():
                needs = "" if own_experiment(experiment, options, Library()) else " --trust"
                words = f"sysdock experiment resume {shlex.quote(str(folder))}{needs} goes on"
                progress.say(f"what was measured so far is in {folder}; {words}")
            raise


class _progress:
    """A line of progress, removed before anything else is printed."""

    def __enter__(self) -> Any:
        from sysdock.cli.output import remark
        from sysdock.cli.progress import ProgressLine
        from sysdock.experiment.running import Progress

        self.line = ProgressLine()

        def say(text: str) -> None:
            self.line.wipe()
            remark(text)

        return Progress(lambda text: self.line.show(f"sysdock: {text}"), say)

    def __exit__(self, *_: object) -> None:
        self.line.clear()


def _answer(ctx: click.Context, experiment: Experiment, folder: Path, fail_on: str | None) -> None:
    """The table of results, the verdicts in words, and where the rest is."""
    from sysdock.analysis import Session
    from sysdock.cli.output import print_result, remark, say
    from sysdock.recording import Recording
    from sysdock.screen.experiment import cause_lines, verdict_lines
    from sysdock.text import printable

    with Session(Recording.open(folder)) as session:
        if experiment.analysis != "experiment/verdicts":
            print_result(session.run(experiment.analysis), "table", 0)
            sys.stdout.write("\n")
        rows = session.run("experiment/verdicts").dicts()
        lines = [*verdict_lines(rows, experiment), *cause_lines(session.run("experiment/causes").dicts())]
        say(map(printable, lines), statuses=VERDICTS)
    remark(f"documents are in {folder}/documents; next: sysdock show {folder} experiment/verdicts")
    is_changed = any(
        row["is_primary"] and row["verdict"] == "changed" and row["scenario"] != "A/A" for row in rows
    )
    ctx.exit(1 if fail_on and is_changed else 0)


def _changed(experiment: Experiment, settings: tuple[str, ...], blocks: int | None) -> Experiment:

    from sysdock.errors import UserError

    for setting in settings:
        name, equals, texts = setting.partition("=")
        if not equals or not all(texts.split(",")):
            raise UserError(f"`{setting}` is not PARAMETER=A,B", "write `piece_bytes=4096,65536`", "--set")
        experiment = experiment.with_values(name, texts.split(","))
    return experiment.with_blocks(blocks) if blocks else experiment
