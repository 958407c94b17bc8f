"""Hosts that are none: network namespaces of this machine with an sshd in each, of addresses 10.77.N.2.

N follows from the process, so that tests of two checkouts do not meet.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from waiting import wait_for

SSHD = "/usr/sbin/sshd"
PORT = 2277


@contextmanager
def hosts(folder: Path, count: int) -> Iterator[tuple[list[str], str]]:
    """So many hosts: their addresses, and the command that reaches one (`--launch`). All are gone afterwards."""
    if os.getuid() != 0:
        pytest.skip("needs root, to make network namespaces")
    for program in (SSHD, "ssh", "ssh-keygen", "ip"):
        if not shutil.which(program):
            pytest.skip(f"no {program} (tools/setup dev installs it)")
    for name in ("host", "client"):
        keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(keygen, check=True)
    _remove_left_behind()
    with ExitStack() as stack:
        stack.enter_context(_folder_of_sshd())
        addresses = [
            stack.enter_context(_host(folder, 1 + os.getpid() % 60 * 4 + number)) for number in range(count)
        ]
        config = folder / "ssh_config"
        config.write_text(
            f"Host *\nPort {PORT}\nUser root\nIdentityFile {folder}/client\nIdentitiesOnly yes\nBatchMode yes\n"
            "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\nConnectTimeout 3\n"
        )
        yield addresses, f"ssh -F {config} {{node}}"


def _remove_left_behind() -> None:
    """Hosts of tests that were killed; their ends of the network go with them."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    for name, pid in re.findall(r"^(sysdock-(\d+)-\d+)\b", listed, re.MULTILINE):
        if not Path("/proc", pid).exists():
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


@contextmanager
def _folder_of_sshd() -> Iterator[None]:
    """sshd does not start without this folder, which its service makes."""
    folder = Path("/run/sshd")
    made = not folder.exists()
    folder.mkdir(mode=0o755, exist_ok=True)
    try:
        yield
    finally:
        if made:
            with suppress(OSError):
                folder.rmdir()


@contextmanager
def _host(folder: Path, number: int) -> Iterator[str]:
    name, address = f"sysdock-{os.getpid()}-{number}", f"10.77.{number}.2"
    inside = ["ip", "netns", "exec", name]
    if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode:
        pytest.skip("this machine makes no network namespaces")
    ours = f"sysdock{number}"
    try:
        _run("ip", "link", "add", ours, "type", "veth", "peer", "name", "eth0", "netns", name)
        _run("ip", "address", "add", f"10.77.{number}.1/24", "dev", ours)
        _run("ip", "link", "set", ours, "up")
        _run(*inside, "ip", "address", "add", f"{address}/24", "dev", "eth0")
        _run(*inside, "ip", "link", "set", "eth0", "up")
        with _sshd(folder, inside, address):
            yield address
    finally:
        subprocess.run(["ip", "link", "delete", ours], capture_output=True)
        subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def answers(address: str) -> bool:
    """Whether sshd takes connections."""
    with suppress(OSError), socket.create_connection((address, PORT), timeout=1):
        return True
    return False


@contextmanager
def _sshd(folder: Path, inside: list[str], address: str) -> Iterator[None]:
    config = folder / "sshd_config"
    config.write_text(
        f"Port {PORT}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/client.pub\nStrictModes no\nUsePAM no\n"
        "PermitRootLogin prohibit-password\nPasswordAuthentication no\nPidFile none\n"
    )
    server = subprocess.Popen([*inside, SSHD, "-D", "-e", "-f", str(config)], stderr=subprocess.PIPE)
    try:
        wait_for(lambda: answers(address) or server.poll() is not None, "an answer of sshd")
        if server.poll() is not None:
            assert server.stderr
            pytest.fail(f"sshd ended: {server.stderr.read().decode()}")
        yield
    finally:
        server.terminate()
        server.communicate(timeout=600)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
