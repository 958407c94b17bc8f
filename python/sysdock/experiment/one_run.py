"""One run of a workload: prepared, measured by counters that cost nothing, checked."""

from __future__ import annotations

import json
import os
import re
import signal
import statistics
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sysdock.errors import UserError
from sysdock.experiment.methods import Method, read_methods
from sysdock.experiment.own_cpu import own_cpu
from sysdock.experiment.scripts import refuse_strange_scripts
from sysdock.experiment.state.processes import MARK
from sysdock.experiment.warm_up import steady_from
from sysdock.library import Reject, Workload
from sysdock.library.experiments import filled
from sysdock.recording.native import command_line
from sysdock.sentences import Fact, fact, languages, say

_NS = 1e9
_MOST_SAID = 300
_STEP_TIMEOUT_S = 600
# /proc/stat counts in ticks of 10 ms for each CPU: this much is no sign of other programs.
_TICKS_NS = 40_000_000
# The wait before a process is released is part of its delay, not of the elapsed time: up to 0.3 ms here.
_LAUNCH_S = 0.0005
# Reasons that lie in the machine, not in the command.
DISTURBANCES = {
    f"experiment/{name}" for name in ("machine_swapped", "cpu_limit", "other_programs", "host_took_cpus")
}
# Counters of a run: name of the metric, key in the result, factor.
_COUNTERS = (
    ("elapsed_s", "elapsed_ns", 1 / _NS),
    ("user_s", "user_ns", 1 / _NS),
    ("system_s", "system_ns", 1 / _NS),
    ("run_delay_s", "run_delay_ns", 1 / _NS),
    ("block_delay_s", "block_delay_ns", 1 / _NS),
    ("major_faults", "major_faults", 1),
    ("minor_faults", "minor_faults", 1),
    ("voluntary_switches", "voluntary_switches", 1),
    ("max_rss_bytes", "max_rss_bytes", 1),
    ("task_read_bytes", "read_bytes", 1),
    ("task_write_bytes", "write_bytes", 1),
)
_DEVICE_COUNTERS = ("reads", "read_bytes", "writes", "write_bytes", "flushes")
STANDARD = (
    *(name for name, _, _ in _COUNTERS),
    "cpu_s",
    "undelayed_s",
    *(f"device_{name}" for name in _DEVICE_COUNTERS),
)
# Higher is better of none of them.

# Endings of a failed run for which the last line on standard error says more.
_ENDINGS = ("experiment/ended_by_signal", "experiment/exit_status")

# Suffixes for the warm-up of a series: its part of the values, and whether it does not become steady.
WARM_UP, UNSTEADY = "_warm_up", "_unsteady"


@dataclass(frozen=True)
class Run:
    """The result of a run: its metrics, why it does not count (None: it does), the output of its profiler.

    `missing`: of each metric that it should have given and did not, why.
    """

    started_ns: int
    dur_ns: int
    exit_code: int | None
    metrics: dict[str, float] = field(default_factory=dict)
    reason: Fact | None = None
    methods: tuple[Method, ...] = ()
    missing: dict[str, Fact] = field(default_factory=dict)


class Failed(Exception):
    """A command around the run failed; `why` says which, and what it printed last."""

    def __init__(self, why: Fact) -> None:
        super().__init__(why.code)
        self.why = why


def run_once(
    workload: Workload,
    names: Mapping[str, object],
    folder: Path,
    *,
    devices: Sequence[str],
    reject: Reject,
    under: Sequence[str] = (),
    ready: Any = None,
    padding: int = 0,
    servers: Sequence[int] = (),
    mark: str = "",
    needed: Collection[str] = (),
    as_root: bool = True,
) -> Run:
    """Runs `before`, the command (measured), `check` and `after`.

    `names` fill the placeholders, `folder` is for what the command prints, `under` is a command that runs it
    (a recorder), `ready` is called right before it, `padding` bytes make its environment larger, `servers`
    are processes whose CPU time is not foreign, `mark` is in the environment of all that it starts, `needed`
    are the measures without which it does not count. A run that fails is no error: its `reason` says so.
    Without `as_root`, the command runs as the user who called sudo.
    """
    try:
        for arguments in workload.before:
            _step("before", arguments, names, folder, mark)
        if ready:
            ready()
        before = own_cpu(servers)
        result = measure(
            [*under, *(filled(word, names) for word in workload.run)],
            folder,
            timeout_s=workload.timeout_s,
            devices=devices,
            padding=padding,
            mark=mark,
            as_root=as_root,
        )
        _without(result, own_cpu(servers).since(before))
        run = _taken(workload, result, folder, reject, needed)
        if run.reason is None:
            run = _checked(workload, run, names, folder, mark)
    except Failed as error:
        return Run(0, 0, None, reason=error.why)
    finally:
        for arguments in workload.after:
            _step("after", arguments, names, folder, mark, is_last=True)
    return run


@dataclass(frozen=True)
class Together:
    """One of several runs at the same time. `folder`: for its output; `cpus`: as for taskset(1)."""

    names: Mapping[str, object]
    folder: Path
    cpus: str
    padding: int = 0


def run_together(
    workload: Workload,
    runs: Sequence[Together],
    *,
    reject: Reject,
    mark: str = "",
    needed: Collection[str] = (),
    as_root: bool = True,
) -> list[Run]:
    """Runs the workload several times at once, as `run_once` does it; each starts when all are prepared.

    Counters of devices are left out, as they say nothing of a single run. Ctrl-C ends all of them.
    """
    processes: list[tuple[subprocess.Popen[str], list[str]]] = []
    found: list[Run] = []
    try:
        for each in runs:
            for arguments in workload.before:
                _step("before", arguments, each.names, each.folder, mark)
        for each in runs:
            command = [filled(word, each.names) for word in workload.run]
            process = start(
                command,
                each.folder,
                timeout_s=workload.timeout_s,
                cpus=each.cpus,
                padding=each.padding,
                mark=mark,
                as_root=as_root,
            )
            processes.append((process, command))
        for each, (process, command) in zip(runs, processes, strict=True):
            found.append(_taken(workload, finish(process, command), each.folder, reject, needed))
            if found[-1].reason is None:
                found[-1] = _checked(workload, found[-1], each.names, each.folder, mark)
    except Failed as error:
        return [Run(0, 0, None, reason=error.why)] * len(runs)
    finally:
        for process, _ in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.communicate()
        for each in runs:
            for arguments in workload.after:
                _step("after", arguments, each.names, each.folder, mark, is_last=True)
    return found


def measure(
    arguments: Sequence[str],
    folder: Path,
    *,
    timeout_s: float,
    devices: Sequence[str] = (),
    cpus: str | None = None,
    padding: int = 0,
    mark: str = "",
    as_root: bool = True,
) -> dict[str, Any]:
    """The output of `sysdock-native measure` for one run of a command; the run's output is in `folder`
    afterwards.
    """
    process = start(
        arguments,
        folder,
        timeout_s=timeout_s,
        devices=devices,
        cpus=cpus,
        padding=padding,
        mark=mark,
        as_root=as_root,
    )
    return finish(process, arguments)


def start(
    arguments: Sequence[str],
    folder: Path,
    *,
    timeout_s: float,
    devices: Sequence[str] = (),
    cpus: str | None = None,
    padding: int = 0,
    mark: str = "",
    as_root: bool = True,
) -> subprocess.Popen[str]:
    """Starts `sysdock-native measure`; the command carries the mark in its environment.

    as_root: also under sudo. Without it, the command runs as the user who called sudo.
    """
    refuse_strange_scripts(arguments, folder)
    limits = {"timeout": f"{timeout_s:.6f}s", "cpus": cpus or None, "as_root": as_root}
    streams = {"output": folder / "stdout", "errors": folder / "stderr"}
    options: dict[str, object] = {**limits, "device": devices, **streams}
    # A group of its own: Ctrl-C is for us, and the run ends in order.
    return subprocess.Popen(
        command_line("measure", options, *arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        process_group=0,
        env={**_environment(mark), "SYSDOCK_PADDING": "x" * padding},
    )


def _environment(mark: str) -> dict[str, str]:
    return {**os.environ, **({MARK: mark} if mark else {})}


def finish(process: subprocess.Popen[str], arguments: Sequence[str]) -> dict[str, Any]:
    """Waits for it; Ctrl-C ends the run first, and all its processes with it."""
    try:
        output, errors = process.communicate()
    except BaseException:
        process.send_signal(signal.SIGTERM)
        process.communicate()
        raise
    if process.returncode:
        message = errors.removeprefix("sysdock: ").strip().splitlines()
        raise UserError(
            message[0] if message else f"exit status {process.returncode}",
            "run it alone first",
            arguments[0],
        )
    answer: dict[str, Any] = json.loads(output)
    return answer


def metrics_of(result: Mapping[str, Any]) -> dict[str, float]:
    """The metrics that the counters of a run give; one that is not known is left out."""
    found = {name: result[key] * factor for name, key, factor in _COUNTERS if result.get(key) is not None}
    if "user_s" in found and "system_s" in found:
        found["cpu_s"] = found["user_s"] + found["system_s"]
        delayed = found.get("run_delay_s", 0.0)
        # With several threads at a time waiting for a CPU is no part of the elapsed time.
        one_at_a_time = found["cpu_s"] + delayed <= found["elapsed_s"] + _LAUNCH_S
        if "run_delay_s" in found and (one_at_a_time or result.get("threads") == 1):
            found["undelayed_s"] = max(found["elapsed_s"] - delayed, found["cpu_s"])
    devices = result.get("devices", [])
    for name in _DEVICE_COUNTERS if devices else ():
        values = [device.get(name) for device in devices]
        if None not in values:
            found[f"device_{name}"] = float(sum(values))
    return found


def _taken(
    workload: Workload, result: dict[str, Any], folder: Path, reject: Reject, needed: Collection[str]
) -> Run:
    metrics = metrics_of(result)
    missing: dict[str, Fact] = {}
    reason = next(_reasons(result, reject), None)
    if reason and reason.code in _ENDINGS and (message := _tail(folder / "stderr")):
        reason = fact("experiment/ended_and_printed", how=reason, message=message)
    if reason is None:
        output = _read(folder / "stdout") + _read(folder / "stderr")
        for each in workload.measures:
            matches = re.findall(each.pattern, output, re.MULTILINE)
            try:
                values = [float(match.replace(",", "")) for match in matches]
                metrics |= _steady(each.name, values) if each.series else {each.name: values[-1]}
            except IndexError:
                missing[each.name] = fact("experiment/not_in_output", metric=each.name)
            except ValueError:
                missing[each.name] = fact("experiment/no_number_in_output", metric=each.name)
        reason = next((why for name, why in missing.items() if name in needed), None)
    return Run(
        result["started_ns"], result["elapsed_ns"], result["exit_code"], metrics, reason, missing=missing
    )


def _steady(name: str, values: Sequence[float]) -> dict[str, float]:
    """The mean of the steady part, and how much of the series the warm-up was.

    A series that does not become steady counts as a whole; 1 says so. Raises IndexError for an empty one.
    """
    if not values:
        raise IndexError
    start = steady_from(values)
    return {
        name: statistics.fmean(values[start or 0 :]),
        f"{name}{WARM_UP}": (start or 0) / len(values),
        f"{name}{UNSTEADY}": float(start is None),
    }


def _checked(workload: Workload, run: Run, names: Mapping[str, object], folder: Path, mark: str) -> Run:
    """The run with what it says of its methods, where `check` finds it right; Failed where it does not."""
    for arguments in workload.check:
        _step("check", arguments, names, folder, mark)
    if workload.methods is None:
        return run
    file = folder / filled(workload.methods, names)
    try:
        return replace(run, methods=read_methods(file))
    except (OSError, ValueError) as error:
        why = (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
        raise Failed(fact("experiment/methods_unreadable", file=str(file), why=why)) from None


def _without(result: dict[str, Any], own_ns: int) -> None:
    """Takes CPU time that was used for the run, by kernel threads and servers, out of what others used."""
    machine = result.get("machine", {})
    if machine.get("foreign_cpu_ns") is not None:
        machine["foreign_cpu_ns"] = max(0, machine["foreign_cpu_ns"] - own_ns)


def _reasons(result: Mapping[str, Any], reject: Reject) -> Iterator[Fact]:
    """Why a run does not count; only by what says nothing about the metric."""
    if result["timed_out"]:
        yield fact("experiment/time_over")
    elif result["signal"] is not None:
        yield fact("experiment/ended_by_signal", signal=result["signal"])
    elif result["exit_code"]:
        yield fact("experiment/exit_status", status=result["exit_code"])
    machine = result.get("machine", {})
    capacity = result["elapsed_ns"] * (os.cpu_count() or 1)
    if reject.swap and (machine.get("swapped_pages") or 0) > 0:
        yield fact("experiment/machine_swapped")
    if reject.throttled and (machine.get("throttled_ns") or 0) > 0:
        yield fact("experiment/cpu_limit")
    for key, part, code in (
        ("foreign_cpu_ns", reject.foreign_cpu, "other_programs"),
        ("steal_ns", reject.steal, "host_took_cpus"),
    ):
        used = machine.get(key) or 0
        if part is not None and used > part * capacity + _TICKS_NS:
            yield fact(f"experiment/{code}", part=used / capacity)


def _step(
    what: str,
    arguments: Sequence[str],
    names: Mapping[str, object],
    folder: Path,
    mark: str,
    *,
    is_last: bool = False,
) -> None:
    """A command alongside the run; Failed where it fails (`after`: a UserError, as nothing may be left)."""
    command = [filled(word, names) for word in arguments]
    refuse_strange_scripts(command, folder)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            cwd=folder,
            timeout=_STEP_TIMEOUT_S,
            check=False,
            env=_environment(mark),
        )
        message = (done.stderr.strip() or done.stdout.strip())[-_MOST_SAID:]
        why = fact("experiment/exit_status", status=done.returncode)
        why = fact("experiment/ended_and_printed", how=why, message=message) if message else why
    except subprocess.TimeoutExpired:
        done, why = None, fact("experiment/no_end_within", seconds=_STEP_TIMEOUT_S)
    except OSError as error:
        done, why = None, fact("experiment/cannot_run", error=(error.strerror or str(error)).lower())
    if done is None or done.returncode:
        failed = fact("experiment/step_failed", step=what, command=" ".join(command), why=why)
        hint = "what it undoes is still there"
        raise UserError(say(failed, languages()[0]), hint) if is_last else Failed(failed)


def _read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _tail(path: Path) -> str:
    lines = _read(path).strip().splitlines()
    return lines[-1][-_MOST_SAID:] if lines else ""
