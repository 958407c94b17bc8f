"""Under sudo, a command that is measured or compared runs as the user who called sudo."""

from __future__ import annotations

import grp
import json
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest
from sysdock.recording.native import find_native

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as sudo does")
LOOK = "id -u; id -g; id -G; echo $HOME $USER $LOGNAME; cat /proc/self/status"


@pytest.fixture
def nobody() -> pwd.struct_passwd:
    """The user who calls sudo."""
    return pwd.getpwnam("nobody")


def as_sudo(user: pwd.struct_passwd) -> dict[str, str]:
    """The environment that sudo makes."""
    own = {"SUDO_UID": str(user.pw_uid), "SUDO_GID": str(user.pw_gid), "SUDO_USER": user.pw_name}
    return {**os.environ, **own, "HOME": "/root", "USER": "root", "LOGNAME": "root"}


def facts(text: str) -> dict[str, str]:
    """What the command has printed of itself."""
    lines = text.splitlines()
    status = dict(line.split(":\t", 1) for line in lines[4:] if ":\t" in line)
    return {
        "user": lines[0],
        "group": lines[1],
        "groups": " ".join(sorted(lines[2].split())),
        "names": lines[3],
        "capabilities": status["CapEff"].strip("0"),
    }


def wanted(user: pwd.struct_passwd) -> dict[str, str]:
    """The same of a program that the user starts."""
    groups = sorted({str(user.pw_gid), *(str(g.gr_gid) for g in grp.getgrall() if user.pw_name in g.gr_mem)})
    return {
        "user": str(user.pw_uid),
        "group": str(user.pw_gid),
        "groups": " ".join(groups),
        "names": f"{user.pw_dir} {user.pw_name} {user.pw_name}",
        "capabilities": "",
    }


def test_checkup_runs_the_command_as_the_caller(nobody: pwd.struct_passwd) -> None:
    words = [sys.executable, "-m", "sysdock", "checkup"]
    command = ["--", "sh", "-c", LOOK]
    done = subprocess.run([*words, *command], env=as_sudo(nobody), capture_output=True, text=True, check=True)
    assert facts(done.stdout) == wanted(nobody)
    done = subprocess.run(
        [*words, "--as-root", *command], env=as_sudo(nobody), capture_output=True, text=True, check=True
    )
    assert facts(done.stdout)["user"] == "0"


@pytest.mark.parametrize("verb", [["compare", "--repeat", "1"], ["experiment", "compare", "--blocks", "1"]])
def test_compared_commands_run_as_the_caller(
    nobody: pwd.struct_passwd, tmp_path: Path, verb: list[str]
) -> None:
    out = tmp_path / "out"
    out.touch()
    os.chmod(out, 0o666)
    for above in (tmp_path, *tmp_path.parents):
        if above == Path(above.anchor) or above.name == "tmp":
            break
        os.chmod(above, 0o755)
    command = f"{{ {LOOK}; }} > {out}"
    words = [sys.executable, "-m", "sysdock", *verb, "--format", "json"]
    environment = {**as_sudo(nobody), "SYSDOCK_STATE": str(tmp_path / "state")}
    done = subprocess.run([*words, "--", command, command], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["verdicts"]) > 0
    assert facts(out.read_text()) == wanted(nobody)
    subprocess.run(
        [*words, "--as-root", "--", command, command], env=environment, check=True, capture_output=True
    )
    assert facts(out.read_text())["user"] == "0"


def test_a_measured_command_runs_as_the_caller(nobody: pwd.struct_passwd, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = [find_native(), "measure", "--output", out]
    subprocess.run([*words, "--", "sh", "-c", LOOK], env=as_sudo(nobody), check=True, capture_output=True)
    assert facts(out.read_text()) == wanted(nobody)
    subprocess.run(
        [*words, "--as-root", "--", "id", "-u"], env=as_sudo(nobody), check=True, capture_output=True
    )
    assert out.read_text() == "0\n"
