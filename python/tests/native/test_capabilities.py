"""Recording without root: what a process with two capabilities can do, and what is said where one is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from recorders import recorder_or_skip

Query = Callable[[Path, str], list[tuple]]
NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody may write, which those of pytest are not."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        os.chmod(made, 0o777)
        yield Path(made)


@pytest.fixture
def nobody_with(native: Path, folder: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Records a command as a user without any rights but these capabilities."""
    if os.getuid() != 0:
        pytest.skip("needs root, to give up all but some capabilities")
    if not shutil.which("setpriv"):
        pytest.skip("no setpriv")
    recorder_or_skip(native, "kernel")
    executable = folder / "sysdock-native"  # the checkout may be where only root can go
    shutil.copy(native, executable)

    def run(capabilities: str, *words: Path | str) -> subprocess.CompletedProcess:
        # No new ones by sudo or the like; ambient, because the program's file has none.
        rights = [f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}"]
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *rights]
        command = [*user, executable, "record", "--with", "kernel", "-o", folder / "rec", *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=120)

    return run


def test_two_capabilities_are_enough(
    nobody_with: Callable, folder: Path, query: Query, manifest: Callable
) -> None:
    (folder / "data").write_bytes(b"x" * 5000)
    done = nobody_with("+bpf,+perfmon", "--", "dd", "if=data", "of=copy", "bs=1000", "status=none")
    assert (done.returncode, done.stderr) == (0, "")
    sql = (
        "SELECT path, call, count(*), sum(moved_bytes) FROM calls JOIN paths USING (path_id) "
        f"WHERE path IN ('{folder}/data', '{folder}/copy') AND moved_bytes > 0 GROUP BY ALL ORDER BY call"
    )
    assert query(folder / "rec", sql) == [
        (f"{folder}/data", "read", 5, 5000),
        (f"{folder}/copy", "write", 5, 5000),
    ]
    stated = manifest(folder / "rec")
    assert (stated["lost_events"], stated["complete"]) == (0, True)
    assert {state["missing"] for state in stated["families"]} <= {None, "not asked for"}


def test_children_are_followed_without_a_group_of_their_own(
    nobody_with: Callable, folder: Path, query: Query
) -> None:
    done = nobody_with("+bpf,+perfmon", "--", "sh", "-c", "(cat /etc/hostname; true) | cat > out; true")
    assert (done.returncode, done.stderr) == (0, "")
    assert query(folder / "rec", "SELECT count(*) FROM processes WHERE exit_code = 0") == [(4,)]


def test_a_process_of_another_user_can_be_recorded(nobody_with: Callable, folder: Path, query: Query) -> None:
    """What is open in it already is its own affair: paths come from the kernel."""
    script = f"exec 3>{folder}/written; while :; do echo x >&3; sleep 0.05; done"
    process = subprocess.Popen(["sh", "-c", script])
    try:
        done = nobody_with("+bpf,+perfmon", "-p", str(process.pid), "--for", "1s")
    finally:
        process.kill()
        process.wait()
    assert (done.returncode, done.stderr) == (0, "")
    sql = f"SELECT count(*) > 3 FROM calls JOIN paths USING (path_id) WHERE call = 'write' AND path = '{folder}/written'"
    assert query(folder / "rec", sql) == [(True,)]


@pytest.mark.parametrize(
    ("has", "lacks"), [("+bpf", "CAP_PERFMON"), ("+perfmon", "CAP_BPF"), ("-all", "CAP_BPF and CAP_PERFMON")]
)
def test_a_missing_capability_is_named(nobody_with: Callable, folder: Path, has: str, lacks: str) -> None:
    done = nobody_with(has, "--", "true")
    assert done.returncode == 2
    assert done.stderr.splitlines()[0].endswith(f"it needs {lacks}")
    assert not (folder / "rec").exists()
