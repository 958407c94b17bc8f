"""What a guest is to serve: a file of TOML, and the tree of files that it makes.

packages = ["apache2-bin"]     # of Debian, with all they depend on; or
tree = "folder"                # a tree that has everything; or
export = "container.tar"       # as `docker export` and `podman export` write it
without = ["libllvm14"]        # of these packages and their files what is left out: packages, /folders
command = ["/usr/sbin/apache2", "-DFOREGROUND"]
port = 80                      # left out by a service whose requests are all commands
request = "/index.html"        # what it is warmed up with: a path, or the name of a command
disk = "/data"                 # where a disk with ext4 is mounted; it begins with the tree's files there
disk_mb = 64

[requests]                     # commands that are requests, by name
select = ["/usr/bin/psql", "-qAt"]

[lines]                        # their commands stay: they get this line, and answer with one
select = "SELECT 1;"

[files]                        # more files with their content; [programs]: executable ones
"/etc/hosts" = "127.0.0.1 localhost"

[sources]                      # programs in C, compiled by this machine's compiler
"/srv/cgi/c" = "int main(void) { return 0; }"

[sizes]                        # files of text that are so many bytes long
"/srv/www/6040.html" = 6040
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sysdock.entries import Entries, parse_toml
from sysdock.errors import UserError, did_you_mean
from sysdock.itrace import packages
from sysdock.own_folder import set_mode
from sysdock.scratch import scratch_folder

_SHIPPED = Path(__file__).parent / "services"
_LINE = b"<p>The quick brown fox jumps over the lazy dog.</p>\n"
_SOURCES = ("packages", "tree", "export")


@dataclass
class Service:
    """The contents of such a file. Paths of `tree` and `export` are absolute; a `port` of 0: it has none."""

    place: str
    command: list[str] = field(default_factory=list)
    port: int = 0
    request: str = "/"
    requests: dict[str, list[str]] = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)
    disk: str | None = None
    disk_mb: int = 64
    packages: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    tree: Path | None = None
    export: Path | None = None
    files: dict[str, str] = field(default_factory=dict)
    programs: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
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
        content = parse_toml(path.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"cannot be read: {error}", None, str(path)) from None
    return _checked(content, path)


_TYPES = {
    **{"command": list[str], "packages": list[str], "without": list[str], "port": int, "request": str},
    **{"tree": str, "export": str, "disk": str, "disk_mb": int, "requests": dict[str, list[object]]},
    **{"lines": dict[str, str], "files": dict[str, str], "programs": dict[str, str]},
    **{"sources": dict[str, str], "sizes": dict[str, int]},
}


def _checked(content: dict[str, Any], path: Path) -> Service:
    read = Entries(path)
    read.typed("the service", content, _TYPES)
    _check_requests(content, read)
    if sum(key in content for key in _SOURCES) != 1:
        raise read.wrong(f"one of {', '.join(_SOURCES)} is needed")
    for key in ("tree", "export"):
        if key in content:
            content[key] = (path.parent / content[key]).absolute()
    if (disk := content.get("disk")) and not re.fullmatch(r"(/[^/\s]+)+", disk):
        raise read.wrong("`disk` is not a folder of the guest", 'as in disk = "/data"')
    return Service(place=str(path), **content)


def _check_requests(content: dict[str, Any], read: Entries) -> None:
    """The required keys depend on whether requests use HTTP or are commands."""
    requests, lines = content.get("requests", {}), content.get("lines", {})
    for key in () if requests else ("command", "port"):
        if not content.get(key):
            raise read.wrong(f"`{key}` is missing", "see the pages about instruction traces")
    if not content.get("port") and content.get("request", next(iter(requests), "")) not in requests:
        raise read.wrong("`request` names none of `requests`", "a path needs a `port`")
    if unknown := sorted(lines.keys() - requests.keys()):
        raise read.wrong(f"`lines` has `{unknown[0]}`, but `requests` has not")
    if not content.get("port"):
        content.setdefault("request", next(iter(requests), ""))
    commands = [content.get("command", []), *requests.values(), *([line] for line in lines.values())]
    # The guest reads words as lines, and names as files.
    words = [*(word for command in commands for word in command), *requests]
    if not all(isinstance(word, str) and word and "\n" not in word for word in words):
        raise read.wrong("a command has an argument that is empty, not text, or longer than a line")
    if not all(re.fullmatch(r"[A-Za-z0-9][\w.-]*", name) for name in requests):
        raise read.wrong("a name in `requests` has characters other than letters, digits and -")
    if not all(requests.values()):
        raise read.wrong("a command in `requests` is empty")


def make_tree(service: Service, tree: Path, cache: Path) -> None:
    """Fills a folder with all that the service needs. UserError: something of it cannot be had."""
    if service.packages:
        names = packages.with_dependencies(service.packages, service.without)
        left_out = [name.lstrip("/") for name in service.without if name.startswith("/")]
        packages.unpack(packages.fetch(names, cache), tree, left_out)
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
    for name, text in service.sources.items():
        _write(tree, name, _compiled(name, text), 0o755)
    for name, size in service.sizes.items():
        _write(tree, name, (_LINE * (size // len(_LINE) + 1))[:size], 0o644)


def _compiled(name: str, text: str) -> bytes:
    """The program of a text in C, against this machine's libraries."""
    with scratch_folder() as folder:
        out = Path(folder) / "program"
        command = ["cc", "-O2", "-o", str(out), "-x", "c", "-"]
        try:
            done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            hint = "apt-get install gcc libc6-dev"
            raise UserError("cc: not found; the service has programs in C", hint, name) from None
        if done.returncode:
            first_error = next((line for line in done.stderr.splitlines() if "error" in line), "it fails")
            raise UserError(f"cannot be compiled: {first_error}", "`sources` of the service", name)
        return out.read_bytes()


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
        raise UserError(f"`{name}` is outside the tree", None)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    set_mode(path, mode)
