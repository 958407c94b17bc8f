"""Preparations about programs and their files."""

from __future__ import annotations

from pathlib import Path

from sysdock.errors import UserError
from sysdock.experiment.bench import Bench
from sysdock.experiment.preparation import preparation
from sysdock.experiment.tools import find_tool, write_file


@preparation(lambda programs, **_: tuple(programs))
def need_programs(bench: Bench, *, programs: list[str]) -> None:
    """Names programs within commands of a shell: one that is missing is reported before anything is made."""
    for program in programs:
        bench.about("tool", program, find_tool(program))


@preparation()
def write_files(bench: Bench, *, files: dict[str, str]) -> None:
    """Writes texts as they are, `{...}` too, into files: scripts and configurations, as `{scratch}/NAME`."""
    for name, text in files.items():
        if name != Path(name).name or name in ("", ".."):
            raise UserError(f"`{name}` is no name of a file", "leave out folders: files lie in {scratch}")
        write_file(bench.scratch / name, text)
