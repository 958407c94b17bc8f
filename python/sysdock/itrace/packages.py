"""Packages of Debian, unpacked into a folder: nothing is installed, and no one needs to be root."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sysdock.errors import UserError

# Files that no service needs to run.
_LEFT_OUT = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/bug",
)
# Packages that others depend on, but whose files only the installation of packages uses.
_NOT_NEEDED = {
    "debconf",
    "dpkg",
    "init-system-helpers",
    "adduser",
    "passwd",
    "lsb-base",
    "sysvinit-utils",
    "tar",
}
_DEPENDS = ["--recurse", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks"]
_DEPENDS += ["--no-replaces", "--no-enhances"]
# In a folder that belongs to root, apt's own user could not write.
_DOWNLOAD = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root"]


def with_dependencies(names: list[str], without: Sequence[str] = ()) -> list[str]:
    """The packages and all that they need to run, except those in `without`.

    UserError: apt does not know them, or there is no apt.
    """
    text = _run(["apt-cache", "depends", *_DEPENDS, *names])
    # Lines without a blank in front are packages; those in <> are names that several provide.
    found = re.findall(r"^([a-z0-9][^\s:<]+)(?::\S+)?$", text, re.MULTILINE)
    left_out = _NOT_NEEDED.union(without)
    return sorted({name for name in found if name not in left_out and not name.startswith("perl")})


def fetch(names: list[str], cache: Path) -> list[Path]:
    """Files of the packages in the cache, downloaded if they are missing. UserError: that fails."""
    cache.mkdir(parents=True, exist_ok=True)
    missing = [name for name in names if not list(cache.glob(f"{name}_*.deb"))]
    if missing:
        _run([*_DOWNLOAD, *missing], cache)
    return [max(cache.glob(f"{name}_*.deb"), key=lambda path: path.stat().st_mtime) for name in names]


def unpack(files: list[Path], tree: Path, without: Sequence[str] = ()) -> None:
    """Unpacks them into a folder, without what no service needs, and without these folders."""
    tree.mkdir(parents=True, exist_ok=True)
    for file in files:
        _run(["dpkg-deb", "-x", str(file), str(tree)])
    for name in (*_LEFT_OUT, *without):
        shutil.rmtree(tree / name, ignore_errors=True)


def kernel_package(name: str) -> str:
    """The package with the kernel itself: `linux-image-cloud-amd64` only depends on it."""
    output = _run(["apt-cache", "depends", "--important", name])
    depends = re.search(r"Depends: (linux-image-[0-9]\S+)", output)
    return depends[1] if depends else name


def _run(command: list[str], folder: Path | None = None) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise UserError(
            f"{command[0]}: not found", "packages need a Debian or Ubuntu; elsewhere give a tree or an export"
        ) from None
    if done.returncode:
        output = (done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}").splitlines()[-1]
        raise UserError(f"{command[0]}: {output}", "does `apt-get update` help?")
    return done.stdout
