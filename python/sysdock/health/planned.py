"""The steps of a class, as a file for the generator."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sysdock.library import Library


@contextmanager
def plan_file(name: str) -> Iterator[tuple[Path, int | None]]:
    """The plan `knowhow/health/NAME.toml` as JSON, for a moment, and the seconds after which no step begins.

    UserError: there is no such plan, or something is wrong in it.
    """
    plan = Library().load_plan(name)
    with tempfile.NamedTemporaryFile("w", prefix="sysdock-plan-", suffix=".json", encoding="utf-8") as file:
        json.dump(plan.content(), file)
        file.flush()
        yield Path(file.name), plan.within_s


def default_output(name: str) -> Path:
    """A name for the recording, in the current folder: `health-S-20261125-161500`."""
    return Path(f"health-{name}-{time.strftime('%Y%m%d-%H%M%S')}")


def called() -> str:
    """The command that the user gave, as a shell would read it."""
    return shlex.join(["sysdock", *sys.argv[1:]])
