"""Reads a table of job statistics: CSV, TSV or `sacct -P`, columns found by their names."""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from sysdock.checkup.ratio import JobTimes
from sysdock.checkup.text_file import open_packed
from sysdock.checkup.times import EXAMPLES, UNITS, seconds
from sysdock.errors import UserError
from sysdock.sentences import fact

# The first name that a table has counts: in `sacct` output `User` is a name, and `UserCPU` the time.
ALIASES = {
    "job": ("job", "job_id", "jobid", "jobidraw", "id", "job_name", "jobname", "name"),
    "user": ("user_time", "user_cpu", "usercpu", "cpu_user", "utime", "user_cpu_time", "user"),
    "system": ("system_time", "system_cpu", "systemcpu", "cpu_system", "stime", "sys_time", "system", "sys"),
    "real": ("real_time", "real", "elapsed", "elapsed_time", "wall_time", "walltime", "wall", "etime"),
    "cores": ("cores", "alloccpus", "ncpus", "ncores", "cpus", "core", "nproc"),
    "assistant_cores": ("assistant_cores", "assistantcores", "assistant"),
    "ended": ("ended", "end", "end_time", "finished", "date"),
}
_NEEDED = ("user", "real")
_DELIMITERS = "\t|;,"
_LONGEST_LINE = 1 << 16
# Greatest number of digits of a number of cores.
_MOST_DIGITS = 9


@dataclass(frozen=True)
class Job:
    """One line of the table; times in seconds, `ended` since the epoch if the table states it."""

    line: int
    job: str
    user: Fraction
    real: Fraction
    system: Fraction | None
    cores: int | None
    assistant_cores: int
    ended: float | None


def read_jobs(path: Path) -> Iterator[Job]:
    """The lines of a table, in order, read one by one."""
    place = str(path)
    with io.TextIOWrapper(open_packed(path), "utf-8-sig", "replace", newline="") as file:
        try:
            first = file.readline(_LONGEST_LINE)
        except (OSError, EOFError, zlib.error) as error:
            raise UserError(f"cannot be read: {str(error).lower()}", place=place) from None
        if not first.strip() or "\0" in first or len(first) == _LONGEST_LINE:
            raise UserError("no line with the names of the columns: not a table of jobs", _hint(), place)
        delimiter = max(_DELIMITERS, key=first.count)
        names = [_normal(name) for name in next(csv.reader([first], delimiter=delimiter))]
        columns = _columns(names, place)
        reader = csv.reader(_lines(file, place), delimiter=delimiter)
        try:
            for row in reader:
                if row and any(row):
                    yield _job(row, columns, reader.line_num + 1, len(names), place)
        except (csv.Error, OSError, EOFError, zlib.error) as error:
            raise UserError(f"cannot be read: {error}", place=f"{place}:{reader.line_num + 1}") from None


def _lines(file: io.TextIOWrapper, place: str) -> Iterator[str]:
    """The lines. Longer ones than any table has must not be read into memory: compressed, a line may have
    any length.
    """
    number = 1
    while line := file.readline(_LONGEST_LINE):
        number += 1
        if len(line) == _LONGEST_LINE:
            raise UserError("a line of more than 64 KiB: not a table of jobs", _hint(), f"{place}:{number}")
        yield line


def find_job(path: Path, wanted: str | None) -> JobTimes:
    """The line of the job `wanted`; without one the table must have a single line."""
    found: list[Job] = []
    count = 0
    for job in read_jobs(path):
        count += 1
        if wanted is None or job.job == wanted:
            found = [*found[:1], job] if wanted is None else [job]
    if wanted is None and count > 1:
        raise UserError(
            f"the table holds {count} jobs",
            f"say which with --job, as --job {found[0].job or 'ID'}",
            str(path),
        )
    if not found:
        raise UserError(f"no job `{wanted}` in it" if wanted else "no job in it", None, str(path))
    job = found[-1]
    return JobTimes(
        job.user,
        job.real,
        job.system,
        job.cores,
        job.assistant_cores,
        job.job or None,
        fact("checkup/table_jobs"),
    )


def _hint() -> str:
    return "the columns are job, user, system, real, cores, assistant_cores; user and real are needed"


def _normal(name: str) -> str:
    """A heading as the aliases are written: `User CPU (ms)` is user_cpu_ms."""
    return re.sub(r"[^a-z0-9µ]+", "_", name.strip().lower()).strip("_")


def _columns(names: list[str], place: str) -> dict[str, tuple[int, str]]:
    """The position of each value, and the unit that its heading states."""
    columns: dict[str, tuple[int, str]] = {}
    for key, aliases in ALIASES.items():
        for alias in aliases:
            for unit in ("", *UNITS):
                heading = f"{alias}_{unit}" if unit else alias
                if heading in names:
                    columns.setdefault(key, (names.index(heading), unit or "s"))
    for key in _NEEDED:
        if key not in columns:
            raise UserError(f"no column for the {key} time", _hint(), f"{place}:1")
    return columns


def _job(row: list[str], columns: dict[str, tuple[int, str]], line: int, width: int, place: str) -> Job:
    if len(row) < width:
        raise UserError(f"{len(row)} fields instead of {width}", None, f"{place}:{line}")

    def cell(key: str) -> str:
        return row[columns[key][0]].strip() if key in columns else ""

    def time(key: str) -> Fraction:
        try:
            return seconds(cell(key), columns[key][1])
        except ValueError as error:
            raise UserError(f"{key}: {error}", EXAMPLES, f"{place}:{line}") from None

    def count(key: str) -> int | None:
        text = cell(key)
        if text and not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
            raise UserError(f"{key}: `{text}` is not a number of cores", None, f"{place}:{line}")
        return int(text) if text else None

    cores, assistant_cores = count("cores"), count("assistant_cores") or 0
    if assistant_cores >= (cores or 1) and assistant_cores:
        fact = f"{assistant_cores} assistant cores of {cores or 1} cores leave none to compute"
        raise UserError(fact, None, f"{place}:{line}")
    if cores == 0:
        raise UserError("cores: a job has at least one", None, f"{place}:{line}")
    return Job(
        line=line,
        job=cell("job"),
        user=time("user"),
        real=time("real"),
        system=time("system") if cell("system") else None,
        cores=cores,
        assistant_cores=assistant_cores,
        ended=_moment(cell("ended")),
    )


def _moment(text: str) -> float | None:
    """A date where the table has one; it only serves to tell the period."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
