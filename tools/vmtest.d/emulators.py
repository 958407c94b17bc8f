"""The qemu of Debian's backports, unpacked into a folder: another version than the one that is installed, which stays as it is."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

from kernels import WORK, fail, say

PACKAGES = ["qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios"]
SOURCE = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm-backports main\n"


def newer_qemu() -> Path:
    """The program; downloaded if it is not there."""
    folder = WORK / "qemu-backports"
    program = folder / "root" / "usr" / "bin" / "qemu-system-x86_64"
    WORK.mkdir(parents=True, exist_ok=True)
    with open(WORK / "qemu-backports.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            download_to(folder)
    return program


def download_to(folder: Path) -> None:
    """Packages of an archive that apt of this machine may not know: with lists of its own."""
    say("downloading qemu of bookworm-backports")
    for name in ("state/lists/partial", "cache/archives/partial", "root"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "sources.list").write_text(SOURCE)
    own = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State": folder / "state",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in own.items())]
    for command in ([*apt, "update"], [*apt, "-t", "bookworm-backports", "download", *PACKAGES]):
        if subprocess.run(command, cwd=folder).returncode:
            fail("qemu of bookworm-backports cannot be downloaded", "is deb.debian.org reachable?")
    for archive in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", archive, folder / "root"], check=True)
        archive.unlink()
