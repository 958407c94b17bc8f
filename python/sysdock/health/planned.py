"""Planned measurements: the plan of a class, and steps as a file for the generator."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.library.load_plan import LoadPlan, parse_load_plan


def load_class(name: str) -> LoadPlan:
    """The plan of a class: `knowhow/health/NAME.toml`, or the file that the name is the path of.

    UserError: there is no such plan, or something is wrong in it.
    """
    if name.endswith(".toml") or "/" in name:
        return parse_load_plan(Path(name))
    try:
        return Library().load_plan(name)
    except UserError as error:
        hint = error.hint or "S, M and L come with sysdock"
        raise UserError(
            f"no class `{name}`", f"{hint}; or name a TOML file: ./{name}.toml", "--class"
        ) from None


@contextmanager
def plan_file(steps: Sequence[dict[str, Any]]) -> Iterator[Path]:
    """The steps as a file for the generator, for a moment."""
    with tempfile.NamedTemporaryFile("w", prefix="sysdock-plan-", suffix=".json", encoding="utf-8") as file:
        json.dump({"steps": list(steps)}, file)
        file.flush()
        yield Path(file.name)


def default_output(name: str) -> Path:
    """A name for the recording, in the current folder: `health-S-20261125-161500`."""
    return Path(f"health-{Path(name).stem}-{time.strftime('%Y%m%d-%H%M%S')}")


def called() -> str:
    """The command that the user gave, as a shell would read it."""
    return shlex.join(["sysdock", *sys.argv[1:]])
