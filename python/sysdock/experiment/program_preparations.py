"""Preparations about programs."""

from __future__ import annotations

from sysdock.experiment.bench import Bench
from sysdock.experiment.preparation import preparation
from sysdock.experiment.tools import find_tool


@preparation(lambda programs, **_: tuple(programs))
def need_programs(bench: Bench, *, programs: list[str]) -> None:
    """Names programs within commands of a shell: one that is missing is reported before anything is made."""
    for program in programs:
        bench.about("tool", program, find_tool(program))
