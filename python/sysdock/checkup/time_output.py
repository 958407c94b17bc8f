"""Times of a job from what `time` printed: GNU time (`-v`, `-p`, default), bash; also within a job log."""

from __future__ import annotations

import re
from pathlib import Path

from sysdock.checkup import OK
from sysdock.checkup.ratio import JobTimes
from sysdock.checkup.statement import Part
from sysdock.checkup.text_file import read_text
from sysdock.checkup.times import seconds
from sysdock.errors import UserError
from sysdock.sentences import fact

# `time -v` begins with the command; between it and the times other lines may stand.
_COMMAND = re.compile(r'\s*Command being timed: "(.*)"\s*')
_VERBOSE = {
    "user": re.compile(r"\s*User time \(seconds\): (\S+)\s*"),
    "system": re.compile(r"\s*System time \(seconds\): (\S+)\s*"),
    "real": re.compile(r"\s*Elapsed \(wall clock\) time \(h:mm:ss or m:ss\): (\S+)\s*"),
}
# `time -p`, bash, dash and zsh's `TIMEFMT` of the same form.
_SHORT = re.compile(r"(real|user|sys)\s+(\d\S*)\s*")
# 0.16user 0.00system 0:00.25elapsed 65%CPU ...
_LINE = re.compile(r"([\d.]+)user ([\d.]+)system ([\d:.]+)elapsed .*")
_NAMES = {"real": "real", "user": "user", "sys": "system"}


def read_time_output(path: Path) -> JobTimes:
    """The times of the last run that `time` reports in the file."""
    runs = _runs(read_text(path, "output of `time`"), str(path))
    if not runs:
        hint = "run the job as `/usr/bin/time -v CMD`, and give the log that contains its output"
        raise UserError("no output of `time` in it", hint, str(path))
    last = runs[-1]
    remark = None
    if len(runs) > 1:
        sentence = fact("checkup/log_holds_outputs_time")
        remark = Part("runs", OK, sentence, None, {"runs": len(runs)})
    return JobTimes(
        user=seconds(last["user"]),
        real=seconds(last["real"]),
        system=seconds(last["system"]),
        name=last.get("name"),
        source=fact("checkup/output_time"),
        remark=remark,
    )


def _runs(text: str, place: str) -> list[dict[str, str]]:
    """Complete sets of user, system and real, in the order of the log."""
    runs: list[dict[str, str]] = []
    run: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if found := _COMMAND.fullmatch(line):
            run = {"name": found[1]}
            continue
        values = _values(line)
        for value in values.values():
            try:
                seconds(value)
            except ValueError as error:
                raise UserError(
                    str(error), "the log was damaged, or is of another tool", f"{place}:{number}"
                ) from None
        if values.keys() & run.keys():
            run = {}
        run |= values
        if values and {"user", "system", "real"} <= run.keys():
            runs.append(run)
            run = {}
    return runs


def _values(line: str) -> dict[str, str]:
    if found := _LINE.fullmatch(line):
        return dict(zip(("user", "system", "real"), found.groups(), strict=True))
    for key, pattern in _VERBOSE.items():
        if found := pattern.fullmatch(line):
            return {key: found[1]}
    if found := _SHORT.fullmatch(line):
        return {_NAMES[found[1]]: found[2]}
    return {}
