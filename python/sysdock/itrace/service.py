"""What a guest is to serve: a file of TOML, and the tree of files that it makes.

packages = ["apache2-bin"]     # of Debian, with all they depend on; or
tree = "folder"                # a tree that has everything; or
export = "container.tar"       # as `docker export` and `podman export` write it
command = ["/usr/sbin/apache2", "-DFOREGROUND"]
port = 80
request = "/index.html"        # what it is warmed up with

[files]                        # more files with their content; [programs]: executable ones
"/etc/hosts" = "127.0.0.1 localhost"

[sizes]                        # files of text that are so many bytes long
"/srv/www/6040.html" = 6040
"""

from __future__ import annotations

import shutil
import tarfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sysdock.errors import UserError, did_you_mean
from sysdock.itrace import packages

_SHIPPED = Path(__file__).parent / "services"
_LINE = b"<p>The quick brown fox jumps over the lazy dog.</p>\n"
_SOURCES = ("packages", "tree", "export")


@dataclass
class Service:
    """What such a file says. Paths of `tree` and `export` are absolute."""

    place: str
    command: list[str]
    port: int
    request: str = "/"
    packages: list[str] = field(default_factory=list)
    tree: Path | None = None
    export: Path | None = None
    files: dict[str, str] = field(default_factory=dict)
    programs: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)


def shipped() -> list[str]:
    """Names of services that come with sysdock."""
    return sorted(path.stem for path in _SHIPPED.glob("*.toml"))


def read_service(name: str) -> Service:
    """The service of that name, or in that file. UserError: there is none, or something in it is wrong."""
    path = _SHIPPED / f"{name}.toml" if name in shipped() else Path(name)
    if not path.is_file():
        otherwise = f"give a file, or one of {', '.join(shipped())}"
        raise UserError(f"no such service: {name}", did_you_mean(name, shipped(), otherwise))
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"cannot be read: {error}", None, str(path)) from None
    return _checked(content, path)


_TYPES: dict[str, type] = {
    **{"command": list, "packages": list, "port": int, "request": str, "tree": str, "export": str},
    **{"files": dict, "programs": dict, "sizes": dict},
}


def _checked(content: dict[str, Any], path: Path) -> Service:
    for key, value in content.items():
        if key not in _TYPES:
            known = did_you_mean(key, _TYPES, f"known keys: {', '.join(_TYPES)}")
            raise UserError(f"unknown key `{key}`", known, str(path))
        values = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        inner: type = int if key == "sizes" else str
        if not isinstance(value, _TYPES[key]) or not all(isinstance(each, inner) for each in values):
            raise UserError(f"`{key}` has a value of the wrong type", None, str(path))
    for key in ("command", "port"):
        if not content.get(key):
            raise UserError(f"`{key}` is missing", "see the pages about instruction traces", str(path))
    if sum(key in content for key in _SOURCES) != 1:
        raise UserError(f"one of {', '.join(_SOURCES)} is needed", None, str(path))
    for key in ("tree", "export"):
        if key in content:
            content[key] = (path.parent / content[key]).absolute()
    return Service(place=str(path), **content)


def make_tree(service: Service, tree: Path, cache: Path) -> None:
    """Fills a folder with all that the service needs. UserError: something of it cannot be had."""
    if service.packages:
        names = packages.with_dependencies(service.packages)
        packages.unpack(packages.fetch(names, cache), tree)
    elif service.tree:
        if not service.tree.is_dir():
            raise UserError("no such folder", None, str(service.tree))
        shutil.copytree(service.tree, tree, symlinks=True, dirs_exist_ok=True)
    elif service.export:
        _extract(service.export, tree)
    _merge_usr(tree)
    for files, mode in ((service.files, 0o644), (service.programs, 0o755)):
        for name, text in files.items():
            _write(tree, name, text.encode(), mode)
    for name, size in service.sizes.items():
        _write(tree, name, (_LINE * (size // len(_LINE) + 1))[:size], 0o644)


def _extract(archive: Path, tree: Path) -> None:
    def wanted(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
        # A tree has absolute links, which are right once it is the guest's root: links are not followed here.
        if member.isdev() or member.issym():
            return member if member.issym() else None
        return tarfile.data_filter(member, folder)

    try:
        with tarfile.open(archive) as opened:
            opened.extractall(tree, filter=wanted)
    except (OSError, tarfile.TarError) as error:
        raise UserError(f"cannot be unpacked: {error}", None, str(archive)) from None


def _merge_usr(tree: Path) -> None:
    """Packages put files into /lib and /usr/lib; an installed Debian has both in one place."""
    for name in ("bin", "sbin", "lib", "lib64"):
        old, new = tree / name, tree / "usr" / name
        if old.is_symlink():
            continue
        if old.is_dir():
            shutil.copytree(old, new, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(old)
        new.mkdir(parents=True, exist_ok=True)
        old.symlink_to(f"usr/{name}")


def _write(tree: Path, name: str, content: bytes, mode: int) -> None:
    path = tree / name.lstrip("/")
    # Through a link of the tree, a file of this machine would be written.
    if not path.parent.resolve().is_relative_to(tree.resolve()) or path.is_symlink():
        raise UserError(f"`{name}` lies outside of the tree", None)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
