"""Recording without root: what a process with two capabilities can do, and what is said where one is missing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from recorders import recorder_or_skip
from scenes import CannotBeMadeError, as_nobody, copy_sql
from sysdock.recording.manifest import NOT_REQUESTED
from sysdock.sentences import facts_of, say

Query = Callable[[Path, str], list[tuple]]


@pytest.fixture
def nobody_with(native: Path, folder: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Records a command as a user without any rights but the two capabilities."""
    recorder_or_skip(native, "kernel")

    def run(*words: Path | str) -> subprocess.CompletedProcess:
        try:
            return as_nobody(native, folder, "both", *words)
        except CannotBeMadeError as error:
            pytest.skip(str(error))

    return run


@pytest.fixture
def said(scene: Callable[..., Path]) -> dict:
    """By rights: exit status, messages, and whether there was a recording. And where it was, and a setting of the kernel."""
    return json.loads((scene("capabilities") / "said.json").read_text())


def test_two_capabilities_are_enough(
    scene: Callable[..., Path], said: dict, query: Query, manifest: Callable
) -> None:
    status, messages, is_recorded = said["both"]
    assert (status, is_recorded) == (0, True)
    recording, folder = scene("capabilities") / "rec", said["folder"]
    assert query(recording, copy_sql(folder)) == [
        (f"{folder}/data", "read", 5, 5000),
        (f"{folder}/copy", "write", 5, 5000),
    ]
    stated = manifest(recording)
    assert (stated["lost_events"], stated["complete"]) == (0, True)
    missing = {state["family"]: state["missing"] for state in stated["families"]}
    on_demand = ("stacks", "locks", "block", "irq", "memory", "syscalls", "probes")
    assert [missing.pop(family) for family in on_demand] == [NOT_REQUESTED] * len(on_demand)
    faults, samples = missing.pop("faults"), missing.pop("cpu")
    assert set(missing.values()) == {None}
    assert samples == faults
    # Kernels of Debian have a setting at which counters need more: those are left out, and the rest is recorded.
    if said["perf_event_paranoid"] > 2:
        assert (faults["code"], faults["level"]) == (
            "capture/counter_restricted",
            said["perf_event_paranoid"],
        )
        why = say(facts_of(faults), "en")
        lines = [f"sysdock: page faults on mapped files are not recorded: {why}"]
        lines += [f"sysdock: samples of threads that run are not recorded: {why}"]
        assert messages.splitlines() == lines
    else:
        assert (faults, messages) == (None, "")


def test_children_are_followed_without_a_group_of_their_own(
    nobody_with: Callable, folder: Path, query: Query
) -> None:
    done = nobody_with("--", "sh", "-c", "(cat /etc/hostname; true) | cat > out; true")
    assert (done.returncode, done.stderr) == (0, "")
    assert query(folder / "rec", "SELECT count(*) FROM processes WHERE exit_code = 0") == [(4,)]


def test_a_process_of_another_user_can_be_recorded(nobody_with: Callable, folder: Path, query: Query) -> None:
    """What is open in it already is its own affair: paths come from the kernel."""
    script = f"exec 3>{folder}/written; while :; do echo x >&3; sleep 0.05; done"
    process = subprocess.Popen(["sh", "-c", script])
    try:
        done = nobody_with("-p", str(process.pid), "--for", "1s")
    finally:
        process.kill()
        process.wait()
    assert done.returncode == 0
    assert f"recording process {process.pid} (sh)" in done.stderr
    sql = f"SELECT count(*) > 3 FROM calls JOIN paths USING (path_id) WHERE call = 'write' AND path = '{folder}/written'"
    assert query(folder / "rec", sql) == [(True,)]


@pytest.mark.parametrize(
    ("rights", "lacks"),
    [("bpf", "CAP_PERFMON"), ("perfmon", "CAP_BPF"), ("none", "CAP_BPF and CAP_PERFMON")],
)
def test_a_missing_capability_is_named(said: dict, rights: str, lacks: str) -> None:
    status, messages, is_recorded = said[rights]
    assert (status, is_recorded) == (2, False)
    assert messages.splitlines()[0].endswith(f"it needs {lacks}")
