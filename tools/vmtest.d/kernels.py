"""Kernels of Debian, from its archive, and what a guest with one needs of this machine. Nothing of a kernel is installed."""

from __future__ import annotations

import fcntl
import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "vmtest"
# Programs that must be there, and the packages that have them.
TOOLS = {
    **{"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "cpio": "cpio"},
    **{"fio": "fio", "mke2fs": "e2fsprogs"},
}


def fail(message: str, hint: str) -> None:
    """End with a message."""
    print(f"vmtest: {message}\n\nhint: {hint}", file=sys.stderr)
    sys.exit(2)


def say(message: str) -> None:
    """One line of progress."""
    print(f"== {message}", flush=True)


@functools.cache
def update_lists() -> None:
    """What apt knows of the archive; it may know nothing yet."""
    if subprocess.run(["apt-get", "update", "-qq"]).returncode:
        say("apt-get update failed; trying with the old lists")


def install_tools(more: dict[str, str] | None = None) -> None:
    """Install what is missing of the tools, and of `more` programs with their packages."""
    path = f"{os.environ['PATH']}:/sbin:/usr/sbin"
    missing = [
        package for program, package in (TOOLS | (more or {})).items() if not shutil.which(program, path=path)
    ]
    if not missing:
        return
    say(f"installing {', '.join(missing)}")
    update_lists()
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing]
    if subprocess.run(install, stdout=subprocess.DEVNULL).returncode:
        fail(f"missing: {', '.join(missing)}", f"as root: apt-get install {' '.join(missing)}")


def newest_package(version: str) -> str | None:
    """The newest kernel image of a version that apt knows; those for clouds are small and have all that is needed."""
    ask = ["apt-cache", "pkgnames", f"linux-image-{version}."]
    known = subprocess.run(ask, capture_output=True, text=True).stdout
    names = re.findall(r"^linux-image-[\d.]+[^a-z]*(?:deb\d+)?-cloud-amd64$", known, re.MULTILINE)
    return max(names, key=lambda name: [int(number) for number in re.findall(r"\d+", name)], default=None)


def kernel_of(version: str) -> Path:
    """The folder of an unpacked kernel, downloaded if it is not there."""
    package = newest_package(version)
    if not package:
        update_lists()
        package = newest_package(version)
    if not package:
        hint = "Debian 12's archive has 6.1, its security and backports archives have 6.12: see /etc/apt/sources.list.d"
        fail(f"apt knows no kernel {version} (linux-image-{version}.*-cloud-amd64)", hint)
    folder = WORK / package
    WORK.mkdir(parents=True, exist_ok=True)
    with open(WORK / f"{package}.lock", "w") as lock:
        # Tests that run side by side want the same one.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            download_to(folder, package)
    return folder


def download_to(folder: Path, package: str) -> None:
    """Download a package of the archive, and unpack it there."""
    say(f"downloading {package}")
    for old in WORK.glob(f"{package}_*.deb"):
        old.unlink()
    download = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", package]
    if subprocess.run(download, cwd=WORK).returncode:
        fail(f"{package}: cannot be downloaded", "apt-get update, and try again")
    (archive,) = WORK.glob(f"{package}_*.deb")
    new = folder.with_name(f"{package}.new")
    subprocess.run(["dpkg-deb", "-x", archive, new], check=True)
    new.rename(folder)
    archive.unlink()
