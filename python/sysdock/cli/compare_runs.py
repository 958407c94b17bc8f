"""`sysdock compare --repeat`: two commands, run in turns."""

from __future__ import annotations

import secrets
import statistics
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sysdock.errors import UserError

if TYPE_CHECKING:
    from sysdock.experiment.repeated import Rounds, Verdict

_NS = 1e9


def compare_runs(commands: Sequence[str], rounds: int, format_: str) -> None:
    """Runs both commands and prints what the rounds tell."""
    from sysdock.cli.output import remark
    from sysdock.cli.progress import ProgressLine
    from sysdock.experiment.repeated import LEAST_ROUNDS, run_in_turns

    if len(commands) != 2:
        raise UserError(
            "--repeat needs two commands", "sysdock compare --repeat 10 -- 'A' -- 'B'", "--repeat"
        )
    if format_ == "csv":
        raise UserError("the result is not a table", "use --format json", "--format csv")
    if rounds < LEAST_ROUNDS:
        remark(f"with fewer than {LEAST_ROUNDS} rounds no difference can be significant")

    first, second = commands
    line = ProgressLine()
    try:
        found = run_in_turns(
            first,
            second,
            rounds,
            secrets.randbits(32),
            lambda done: line.show(f"sysdock: round {done} of {rounds} done"),
        )
    finally:
        line.clear()
    if format_ == "json":
        _print_json(commands, found)
    else:
        sys.stdout.write("\n".join(_lines(commands, found, found.verdict())) + "\n")


def _lines(commands: Sequence[str], found: Rounds, verdict: Verdict) -> list[str]:
    from sysdock.text import human_ns, printable

    width = max(map(len, commands))
    lines = []
    for name, command, times in zip("AB", commands, (found.a, found.b), strict=True):
        middle, least, most = (
            human_ns(int(_NS * t)) for t in (statistics.median(times), min(times), max(times))
        )
        lines.append(
            f"{name}  {printable(command):<{width}}  {len(times)} runs, median {middle} ({least} to {most})"
        )
    between = "unknown: too few rounds"
    if verdict.low is not None and verdict.high is not None:
        between = f"{verdict.low:.2f} to {verdict.high:.2f}"
    ratio = f"B takes {verdict.ratio:.2f} times as long as A (99 % interval: {between}; p = {verdict.p:.2g})"
    return [
        *lines,
        "",
        f"{ratio}: {'they differ' if verdict.is_different else 'no significant difference'}",
    ]


def _print_json(commands: Sequence[str], found: Rounds) -> None:
    from sysdock.analysis.writing import json_text

    verdict = found.verdict()
    answer = {
        "commands": list(commands),
        "seed": found.seed,
        "times_s": {"a": found.a, "b": found.b},
        "ratio": verdict.ratio,
        "interval": [verdict.low, verdict.high],
        "confidence": 0.99,
        "p": verdict.p,
        "differ": verdict.is_different,
    }
    sys.stdout.write(json_text(answer, indent=1) + "\n")
