"""What a program does to the files of a folder, in order and with every byte: its calls, as strace writes them down.

A call that changes files and is not understood here is an error, so nothing is missed unnoticed; `PowerCuts` checks besides
that all changes together make what is on the disk afterwards.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

MAKES = ("mkdir", "mkdirat", "open", "openat", "openat2", "creat", "link", "linkat", "symlink", "symlinkat")
WRITES = ("write", "writev", "pwrite64", "pwritev", "pwritev2", "lseek")
SIZES = ("ftruncate", "truncate", "fallocate")
MOVES = ("rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir")
SYNCS = ("fsync", "fdatasync", "sync", "syncfs")
UNKNOWN = ("sendfile", "copy_file_range", "splice", "io_submit", "io_uring_setup", "sync_file_range", "msync")
CALLS = (*MAKES, *WRITES, *SIZES, *MOVES, *SYNCS, *UNKNOWN)

_LINE = re.compile(r"(\d+)\s+(?:<\.\.\. )?(\w+)(\(| resumed>)(.*)")
_ENDED = re.compile(r"(.*?)\)? += (-?\d+|0x[0-9a-f]+|\?)(.*)")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
_OPENED = re.compile(r"(AT_FDCWD|-?\d+)<((?:\\x[0-9a-f]{2})*)>")


@dataclass(frozen=True)
class Change:
    """One change; `path` and `to` are paths below the folder, "" the folder itself."""

    kind: str
    path: str = ""
    to: str = ""
    data: bytes = b""
    at: int = 0


@dataclass
class _Reader:
    """Makes changes of the lines of strace."""

    folder: Path
    changes: list[Change] = field(default_factory=list)
    positions: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    appended: set[str] = field(default_factory=set)
    begun: dict[int, tuple[str, int]] = field(default_factory=dict)
    # Open folders by their numbers: Python writes to some of them as /proc/self/fd/NUMBER/NAME.
    handles: dict[str, str] = field(default_factory=dict)

    def line(self, line: str) -> None:
        """One line: a call, or the beginning or the end of one."""
        found = _LINE.match(line)
        if not found:
            return
        pid, call, how, rest = int(found[1]), found[2], found[3], found[4]
        began = len(self.changes)
        if rest.endswith("<unfinished ...>"):
            self.begun[pid] = (rest.removesuffix(" <unfinished ...>"), began)
            return
        if how != "(":
            before, began = self.begun.pop(pid)
            rest = before + rest
        ended = _ENDED.fullmatch(rest)
        if ended and not ended[2].startswith("-") and ended[2] != "?":
            self.call(call, ended[1], int(ended[2], 0), ended[2] + ended[3], began)

    def call(self, call: str, words: str, result: int, behind: str, began: int) -> None:
        """A call that succeeded; `behind` is what stands behind its sign of equality."""
        texts = [_bytes(text) for text, _ in _TEXT.findall(words)]
        opened = [os.fsdecode(_bytes(path)) for _, path in _OPENED.findall(words)]
        if call in SYNCS:
            place = self.inside(opened[0]) if opened else ""
            if call in ("sync", "syncfs"):
                self.changes.append(Change("sync all"))
            elif place is not None and not any(
                place in (_above(one.path), one.path) for one in self.changes[began:]
            ):
                # It is unknown whether changes by another thread meanwhile are synced, so none are assumed to be.
                self.changes.append(Change("sync", place))
        elif call in WRITES or call in ("ftruncate", "fallocate"):
            if opened and (place := self.inside(opened[0])) is not None:
                self.written(call, place, words, b"".join(texts), result)
        elif call in UNKNOWN:
            if any(self.inside(path) is not None for path in opened):
                raise NotImplementedError(f"{call}({words})")
        elif call.startswith("open") or call == "creat":
            self.opened(call, words, behind)
        else:
            self.named(call, words, [os.fsdecode(text) for text in texts])

    def inside(self, path: str) -> str | None:
        """The path below the folder; None: it is elsewhere."""
        path = os.path.normpath(path)
        above = str(self.folder)
        return "" if path == above else path[len(above) + 1 :] if path.startswith(above + "/") else None

    def meant(self, path: str) -> str:
        """A path by way of an open folder, as that was called when it was opened."""
        found = re.match(r"/proc/self/fd/(\d+)(?=/)", path)
        return self.handles[found[1]] + path[found.end() :] if found and found[1] in self.handles else path

    def opened(self, call: str, words: str, behind: str) -> None:
        """A file was opened, which may have made or emptied it."""
        place = None
        for number, path in _OPENED.findall(behind)[:1]:
            place = self.inside(os.fsdecode(_bytes(path)))
            if "O_DIRECTORY" in words:
                self.handles[number] = os.fsdecode(_bytes(path))
        if place is None or (call != "creat" and not re.search(r"O_WRONLY|O_RDWR|O_CREAT", words)):
            return
        if "O_TMPFILE" in words:
            raise NotImplementedError(words)
        if place not in self.sizes:
            self.changes.append(Change("make file", place))
            self.sizes[place] = 0
        elif "O_TRUNC" in words or call == "creat":
            self.resized(place, 0)
        self.positions[place] = 0
        (self.appended.add if "O_APPEND" in words else self.appended.discard)(place)

    def written(self, call: str, place: str, words: str, data: bytes, result: int) -> None:
        """Bytes of a file, or its size."""
        numbers = [int(word) for word in re.findall(r", (\d+)(?=,|$)", words)]
        if call == "lseek":
            self.positions[place] = result
        elif call == "ftruncate":
            self.resized(place, numbers[0])
        elif call == "fallocate":
            if "FALLOC_FL" in words:
                raise NotImplementedError(words)
            self.resized(place, max(self.sizes[place], sum(numbers[-2:])))
        elif call in ("write", "writev"):
            at = self.sizes[place] if place in self.appended else self.positions[place]
            self.data(place, at, data[:result])
            self.positions[place] = at + result
        else:
            self.data(place, numbers[-1], data[:result])

    def data(self, place: str, at: int, data: bytes) -> None:
        """Bytes went to this place of a file."""
        self.changes.append(Change("write", place, data=data, at=at))
        self.sizes[place] = max(self.sizes[place], at + len(data))

    def resized(self, place: str, size: int) -> None:
        """A file has another size."""
        if self.sizes[place] != size:
            self.changes.append(Change("resize", place, at=size))
            self.sizes[place] = size

    def named(self, call: str, words: str, texts: list[str]) -> None:
        """A name was made, moved or taken away."""
        folders = iter([os.fsdecode(_bytes(path)) for _, path in _OPENED.findall(words)])
        at = call.endswith(("at", "at2"))
        paths = [self.inside(self.meant(str(Path(next(folders) if at else "/") / text))) for text in texts]
        if not any(paths):
            return
        if None in paths or call.startswith("symlink"):
            raise NotImplementedError(f"{call}({words})")
        kinds = {
            "mkdir": "make folder",
            "rename": "move",
            "link": "link",
            "unlink": "remove",
            "rmdir": "remove",
        }
        kind = kinds[re.sub("at2?$", "", call)]
        path, to = paths[0], paths[-1] if len(paths) > 1 else ""
        if kind in ("move", "link"):
            self.sizes[to] = self.sizes.pop(path, 0) if kind == "move" else self.sizes[path]
        elif kind == "remove":
            self.sizes.pop(path, None)
        self.changes.append(Change(kind, path, to))


def _above(path: str) -> str:
    return path.rpartition("/")[0]


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def files_of(folder: Path) -> dict[str, bytes | None]:
    """All files in a folder with their content, folders with None."""

    def found() -> Iterator[tuple[str, bytes | None]]:
        for path in sorted(folder.rglob("*")):
            yield path.relative_to(folder).as_posix(), None if path.is_dir() else path.read_bytes()

    return dict(found())


def traced(
    folder: Path, log: Path, command: Sequence[str | Path], *, follow: bool = True, **options: object
) -> tuple[list[Change], subprocess.CompletedProcess]:
    """Runs a command, and gives what it does to files in `folder`; `log` is where strace may write.

    follow: also what its children do; a recorder by strace cannot be followed, as nobody is traced twice.
    """
    if shutil.which("strace") is None:
        pytest.skip("strace is missing")
    reader = _Reader(folder.resolve())
    reader.sizes = {path: len(data) for path, data in files_of(folder).items() if data is not None}
    words = [
        "strace",
        "-qq",
        "-y",
        "-xx",
        "-s",
        str(1 << 28),
        "-e",
        "signal=none",
        "-e",
        f"trace={','.join(CALLS)}",
    ]
    words += ["-f", "--seccomp-bpf"] if follow else []
    options = {"capture_output": True, "text": True, "timeout": 600, "cwd": "/"} | options
    done = subprocess.run([*words, "-o", log, *command], check=False, **options)
    if "strace:" in done.stderr and "ptrace" in done.stderr:
        pytest.skip(f"nothing can be traced here: {done.stderr.strip()}")
    with open(log) as lines:
        for line in lines:
            # Without -f there is no number of the process.
            reader.line(line.rstrip("\n") if follow else f"1 {line.rstrip()}")
    return reader.changes, done
