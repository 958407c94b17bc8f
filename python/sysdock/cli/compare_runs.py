"""Commands of the shell, compared in randomized blocks: `experiment compare` and `compare --repeat`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sysdock.errors import UserError
from sysdock.scratch import scratch_folder

if TYPE_CHECKING:
    from sysdock.experiment.run_recording import Kept
    from sysdock.library import Experiment

_NS = 1e9


def compare_runs(commands: Sequence[str], rounds: int, format_: str, *, as_root: bool) -> None:
    """`sysdock compare --repeat`: runs both commands and prints what the blocks say."""
    import secrets

    from sysdock.cli.output import remark
    from sysdock.experiment.signed_rank import smallest_p

    if len(commands) != 2:
        raise UserError(
            "--repeat needs two commands", "sysdock compare --repeat 10 -- 'A' -- 'B'", "--repeat"
        )
    if format_ == "csv":
        raise UserError("the result is not a table", "use --format json", "--format csv")
    if smallest_p(rounds) > 0.01:
        remark("with fewer than 8 rounds no difference can be significant")
    options = {"blocks": rounds, "metric": "elapsed_s", "margin": 0.01, "minutes": 1e5}
    options["explain"] = False
    compare_commands(commands, options, secrets.randbits(32), None, format_, as_root=as_root)


def compare_commands(
    commands: Sequence[str],
    options: dict[str, Any],
    seed: int,
    output: Path | None,
    format_: str,
    *,
    as_root: bool,
) -> bool:
    """Runs them, prints the verdicts, and says whether the primary metric of one of them changed.

    Under sudo they run as the user who called it; as_root: as root.
    """
    from sysdock.cli.experiment import VERDICTS
    from sysdock.cli.output import say
    from sysdock.experiment.one_off import of_commands
    from sysdock.experiment.results import judge_experiment, verdict_row
    from sysdock.screen.experiment import cause_lines, run_lines
    from sysdock.text import printable

    if len(commands) < 2:
        raise UserError("it needs two commands or more", "sysdock experiment compare -- 'A' 'B'")
    experiment = of_commands(commands, **options)
    with _folder(output) as folder:
        kept = _run(experiment, folder, seed, as_root=as_root)
        causes = _causes(folder)
    verdicts, _ = judge_experiment(experiment, experiment.cases(), kept.rows, {})
    primary = [each for each in verdicts if each.samples.is_primary]
    if format_ == "json":
        _print_json(experiment, kept, verdicts, causes, seed)
    else:
        rows = [dict(zip(_COLUMNS, verdict_row(verdict), strict=True)) for verdict in primary]
        say(run_lines(experiment, _counted(kept), rows), statuses=VERDICTS)
        say(map(printable, cause_lines(causes)), statuses=VERDICTS)
    return any(each.verdict == "changed" for each in primary)


def _run(experiment: Experiment, folder: Path, seed: int, *, as_root: bool) -> Kept:
    from sysdock.cli.experiment import _run as run_experiment

    words = ["sysdock", "experiment", "compare"]
    words += ["--explain"] if experiment.plan.explain_every else []
    words += ["--as-root"] if as_root else []
    words += ["--duet"] if experiment.plan.duet else []
    words += [f"--blocks={experiment.plan.looks[0]}"] if len(experiment.plan.looks) == 1 else []
    words += [f"--metric={experiment.claim.primary}"] if experiment.claim.primary != "elapsed_s" else []
    command = shlex.join([*words, "--", *experiment.factors[0].levels])
    kept = run_experiment(
        experiment,
        folder,
        {
            "command": command,
            "id": "compare",
            "seed": seed,
            "set": [],
            "blocks": None,
            "busy": False,
            "explain": False,
            "as_root": as_root,
        },
    )
    if not any(row.kind == "measured" and not row.rejected for row in kept.rows):
        raise UserError("no block was completed", "run each command alone first")
    return kept


def _causes(folder: Path) -> list[dict[str, Any]]:
    from sysdock.analysis import Session
    from sysdock.recording import Recording

    with Session(Recording.open(folder)) as session:
        return session.run("experiment/causes").dicts()


@contextmanager
def _folder(output: Path | None) -> Iterator[Path]:
    """The folder of the recording: the one that was named, or one that is removed at the end."""
    if output is not None:
        yield output
        return
    with scratch_folder() as folder:
        yield Path(folder) / "rec"


_COLUMNS = (
    "case_id", "workload", "scenario", "metric", "is_primary", "verdict", "ratio", "ratio_low",
    "ratio_high", "difference", "p", "p_adjusted", "blocks", "baseline_median", "scenario_median",
    "smallest_visible", "reason",
)  # fmt: skip


def _counted(kept: Kept) -> list[Any]:
    from sysdock.experiment.results import counted

    return counted(kept.rows, 1)


def _print_json(
    experiment: Experiment,
    kept: Kept,
    verdicts: Sequence[Any],
    causes: Sequence[dict[str, Any]],
    seed: int,
) -> None:
    from sysdock.analysis.writing import json_text
    from sysdock.experiment.results import verdict_row

    rows = [dict(zip(_COLUMNS, verdict_row(each), strict=True)) for each in verdicts]
    times = {
        each.name: [row.dur_ns / _NS for row in _counted(kept) if row.scenario == each.name]
        for each in experiment.scenarios
    }
    answer = {
        "commands": list(experiment.factors[0].levels),
        "seed": seed,
        "elapsed_s": times,
        "verdicts": rows,
        "causes": causes,
    }
    sys.stdout.write(json_text(answer, indent=1) + "\n")
