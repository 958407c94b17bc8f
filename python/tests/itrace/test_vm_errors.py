"""What `itrace vm` says where something is missing or wrong. No guest is started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from sysdock.cli.itrace_vm import vm
from sysdock.errors import UserError
from sysdock.itrace.qemu import Machine, find_qemu, started, version_of

BUILT = {
    **{"qemu": "7.2.22", "kernel": "6.1.0", "memory_mb": 512, "port": 80, "request": "/", "warm": 20},
    **{"mitigations": ""},
}


def program(folder: Path, said: str, status: int = 1) -> Path:
    """In place of qemu: it says that on standard error, and its version."""
    path = folder / "qemu-fake"
    version = 'if [ "$1" = --version ]; then echo "QEMU emulator version 7.2.22"; exit 0; fi'
    path.write_text(f"#!/bin/sh\n{version}\necho '{said}' >&2\nexit {status}\n")
    path.chmod(0o755)
    return path


def guest(folder: Path, **changed: object) -> Path:
    made = folder / "guest"
    made.mkdir()
    (made / "guest.json").write_text(json.dumps({**BUILT, **changed}))
    return made


def run(*words: object) -> str:
    """The error that the command ends with."""
    done = CliRunner().invoke(vm, [str(word) for word in words])
    assert isinstance(done.exception, UserError), done.output
    return str(done.exception)


def test_no_qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = guest(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "qemu-system-x86_64: not found" in run("run", made, "-o", tmp_path / "rec")
    assert "other: not found" in run("run", made, "-o", tmp_path / "rec", "--qemu", "other")
    assert "apt-get install qemu-system-x86" in run("build", "busybox", "-o", tmp_path / "new")
    assert not (tmp_path / "rec").exists()
    assert not (tmp_path / "new").exists()


def test_a_program_that_is_not_qemu(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        version_of(find_qemu("true"))
    assert "does not report its version of qemu" in str(raised.value)


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        (
            "Could not load plugin p.so: plugin requires API version 4, but this QEMU supports only 3",
            "this version of qemu is not supported",
        ),
        ("qemu: plugin interface not enabled in this build", "this qemu was built without plugins"),
        ("-accel tcg: invalid accelerator tcg", "this qemu has KVM only"),
    ],
)
def test_a_qemu_that_does_not_take_the_plugin(tmp_path: Path, said: str, hint: str) -> None:
    machine = Machine(program(tmp_path, said), tmp_path, 512)
    with pytest.raises(UserError) as raised, started(machine, tmp_path):
        pass
    assert said in str(raised.value)
    assert f"hint: {hint}" in str(raised.value)


def test_a_snapshot_of_another_qemu(tmp_path: Path) -> None:
    made = guest(tmp_path, qemu="10.0.2")
    said = run("run", made, "-o", tmp_path / "rec", "--qemu", program(tmp_path, ""))
    assert "was built with qemu 10.0.2, and this is 7.2.22" in said
    assert not (tmp_path / "rec").exists()


def test_what_is_no_guest(tmp_path: Path) -> None:
    assert "is not a guest built by sysdock" in run("run", tmp_path, "-o", tmp_path / "rec")
    assert "is not a guest built by sysdock" in run("run", guest(tmp_path, more=1), "-o", tmp_path / "rec")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "rec").mkdir()
    (tmp_path / "rec" / "file").touch()
    assert "already exists" in run("run", guest(tmp_path), "-o", tmp_path / "rec")
    assert "already exists" in run("build", "busybox", "-o", tmp_path / "rec")


def test_a_request_that_the_guest_does_not_have(tmp_path: Path) -> None:
    made = guest(tmp_path, requests=["select", "connect"], port=0)
    qemu = ("--qemu", program(tmp_path, ""))
    said = run("run", made, "-o", tmp_path / "rec", "--request", "selekt", *qemu)
    assert "no such request: selekt" in said
    assert "select" in said
    assert "no such request: /page" in run("run", made, "-o", tmp_path / "rec", "--request", "/page", *qemu)
    words = ("--request", "select", "--path", "virtio-net")
    said = run("run", made, "-o", tmp_path / "rec", *words, *qemu)
    assert "select is a command, which involves no network card" in said
    assert not (tmp_path / "rec").exists()
