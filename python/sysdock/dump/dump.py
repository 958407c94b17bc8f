"""A crash dump that is open: tables of the kernel, and any of its structures by their names.

Names and layouts come out of the dump itself (kallsyms and BTF, Linux 6.0 and newer on x86-64): no debug
information is needed. What cannot be read is None, with the reason in the column `status`.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sysdock.dump.connection import Connection
from sysdock.dump.rows import Rows
from sysdock.errors import UserError, did_you_mean

if TYPE_CHECKING:
    import drgn

# Pages that makedumpfile leaves out, by the bits of its dump level (makedumpfile(8), -d).
_LEFT_OUT = ("pages of zeros", "cache", "private cache", "user memory", "free pages")


class Dump:
    """A crash dump. `Dump.open("core")` opens one; it ends with the program, or as a context."""

    def __init__(self, connection: Connection, vmlinux: Path | None = None) -> None:
        self._connection = connection
        self._vmlinux = vmlinux
        self._tables: dict[str, Rows] = {}
        self._prog: drgn.Program | None = None

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        user_memory: bool = False,
        vmlinux: Path | None = None,
        force: bool = False,
    ) -> Dump:
        """Opens a dump: ELF or kdump, of makedumpfile or qemu, also flattened; or a guest, `qmp:SOCKET`.

        user_memory: show the memory of processes and the content of files, too. vmlinux: debug information,
        for the lines of `frames()` and for `prog`; of the same build, unless `force`.
        UserError: no dump, or one that cannot be read.
        """
        options = {"user_memory": user_memory, "vmlinux": vmlinux, "force": force}
        return cls(Connection(Path(path), options), vmlinux)

    def close(self) -> None:
        """Closes it."""
        self._connection.close()

    def __enter__(self) -> Dump:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        info = self._connection.info
        return f"<dump of Linux {info['release']}, {info['pages_bytes'] >> 20} MiB of memory>"

    def capabilities(self) -> dict[str, Any]:
        """The subject of the dump, whether its names and types could be read, and the pages that were left
        out.
        """
        info = dict(self._connection.info)
        level = info.get("level") or 0
        info["left_out"] = [name for bit, name in enumerate(_LEFT_OUT) if level >> bit & 1]
        return info

    # Tables: the same as those of a recording (docs/reference/tables.md).

    def tasks(self) -> Rows:
        """Processes and threads with CPU time, memory, I/O and what they wait for: `dump_tasks`."""
        return self._table("dump_tasks", "tasks", "stacks")

    def stacks(self, *, group: bool = True) -> Rows:
        """Stacks of tasks, each once with the number of its tasks: `dump_stacks`; or one row per task."""
        stacks = self._table("dump_stacks", "tasks", "stacks")
        if group:
            return stacks
        frames = {row.stack_id: row.frames for row in stacks}
        rows = [(task.pid, task.comm, frames.get(task.stack_id), task.status) for task in self.tasks()]
        return Rows(("pid", "comm", "frames", "status"), rows)

    def frames(self) -> Rows:
        """The frames of each stack, with source lines where there is debug information: `dump_frames`."""
        return self._table("dump_frames", "tasks", "stacks")

    def locks(self) -> Rows:
        """Locks with their holders and waiters: `dump_locks`."""
        return self._table("dump_locks", "tasks", "stacks", "locks")

    def log(self, last: int | None = None) -> Rows:
        """The log of the kernel, or its last records: `dump_log`."""
        log = self._table("dump_log", "log")
        return log if last is None else log[max(0, len(log) - last) :]

    def cpus(self) -> Rows:
        """Processors, what they ran, and their times: `dump_cpus`."""
        return self._table("dump_cpus", "processors")

    def memory(self) -> Rows:
        """Use of the memory: `dump_memory`."""
        return self._table("dump_memory", "memory")

    def slab(self) -> Rows:
        """Caches of objects of the kernel: `dump_slabs`."""
        return self._table("dump_slabs", "memory")

    def files(self) -> Rows:
        """Open files: `dump_files`."""
        return self._table("dump_files", "files")

    def mounts(self) -> Rows:
        """Mounted file systems: `dump_mounts`."""
        return self._table("dump_mounts", "mounts")

    def modules(self) -> Rows:
        """Loaded modules: `dump_modules`."""
        return self._table("dump_modules", "modules")

    def panic(self) -> Rows:
        """Location and cause of the stop of the kernel: `dump_panic`."""
        return self._table("dump_panic", "panic", "log")

    def requests(self) -> Rows:
        """Requests that disks had not completed: `dump_requests`."""
        return self._table("dump_requests", "requests")

    def sockets(self) -> Rows:
        """Sockets of processes: `dump_sockets`."""
        return self._table("dump_sockets", "sockets", "tasks")

    def table(self, name: str, parts: Sequence[str]) -> Rows:
        """A table that these parts of a dump fill (`reads` of a script)."""
        return self._table(name, *parts)

    def _table(self, name: str, *parts: str) -> Rows:
        if name not in self._tables:
            found = self._connection.ask("tables", parts=[*parts])["tables"]
            self._tables |= {table: Rows.of_columns(columns, table) for table, columns in found}
        return self._tables[name]

    # Names and layouts.

    def symbol(self, name: str) -> int:
        """The address of a symbol."""
        address: int = self._connection.ask("symbol", name=name)["address"]
        return address

    def per_cpu(self, name: str) -> builtins.list[int]:
        """The addresses of a variable that each processor has, by the number of the processor."""
        addresses: builtins.list[int] = self._connection.ask("per_cpu", name=name)["addresses"]
        return addresses

    def function(self, address: int) -> str | None:
        """The function that an address lies in, such as `schedule+0x30`; None: in none."""
        found = self._connection.ask("function", address=_address(address))
        whose = f" [{found['module']}]" if found["module"] else ""
        return f"{found['name']}+{found['offset']:#x}{whose}" if found["name"] else None

    def type(self, name: str) -> Rows:
        """The members of a structure: where each lies [B], and what it is."""
        found = self._asked_type(name)
        rows = [(each["name"], each["offset"], each["bytes"], each["type"]) for each in found["members"]]
        return Rows(("name", "offset", "bytes", "type"), rows, found["name"])

    def types(self, start: str = "") -> builtins.list[str]:
        """The structures whose name begins so."""
        names: builtins.list[str] = self._connection.ask("types", start=start)["names"]
        return names

    def offset(self, structure: str, member: str) -> int:
        """Offset of a member in its structure [B]; `a.b` is a member of a nested structure."""
        at = 0
        for name in member.split("."):
            members = {each["name"]: each for each in self._asked_type(structure)["members"]}
            if name not in members:
                raise UserError(
                    f"no member `{name}` in `{structure}`", did_you_mean(name, members, "see type()")
                )
            at += members[name]["offset"]
            structure = members[name]["type"]
        return at

    def _asked_type(self, name: str) -> dict[str, Any]:
        try:
            return self._connection.ask("type", name=name)
        except UserError as error:
            near = did_you_mean(name, self.types(name[:3]), "types('start') lists those that begin so")
            raise UserError(error.fact, near, error.place) from None

    # Memory.

    def read(self, structure: str, addresses: Any, *members: str, **named: str) -> Rows:
        """Members of the structures at these addresses: a row each, with `address` and `status`.

        addresses: a number, several, or rows with a column `address`. Members are written as in C:
        `comm`, `se.sum_exec_runtime`, `mm->total_vm`, `rss_stat[0].count`; without any, all that are values.
        A column has the last name of its path, or the one that it is given: `pages="mm->total_vm"`.
        A value is None where a pointer on the way is null. Structures are given by their address.
        """
        places = _addresses(addresses)
        if not members and not named:
            members = tuple(
                self._asked_type(structure)["members"][i]["name"] for i in self._values(structure)
            )
        paths = [(_last_name(path), path) for path in members] + list(named.items())
        asked = self._asked_read(structure, places, [path for _, path in paths])
        columns = [("address", places)]
        columns += [(name, values) for (name, _), values in zip(paths, asked["columns"], strict=True)]
        return Rows.of_columns([*columns, ("status", asked["status"])], structure)

    def _asked_read(
        self, structure: str, places: builtins.list[int], paths: builtins.list[str]
    ) -> dict[str, Any]:
        try:
            return self._connection.ask("read", structure=structure, addresses=places, members=paths)
        except UserError as error:
            wrong = re.search(r"has no member `(\w+)`", error.fact)
            of = re.match(r"`(?:struct|union) (\w+)`", error.fact)
            if not (wrong and of):
                raise
            near = did_you_mean(wrong[1], self.type(of[1])["name"], f"type({of[1]!r}) lists its members")
            raise UserError(error.fact, near, error.place) from None

    def _values(self, structure: str) -> builtins.list[int]:
        """Which members are values, by their place: not structures, which have only an address."""
        members = self._asked_type(structure)["members"]
        of_structures = re.compile(r"(struct|union) (\w+|\{\.\.\.\})(\[\d+\])*$")
        return [place for place, each in enumerate(members) if not of_structures.match(each["type"])]

    def list(self, structure: str, head: int | str, member: str) -> Rows:
        """The structures of a `list_head`: their addresses, in order.

        head: where the head of the list lies, or its symbol; it is in no structure of its own, and not
        among the rows. The last row says why, if the list does not come back to it.
        """
        return self._walked("list", structure=structure, head=self._place(head), member=member)

    def tree(self, structure: str, root: int | str, member: str) -> Rows:
        """The structures of a red-black tree (`rb_root`), in order."""
        return self._walked("tree", structure=structure, root=self._place(root), member=member)

    def walk(self, structure: str, start: int | str, member: str) -> Rows:
        """A structure, the one that its member points to, and so on until a null pointer."""
        return self._walked("chain", structure=structure, start=self._place(start), member=member)

    def xarray(self, address: int | str) -> Rows:
        """The entries of an `xarray`, a `radix_tree_root` or an `idr`: index and address."""
        found = self._connection.ask("xarray", address=self._place(address))
        rows = [(index, address, "ok") for index, address in found["entries"]]
        rows += [(None, None, found["status"])] if found["status"] != "ok" else []
        return Rows(("index", "address", "status"), rows)

    def bytes(self, address: int | str, length: int) -> builtins.bytes | None:
        """Bytes of memory; None where not all of them can be read."""
        found = self._connection.ask("memory", address=self._place(address), length=length)["bytes"]
        return None if found is None else builtins.bytes.fromhex(found)

    def text(self, address: int | str) -> str | None:
        """The text at an address until its first NUL, of 256 bytes at most; None: it cannot be read."""
        text: str | None = self._connection.ask("text", address=self._place(address))["text"]
        return text

    def search(self, wanted: builtins.bytes | str, limit: int = 1000) -> Rows:
        """Locations of these bytes: the address in the direct map, and the physical one."""
        digits = (wanted.encode() if isinstance(wanted, str) else wanted).hex()
        found = self._connection.ask("search", bytes=digits, limit=limit)
        rows = [(each["address"], each["physical"]) for each in found["places"]]
        return Rows(("address", "physical"), rows)

    def _walked(self, op: str, **question: Any) -> Rows:
        found = self._connection.ask(op, **question)
        rows = [(address, "ok") for address in found["addresses"]]
        rows += [(None, found["status"])] if found["status"] != "ok" else []
        return Rows(("address", "status"), rows)

    def _place(self, place: int | str) -> int:
        return self.symbol(place) if isinstance(place, str) else _address(place)

    @property
    def prog(self) -> drgn.Program:
        """The dump as drgn has it, for what needs debug information. UserError: drgn is not installed."""
        if self._prog is None:
            try:
                import drgn
            except ImportError:
                raise UserError("drgn is not installed", "`pip install drgn` installs it") from None
            program = drgn.Program()
            program.set_core_dump(str(self._connection.path))
            if self._vmlinux is not None:
                program.load_debug_info([str(self._vmlinux)])
            self._prog = program
        return self._prog


def _addresses(given: Any) -> builtins.list[int]:
    if isinstance(given, int):
        return [_address(given)]
    if isinstance(given, Rows):
        given = given["address"]
    return [_address(address) for address in given if address is not None]


def _address(number: int) -> int:
    """Tables hold addresses with a sign, as their columns have one."""
    return number & (1 << 64) - 1


def _last_name(path: str) -> str:
    names: list[str] = re.findall(r"\w+", re.sub(r"\[\d+\]", "", path))
    return names[-1] if names else path
