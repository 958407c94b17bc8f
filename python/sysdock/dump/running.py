"""Runs scripts about a dump, each in a process of its own, and puts their rows into the recording."""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import sysdock
from sysdock.dump.connection import Connection
from sysdock.dump.dump import Dump
from sysdock.dump.worker import Task
from sysdock.errors import UserError
from sysdock.library import DumpScript, Library, Param
from sysdock.library.header import convert
from sysdock.recording.writing import add_part
from sysdock.scratch import scratch_folder

MEMORY_MB = 1024
# Limit for a script that finds a table without end.
MOST_ROWS = 250_000
# Time limit for the start of a script, and for the result of one that has exceeded its time [s].
_START_S, _GRACE_S = 120, 5
SCRIPTS_TABLE = "dump_scripts"


@dataclass
class Result:
    """The result of a script: rows in the order of its columns.

    `stopped`: why it did not come to its end. `lacking`: which of its limits this machine does not have.
    """

    script: DumpScript
    rows: list[list[Any]] = field(default_factory=list)
    stopped: str | None = None
    lacking: list[str] = field(default_factory=list)


def missing(script: DumpScript, dump: Dump) -> list[str]:
    """Symbols, or members of structures, that a script needs and this dump does not have."""
    return [need for need in script.needs if not _has(dump, need)]


def _has(dump: Dump, need: str) -> bool:
    structure, _, member = need.partition(".")
    try:
        if member:
            dump.offset(structure, member)
        elif need in ("symbols", "types"):
            return bool(dump.capabilities()[need])
        else:
            dump.symbol(need)
    except UserError:
        return False
    return True


def refuse_untrusted(scripts: Iterable[DumpScript], library: Library) -> None:
    """Raises a UserError where the function of a script would run that does not come with sysdock."""
    own = library.own_root.resolve()
    for script in scripts:
        if script.columns and not script.path.resolve().is_relative_to(own):
            hint = "a script is a program: read it, then run it with --trust"
            raise UserError(f"{script.name} does not come with sysdock", hint, str(script.path))


def bound(scripts: Iterable[DumpScript], given: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The parameters of each script; a UserError for one that none of them has, or that does not fit."""
    scripts = list(scripts)
    known = {param.name for script in scripts for param in script.params}
    for name in given:
        if name not in known:
            hint = f"the parameters are {', '.join(sorted(known))}" if known else "these questions have none"
            raise UserError(f"no parameter `{name}`", hint, "--param")
    return {
        script.name: {param.name: _value(script, param, given) for param in script.params}
        for script in scripts
    }


def _value(script: DumpScript, param: Param, given: Mapping[str, str]) -> Any:
    if param.name not in given:
        if param.default is None:
            raise UserError(
                f"{script.name} needs the parameter `{param.name}`: {param.text}",
                f"-p {param.name}=VALUE",
                "--param",
            )
        return convert(str(param.default), param.type) if param.type != "VARCHAR" else param.default
    text = given[param.name]
    try:
        # Addresses are written in hexadecimal digits.
        return (
            int(text, 16) if param.type == "BIGINT" and text.startswith("0x") else convert(text, param.type)
        )
    except ValueError:
        raise UserError(f"`{text}` is not a {param.type}", place=f"-p {param.name}") from None


def run_script(
    script: DumpScript,
    core: Path,
    params: Mapping[str, Any],
    *,
    user_memory: bool = False,
    seconds: int | None = None,
) -> Result:
    """Runs the function of a script on a dump.

    It has limits of time and memory, no network, and no files but in an empty folder. What it has found
    before it is stopped is in the result.
    """
    with scratch_folder() as folder:
        return _run_in(Path(folder), script, core, params, user_memory, seconds or script.seconds)


def _run_in(
    folder: Path, script: DumpScript, core: Path, params: Mapping[str, Any], user_memory: bool, limit: int
) -> Result:
    read_end, write_end = os.pipe()
    task = Task(
        core=str(core),
        path=str(script.path.resolve()),
        folder=str(folder),
        params=dict(params),
        user_memory=user_memory,
        memory_mb=MEMORY_MB,
        seconds=limit,
        out=write_end,
        parent=os.getpid(),
    )
    result = Result(script)
    with os.fdopen(read_end, "rb") as out:
        try:
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", "sysdock.dump.worker"],
                stdin=subprocess.PIPE,
                pass_fds=[write_end],
                env=_environment(),
                start_new_session=True,
            )
        finally:
            os.close(write_end)
        try:
            assert child.stdin
            child.stdin.write(json.dumps(asdict(task)).encode())
            child.stdin.close()
            has_ended = _take(result, _lines(out, limit + _GRACE_S))
        finally:
            code = _end(child)
    if not has_ended:
        result.stopped = (
            "killed: more time or memory than allowed" if code is None or code < 0 else f"exit status {code}"
        )
    return result


def _end(child: subprocess.Popen[bytes]) -> int | None:
    """Ends the child; its exit status, if it has ended by itself: what is over its time has not."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        return child.wait(timeout=1)
    child.kill()
    child.wait()
    return None


def _environment() -> dict[str, str]:
    """The script has no use for what this one's environment holds."""
    kept = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TZ", "SYSDOCK_NATIVE", "SYSDOCK_KNOWHOW")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    package = Path(sysdock.__file__).resolve().parents[1]
    return {**environment, "PYTHONPATH": str(package), "PYTHONIOENCODING": "utf-8:surrogateescape"}


def _lines(out: Any, seconds: float) -> Iterator[bytes]:
    """Lines until the end, or until the time is over, which counts from the first of them."""
    until = time.monotonic() + _START_S
    has_begun = False
    with selectors.DefaultSelector() as selector:
        selector.register(out, selectors.EVENT_READ)
        rest = b""
        while (left := until - time.monotonic()) > 0 and selector.select(left):
            found = os.read(out.fileno(), 1 << 16)
            if not found:
                return
            *whole, rest = (rest + found).split(b"\n")
            if whole and not has_begun:
                until, has_begun = time.monotonic() + seconds, True
            yield from whole


def _take(result: Result, lines: Iterator[bytes]) -> bool:
    """Collects rows until the script states its end; False: it does not."""
    columns = result.script.columns
    for line in lines:
        try:
            found = json.loads(line)
            if found == {}:
                continue
            if isinstance(found, dict):
                result.stopped, result.lacking = found["stopped"], list(found.get("lacking", ()))
                return True
            for row in found:
                if len(result.rows) == MOST_ROWS:
                    result.stopped = f"more than {MOST_ROWS} rows"
                    return True
                values = zip(row, columns, strict=True)
                result.rows.append([_stored(value, column.name, column.type) for value, column in values])
        except (ValueError, KeyError, TypeError) as error:
            result.stopped = f"row {len(result.rows) + 1}: {error}"
            return True
    return False


def _stored(value: Any, name: str, type_: str) -> Any:
    """A value as its column has it: addresses of the kernel get a sign, as in all tables."""
    if value is None:
        return None
    if type_ == "BIGINT" and type(value) is int and 1 << 63 <= value < 1 << 64:
        return value - (1 << 64)
    fits = {
        "BIGINT": type(value) is int and -(1 << 63) <= value < 1 << 63,
        "INTEGER": type(value) is int and -(1 << 31) <= value < 1 << 31,
        "DOUBLE": type(value) in (int, float) and math.isfinite(value),
        "BOOLEAN": type(value) is bool,
        "VARCHAR": type(value) is str,
    }
    if not fits[type_]:
        raise ValueError(f"column {name} is {type_}, not {str(value)[:40]!r}")
    return value


def add_results(recording: Path, library: Library, results: Iterable[Result]) -> None:
    """Puts the rows of scripts into a recording, and how each of them ended."""
    rows = []
    for result in results:
        add_part(recording, library, result.script.table_name, result.rows)
        rows.append((result.script.name, len(result.rows), result.stopped or "ok"))
    add_part(recording, library, SCRIPTS_TABLE, rows)


def run_scripts(
    scripts: Iterable[DumpScript], core: Path, params: Mapping[str, Mapping[str, Any]], *, user_memory: bool
) -> Iterator[Result]:
    """Runs the scripts that have a function, one after another; yields each result as it comes."""
    wanted = [script for script in scripts if script.columns]
    if not wanted:
        return
    with contextlib.closing(Connection(core, {"user_memory": user_memory})) as connection:
        dump = Dump(connection)
        lacks = {script.name: missing(script, dump) for script in wanted}
    for script in wanted:
        if lack := lacks[script.name]:
            yield Result(script, stopped=f"this kernel has no {', '.join(lack)}")
        else:
            yield run_script(script, core, params[script.name], user_memory=user_memory)
