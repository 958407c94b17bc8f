"""What a file system may hold after a power cut, made of a log of changes up to the cut.

What a sync of a file has promised is its data, and of a folder the names in it; all else may be there or not. A rename is
there as a whole or not at all. Of the many mixtures these are made, at each cut:

- all that was done, and only what was synced;
- all names with the synced data only: files that are empty or short, or as long as they were and full of zeros (ext4, xfs);
- the synced names with all data;
- of each folder, each change alone that was not synced, without those before it;
- of each file, its data missing, or half of it missing, and everything else there.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from traced_writes import Change

State = dict[str, bytes | None]
Entries = dict[str, "Node"]
DataOf = Literal["all", "synced", "zeros", "half"]


@dataclass(eq=False)
class Node:
    """A file, with its content; a folder (`entries`), with its names. Both also as they are on the disk."""

    entries: Entries | None = None
    content: bytes = b""
    synced_entries: Entries = field(default_factory=dict)
    synced_content: bytes = b""
    # Places that were written since, and what was done to names since: each a few names with what they stand for then.
    dirty: list[tuple[int, int]] = field(default_factory=list)
    pending: list[dict[str, Node | None]] = field(default_factory=list)

    def data(self, which: DataOf) -> bytes:
        """Its content, or what a power cut makes of it."""
        if which == "all" or not self.dirty:
            return self.content
        if which == "synced":
            return self.synced_content
        changed = bytearray(self.content)
        for start, end in self.dirty:
            start += (end - start) // 2 if which == "half" else 0
            changed[start:end] = bytes(max(0, min(end, len(changed)) - start))
        return bytes(changed)

    def names(self, change: dict[str, Node | None]) -> None:
        """Does something to the names of a folder."""
        self.pending.append(change)
        _apply(self.entries, change)

    def sync(self) -> None:
        """It is on the disk."""
        self.synced_content, self.dirty, self.pending = self.content, [], []
        self.synced_entries = dict(self.entries or {})


def _apply(entries: Entries, change: dict[str, Node | None]) -> Entries:
    for name, node in change.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node
    return entries


class Disk:
    """A folder under a log of changes. What is there at first is on the disk."""

    def __init__(self, state: State) -> None:
        self.root = Node(entries={})
        for path, content in state.items():
            self._at(path, Node(entries={}) if content is None else Node(content=content))
        self.sync_all()

    def _at(self, path: str, node: Node) -> None:
        above, _, name = path.rpartition("/")
        self.node(above).names({name: node})

    def node(self, path: str) -> Node:
        """What has this path now."""
        found = self.root
        for name in path.split("/") if path else []:
            found = found.entries[name]
        return found

    def nodes(self) -> list[tuple[str, Node]]:
        """All that is there now, folders before what is in them."""
        found = [("", self.root)]
        for path, node in found:
            found += [
                (f"{path}/{name}" if path else name, below) for name, below in (node.entries or {}).items()
            ]
        return found

    def sync_all(self) -> None:
        """As sync(2)."""
        for _, node in self.nodes():
            node.sync()

    def apply(self, change: Change) -> None:
        """A change, or a sync."""
        above, _, name = change.path.rpartition("/")
        match change.kind:
            case "make folder":
                self._at(change.path, Node(entries={}))
            case "make file":
                self._at(change.path, Node())
            case "remove":
                self.node(above).names({name: None})
            case "link":
                self._at(change.to, self.node(change.path))
            case "move":
                to_above, _, to_name = change.to.rpartition("/")
                if to_above != above:
                    raise NotImplementedError(f"a move to another folder: {change.path} to {change.to}")
                self.node(above).names({name: None, to_name: self.node(change.path)})
            case "sync":
                self.node(change.path).sync()
            case "sync all":
                self.sync_all()
            case "write":
                node = self.node(change.path)
                end = change.at + len(change.data)
                before = node.content[: change.at].ljust(change.at, b"\0")
                node.content = before + change.data + node.content[end:]
                node.dirty.append((change.at, end))
            case "resize":
                node = self.node(change.path)
                node.dirty.append((min(change.at, len(node.content)), change.at))
                node.content = node.content[: change.at].ljust(change.at, b"\0")

    def state(
        self,
        data: DataOf = "all",
        names: Literal["all", "synced"] = "all",
        only: Node | None = None,
        instead: tuple[Node, Entries] | None = None,
    ) -> State:
        """The files there are, with these of their names and data. `only`: the one file whose `data` it is about;
        `instead`: names of one folder."""
        state: State = {}

        def walk(path: str, node: Node) -> None:
            entries = node.entries if names == "all" else node.synced_entries
            if instead and instead[0] is node:
                entries = instead[1]
            for name, below in (entries or {}).items():
                place = f"{path}/{name}" if path else name
                if below.entries is None:
                    state[place] = below.data(data if only in (None, below) else "all")
                else:
                    state[place] = None
                    walk(place, below)

        walk("", self.root)
        return state

    def states(self) -> Iterator[State]:
        """What there may be after a power cut now."""
        yield self.state()
        yield self.state("synced", "synced")
        yield self.state("synced")
        yield self.state("zeros")
        yield self.state(names="synced")
        for _, node in self.nodes():
            for change in node.pending if len(node.pending) > 1 else []:
                yield self.state(instead=(node, _apply(dict(node.synced_entries), change)))
            if node.dirty:
                yield self.state("synced", only=node)
                yield self.state("half", only=node)


@dataclass(frozen=True)
class Cut:
    """A state of the folder after a power cut behind the first `at` changes."""

    at: int
    state: State


def cuts(before: State, changes: list[Change], after: State) -> Iterator[Cut]:
    """Every state that a power cut may leave, each once for each place of the cut; `after` is what there was in the end."""
    disk = Disk(before)
    for at in range(len(changes) + 1):
        known: set[bytes] = set()
        for state in disk.states():
            print_ = fingerprint(state)
            if print_ not in known:
                known.add(print_)
                yield Cut(at, state)
        if at < len(changes):
            disk.apply(changes[at])
    state = disk.state()
    differ = sorted(path for path in {*state, *after} if state.get(path, b"none") != after.get(path, b"none"))
    # What a file is written to with no call, or with one that is not known here, is found out by this.
    assert not differ, f"the log of changes does not make what is there: {differ}"


def fingerprint(state: State) -> bytes:
    """The same for the same files with the same content."""
    hashed = hashlib.blake2b()
    for path, content in sorted(state.items()):
        digest = None if content is None else hashlib.blake2b(content).digest()
        hashed.update(repr((path, digest)).encode())
    return hashed.digest()


class Replayed:
    """A folder that is put into one state after another; only what differs is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state: State = {}
        folder.mkdir()

    def put(self, state: State) -> None:
        """Makes the files of a state, and removes all others."""
        for path in sorted(self.state, reverse=True):
            if path not in state or (self.state[path] is None) != (state[path] is None):
                place = self.folder / path
                place.rmdir() if self.state.pop(path) is None else place.unlink()
        for path in sorted(state):
            if self.state.get(path, b"none") != state[path] or path not in self.state:
                place = self.folder / path
                content = state[path]
                place.mkdir() if content is None else place.write_bytes(content)
        self.state = dict(state)

    def forget(self) -> None:
        """Somebody else changed the folder."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        self.state = {}
