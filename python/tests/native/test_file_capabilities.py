"""Recording without root after `setcap`, as docs/howto/install.md has it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from recorders import recorder_or_skip
from scenes import NOBODY, copy_sql

ROOT = Path(__file__).resolve().parents[3]
Query = Callable[[Path, str], list[tuple]]


@pytest.fixture
def nobody(native: Path, folder: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Runs a native program that has capabilities, as a user who has none."""
    recorder_or_skip(native, "kernel")
    setcap = shutil.which("setcap", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if os.getuid() != 0 or not setcap or not shutil.which("setpriv"):
        pytest.skip("needs root, setcap and setpriv")
    if os.statvfs(folder).f_flag & os.ST_NOSUID:
        pytest.skip(f"capabilities of files are ignored on {folder}: it is mounted with nosuid")
    executable = folder / "sysdock-native"
    shutil.copy(native, executable)
    [stated] = set(re.findall(r"setcap (\S+) ", (ROOT / "docs/howto/install.md").read_text()))
    done = subprocess.run([setcap, stated, executable], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"capabilities of files are refused on {folder}: {done.stderr.strip()}")

    def run(*words: Path | str, by: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        command = [*user, *by, executable, "record", "--with", "kernel", "-o", folder / "rec", *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=600)

    return run


def test_a_command_is_recorded(nobody: Callable, folder: Path, query: Query) -> None:
    (folder / "data").write_bytes(b"x" * 5000)
    done = nobody("--", "dd", "if=data", "of=copy", "bs=1000", "status=none")
    assert done.returncode == 0, done.stderr
    assert query(folder / "rec", copy_sql(folder)) == [
        (f"{folder}/data", "read", 5, 5000),
        (f"{folder}/copy", "write", 5, 5000),
    ]
    assert {path.stat().st_uid for path in (folder / "rec").rglob("*")} == {NOBODY}


def test_the_command_has_none_of_the_capabilities(nobody: Callable, folder: Path) -> None:
    done = nobody("--", "sh", "-c", "grep Cap /proc/self/status > status")
    assert done.returncode == 0, done.stderr
    masks = dict(re.findall(r"(Cap\w+):\s+(\w+)", (folder / "status").read_text()))
    assert {int(masks[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}


def test_the_command_gets_what_the_linker_removed(nobody: Callable, folder: Path, monkeypatch) -> None:
    # The linker takes these from a program with capabilities (ld.so(8)).
    given = {"LD_LIBRARY_PATH": "/opt/a b=c", "TMPDIR": str(folder), "GCONV_PATH": "", "MALLOC_TRACE": "x"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    done = nobody("--", "env", "-0")
    assert done.returncode == 0, done.stderr
    bare = subprocess.run(["env", "-0"], capture_output=True, text=True, check=True).stdout
    assert sorted(done.stdout.split("\0")) == sorted(bare.split("\0"))
    assert all(f"{name}={value}" in bare.split("\0") for name, value in given.items())


def test_a_closed_stream_stays_closed(nobody: Callable) -> None:
    # The C library opens files in place of closed streams in a program with capabilities.
    closes = ("sh", "-c", 'exec "$@" <&-', "sh")
    done = nobody("--", "sh", "-c", "[ -e /proc/self/fd/0 ] || echo closed", by=closes)
    assert (done.returncode, done.stdout) == (0, "closed\n"), done.stderr


def test_a_process_of_another_user_is_recorded(nobody: Callable, folder: Path, query: Query) -> None:
    script = f"exec 3>{folder}/written; while :; do echo x >&3; sleep 0.05; done"
    process = subprocess.Popen(["sh", "-c", script])
    try:
        done = nobody("-p", str(process.pid), "--for", "1s")
    finally:
        process.kill()
        process.wait()
    assert done.returncode == 0, done.stderr
    assert query(folder / "rec", "SELECT count(*) > 0 FROM calls WHERE call = 'write'") == [(True,)]
