"""Whose rights a recording is read with, and what a report may be written over."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from make_recording import RecordingMaker
from sysdock.chart.output import write_atomically
from sysdock.errors import UserError

NOBODY = 65534
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")
CODE = """
import os, sys
from pathlib import Path
from sysdock.recording.caller import become_caller
become_caller(Path(sys.argv[1]))
print(os.getresuid(), os.getresgid(), os.getgroups(), os.environ["USER"])
"""


def rights(folder: Path, executable: Path = Path("/bin/sh")) -> str:
    """The rights of a process that nobody started by sudo, after it was asked for a recording."""
    environment = os.environ | {
        "SUDO_UID": str(NOBODY),
        "SUDO_GID": str(NOBODY),
        "SUDO_USER": "nobody",
        "USER": "root",
    }
    # This Python may lie where nobody may read it.
    code = f"import sys, pwd; sys.executable = {str(executable)!r}\n{CODE}"
    done = subprocess.run(
        [sys.executable, "-c", code, folder], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


@needs_root
def test_a_recording_of_somebody_else_is_read_with_the_rights_of_the_sudo_user(tmp_path: Path) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    ids = (NOBODY, NOBODY, NOBODY)
    assert rights(tmp_path) == f"{ids} {ids} [{NOBODY}] nobody"


@needs_root
def test_what_only_root_could_write_is_read_as_root(tmp_path: Path) -> None:
    assert rights(tmp_path).startswith("(0, 0, 0) (0, 0, 0) ")
    tmp_path.chmod(0o777)
    assert rights(tmp_path).startswith(f"({NOBODY}, ")


@needs_root
def test_an_installation_that_the_sudo_user_cannot_run_is_no_reason_to_stay_root(tmp_path: Path) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    private = tmp_path / "python"
    private.touch(mode=0o700)
    assert "hint: install it where all users may read it" in rights(tmp_path, private)


IN_A_PROCESS = """
import os, sys, pwd
sys.executable = "/bin/sh"
from pathlib import Path
from sysdock.errors import UserError
from sysdock.recording.caller import in_process_of_caller
def work(): print(os.getresuid(), flush=True)
def refuse(): raise UserError("it holds no calls", "give another", "rec")
def fail(): raise ValueError("odd")
for task in (work, refuse, fail):
    try:
        in_process_of_caller(Path(sys.argv[1]), task)
    except UserError as error:
        print(repr(str(error)))
print(os.getresuid())
"""


@needs_root
def test_work_on_a_recording_is_done_as_the_sudo_user_and_we_stay_root(tmp_path: Path) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    environment = os.environ | {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY), "SUDO_USER": "nobody"}
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS, tmp_path],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        f"({NOBODY}, {NOBODY}, {NOBODY})",
        repr("rec: it holds no calls\n\nhint: give another"),
        repr(f"{tmp_path}: odd"),
        "(0, 0, 0)",
    ]


def test_a_report_is_as_private_as_its_recording(maker: RecordingMaker, tmp_path: Path) -> None:
    folder = maker.make()
    for mode, expected in ((0o700, 0o600), (0o755, 0o644)):
        folder.chmod(mode)
        report = folder / f"{mode}.html"
        write_atomically(report, b"report")
        assert report.stat().st_mode & 0o777 == expected


def test_what_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    chart = tmp_path / "chart.png"
    chart.touch()
    chart.chmod(0o600)
    write_atomically(chart, b"chart")
    assert (chart.read_bytes(), chart.stat().st_mode & 0o777) == (b"chart", 0o600)


@needs_root
def test_a_link_that_somebody_else_put_there_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "own.html").symlink_to(precious)
    (tmp_path / "report.html").symlink_to(precious)
    os.lchown(tmp_path / "report.html", NOBODY, NOBODY)
    with pytest.raises(UserError, match="is a link of another user"):
        write_atomically(tmp_path / "report.html", b"report")
    assert precious.read_text() == "mine"
    write_atomically(tmp_path / "own.html", b"report")
    assert precious.read_text() == "report"


@needs_root
def test_nothing_is_written_into_a_recording_that_others_may_change(
    maker: RecordingMaker, tmp_path: Path
) -> None:
    folder = maker.make()
    folder.chmod(0o777)
    with pytest.raises(UserError, match="others may write to this folder"):
        write_atomically(folder / "report.html", b"report")
    folder.chmod(0o755)
    os.chown(folder, NOBODY, NOBODY)
    with pytest.raises(UserError, match="belongs to another user"):
        write_atomically(folder / "report.html", b"report")
    assert not (folder / "report.html").exists()
