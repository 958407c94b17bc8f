"""One probe: waits until the machine is quiet, measures politely, and appends the result."""

from __future__ import annotations

import ctypes
import math
import os
import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.probe.directory_check import NoAnswer, printed
from sysdock.probe.series import PLAN, WHO, last_target, read_plan, target_row
from sysdock.probe.target import Busy, ClockReading, Target, target_of
from sysdock.recording import Recording, connect
from sysdock.recording.appending import append, locked
from sysdock.recording.native import command_line
from sysdock.scratch import scratch_folder

# Above these the machine is busy: threads that run or wait for each CPU, and a part of the time [%].
LOAD = 1.0
IO_PRESSURE = 20.0
_LOOK_EVERY_S = 2.0
_NICE = 5
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30, "riscv64": 30, "ppc64le": 273, "s390x": 282}
_IOPRIO_IDLE = 3 << 13
_COLUMNS = "result_id, item, operation, length_bytes, operations_per_s, p50_ns, p99_ns, status"


@dataclass(frozen=True)
class Measured:
    """The result of a probe."""

    probe_id: int
    rows: int
    waited_s: float
    busy: Busy
    under_load: bool
    trouble: str | None


@dataclass(frozen=True)
class Limits:
    """Time limits for a quiet machine, and for an answer of the file system [s]."""

    wait_s: float = 60.0
    timeout_s: float = 60.0
    load: float = LOAD
    io_pressure: float = IO_PRESSURE


def once(series: Path, library: Library, limits: Limits, report: Callable[[str], None]) -> Measured:
    """Measures, and appends a row for each item. `report` gets what is being waited for.

    UserError: somebody else measures at this moment, or the series cannot be written. Where the file system
    cannot be measured, that is a row, too, and `trouble` says why.
    """
    if not os.access(series, os.W_OK, effective_ids=True):
        raise UserError("may not be written", "run it as the user who created the series", str(series))
    with locked(series, WHO) as place:
        recording = Recording.open(series)
        before = last_target(recording, library)
        read_plan(series)
        probe_id = recording.manifest["captures"][0]["total"] + 1
        waited_s, busy, under_load = _wait(limits, report)
        now = ClockReading.now()
        rows: list[tuple[Any, ...]] = []
        targets: list[tuple[Any, ...]] = []
        trouble = None
        until = time.monotonic() + limits.timeout_s
        try:
            target = target_of(Path(before["folder"]), limits.timeout_s)
            if _differs(target, before):
                targets.append(target_row(target, probe_id, now, before["every_ns"]))
            rows = _measure(target.folder, series, library, until - time.monotonic())
        except NoAnswer:
            trouble = NoAnswer(limits.timeout_s).fact
            rows = [_nothing("timeout", trouble)]
        except UserError as error:
            trouble = error.fact
            rows = [_nothing("error", trouble)]
        shared = (busy.load, busy.io_pressure, round(waited_s * 1e9), under_load)
        results = [_result(probe_id, now, row, shared) for row in rows]
        tables = {"probe_results": results, "probe_targets": targets}
        append(place, library, tables, lambda manifest: _count(manifest, now))
    return Measured(probe_id, len(rows), waited_s, busy, under_load, trouble)


def _nothing(status: str, why: str) -> tuple[Any, ...]:
    """The row of a probe that measured nothing."""
    return (0, "probe", "none", None, None, None, None, status, why)


def _differs(target: Target, before: dict[str, Any]) -> bool:
    """Whether it is another file system than before, or mounted in another way."""
    names = ("mount_point", "fs_type", "source", "options", "device")
    return any(getattr(target, name) != before[name] for name in names)


def _count(manifest: dict[str, Any], now: ClockReading) -> None:
    capture = manifest["captures"][0]
    capture["total"] += 1
    capture["understood"] += 1
    manifest["duration_ns"] = max(manifest["duration_ns"], now.time_ns - manifest["started_ns"])


def _result(
    probe_id: int, now: ClockReading, row: Sequence[Any], shared: tuple[float, float | None, int, bool]
) -> tuple[Any, ...]:
    """A row of `probe_results`; numbers to the digits that mean something, so that a year is small."""
    step, item, operation, length, rate, p50, p99, status, note = row
    when = (now.time_ns, now.since_boot_ns, now.boot_id, now.kernel)
    times = [None if each is None else int(_digits(each, 3)) for each in (p50, p99)]
    measured = (None if rate is None else _digits(rate, 4), *times, status, note)
    return (probe_id, step, *when, item, operation, length, *measured, *shared)


def _digits(value: float, digits: int) -> float:
    if not value or not math.isfinite(value):
        return 0.0
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


def _wait(limits: Limits, report: Callable[[str], None]) -> tuple[float, Busy, bool]:
    """Waits while the machine is busy; returns seconds, how busy it is, and whether that is too much."""
    begun = time.monotonic()
    while True:
        busy = Busy.now()
        waited = time.monotonic() - begun
        above = busy.is_above(limits.load, limits.io_pressure)
        if not above or waited >= limits.wait_s:
            return (waited if waited >= _LOOK_EVERY_S else 0.0), busy, above
        if waited < _LOOK_EVERY_S:
            report(f"the machine is busy ({in_words(busy)}): waiting for at most {limits.wait_s:g} s")
        time.sleep(min(_LOOK_EVERY_S, limits.wait_s - waited + 0.01))


def in_words(busy: Busy) -> str:
    """The load of the machine, in words."""
    pressure = "" if busy.io_pressure is None else f", {busy.io_pressure:.0f} % of the time waiting for I/O"
    return f"load {busy.load:.1f} by CPU{pressure}"


def _measure(folder: Path, series: Path, library: Library, timeout_s: float) -> list[tuple[Any, ...]]:
    """Rows of the generator: step, item, operation, length, rate, latencies, status, note."""
    with scratch_folder() as made:
        output = Path(made) / "rec"
        command = command_line("load", {"plan": series / PLAN, "output": output}, folder)
        code, printed_text = _run(command, timeout_s)
        if code != 0 or not (output / "recording.json").exists():
            raise UserError(_reason(printed_text) or f"the load ended with status {code}")
        recording = Recording.open(output)
        recording.verify(["load_results"])
        connection = connect(recording, library, ["load_results"])
        try:
            rows = connection.execute(
                f"SELECT {_COLUMNS}, note FROM load_results ORDER BY result_id"
            ).fetchall()
        finally:
            connection.close()
    if not rows:
        raise UserError("the load measured nothing")
    return rows


def _run(command: Sequence[str], timeout_s: float) -> tuple[int, str]:
    """Runs it with low priority; one that does not end is killed, with its workers."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=_be_polite,
    )
    _, output = printed(process, max(0.1, timeout_s))
    return process.returncode, output


def _be_polite() -> None:
    """Low priority on the CPU, and the disk only when no one else wants it, if its scheduler can do that."""
    with suppress(OSError):
        os.nice(_NICE)
    if number := _IOPRIO_SET.get(platform.machine()):
        ctypes.CDLL(None).syscall(number, 1, 0, _IOPRIO_IDLE)


def _reason(output: str) -> str:
    """The first line of an error, without the program's name."""
    lines = [line for line in output.strip().splitlines() if not line.startswith("hint")]
    return lines[-1].removeprefix("sysdock-native: ").strip()[:200] if lines else ""
