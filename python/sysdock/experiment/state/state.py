"""The state of the machine that an experiment changes, proves and restores."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sysdock.errors import UserError, did_you_mean, refusal
from sysdock.experiment.state import file_systems, folders, servers, users, workloads
from sysdock.experiment.state.caches import Cache
from sysdock.experiment.state.files import File
from sysdock.experiment.state.groups import Cgroup
from sysdock.experiment.state.journal import Entry, Journal, journals
from sysdock.experiment.state.kind import Difference, Kind
from sysdock.experiment.state.mounts import MountOptions, mounted_at
from sysdock.experiment.state.postgres import Postgres
from sysdock.experiment.state.servers import Program, Server
from sysdock.experiment.state.undo import undo_one
from sysdock.experiment.state.users import OwnUser
from sysdock.experiment.state.values import Cpu, Sysctl, Sysfs
from sysdock.own_folder import set_mode, set_owner
from sysdock.sentences import fact


def kinds(made: dict[str, tuple[Path, str]]) -> dict[str, Kind]:
    """All kinds of settings by name."""
    known: list[Kind] = [Sysctl(), Sysfs(), File(), MountOptions(made), Cpu(), Cgroup(), Cache()]
    return {kind.name: kind for kind in known}


def problems(settings: Mapping[str, str]) -> list[str]:
    """Errors in the form of settings, on any machine; names in braces are filled in later."""
    known = kinds({})
    found = []
    for setting in settings:
        name, _, target = setting.partition(":")
        if name not in known:
            hint = did_you_mean(name, known, f"the kinds are {', '.join(known)}")
            found.append(f"there is no kind of settings `{name}` ({hint})")
        elif not target:
            found.append(f"`{setting}` lacks what it sets: write {name}:NAME")
        elif problem := known[name].problem(target):
            found.append(f"{name}: {problem}")
    return found


class State:
    """Settings and fixtures of a running experiment, each in the journal before it is there.

    scratch: a folder for images, mount points, logs and databases; it is made, and removed by the undo, if it
    is not there. Servers that run as other users than root must be able to reach the folder above it.
    """

    def __init__(self, journal: Journal, scratch: Path) -> None:
        self.journal = journal
        self.scratch = scratch.absolute()
        self._own_user: OwnUser | None = None
        self.warnings: list[str] = []
        self._systems: dict[str, tuple[Path, str]] = {}
        self._devices: dict[str, Path] = {}
        self._servers: dict[int, Server] = {}
        self._applied: list[tuple[int, str, str, str]] = []
        self._kinds = kinds(self._systems)

    def apply(self, settings: Mapping[str, str]) -> None:
        """Several settings `kind:target` -> value: each is noted, set, and read back.

        UserError at the first that cannot be set; those before it stay until `undo`.
        """
        if wrong := problems(settings):
            raise UserError(wrong[0], "see the settings in docs/reference/knowhow-files.md")
        for setting, value in settings.items():
            name, _, target = setting.partition(":")
            self._free(name, target)
            self._applied.append((self.journal.written.last + 1, name, target, value))
            self._kinds[name].apply(self.journal, target, value)

    def prove(self) -> list[Difference]:
        """Reads everything back that is applied: what differs from what was asked."""
        latest = {(name, target): value for _, name, target, value in self._applied}
        found = []
        for (name, target), value in latest.items():
            try:
                difference = self._kinds[name].differs(target, value)
            except (OSError, UserError) as error:
                difference = Difference(name, target, value, _stated(error))
            if difference is not None:
                found.append(difference)
        for name, (point, _) in self._systems.items():
            mount = mounted_at(str(point))
            if mount is None or mount.device != str(self._devices[name]):
                found.append(Difference("file system", name, f"mounted on {point}", "not mounted"))
        for server in self._servers.values():
            if not server.running:
                found.append(Difference("server", server.name, "running", server.ended()))
        return found

    def mark(self) -> int:
        """The current end of the journal, to which `undo` returns."""
        return self.journal.written.last

    def undo(self, to: int = 0) -> list[Difference]:
        """Undoes what came after a mark, newest first, and proves it; what could not be undone.

        That stays in the journal, and the next `undo` or `repair` tries it again.
        """
        found: list[Difference] = []
        for number, entry in sorted(self.journal.written.open.items(), reverse=True):
            if number <= to:
                break
            found += self._undo_one(number, entry)
        self._applied = [each for each in self._applied if each[0] <= to]
        return found

    def _undo_one(self, number: int, entry: Entry) -> list[Difference]:
        server = self._servers.pop(number, None)
        if server is not None and (warning := server.stop()):
            self.warnings.append(warning)
        found = undo_one(self.journal, number, entry)
        if entry["kind"] == "mount" and not found:
            gone = [name for name, (point, _) in self._systems.items() if str(point) == entry["target"]]
            for name in gone:
                del self._systems[name], self._devices[name]
        return found

    def _free(self, name: str, target: str) -> None:
        """Two experiments at a time would each put back what the other had set."""
        for other in journals():
            if other.path == self.journal.path:
                continue
            for entry in other.open.values():
                if name in (entry["kind"], entry.get("of")) and entry["target"] == target:
                    what = f"{name}:{target}"
                    if other.is_alive:
                        fact = f"{what} is being changed by a running experiment ({other.what})"
                        raise UserError(fact, f"wait for process {other.writer.pid}", str(other.path))
                    fact = f"{what} was left changed by an interrupted experiment ({other.what})"
                    raise UserError(fact, "sysdock experiment repair", str(other.path))

    def file_system(
        self, name: str, kind: str, size_bytes: int, *, options: str = "noatime", make: Sequence[str] = ()
    ) -> Path:
        """A file system of its own on a loop device over a sparse image; the folder where it is mounted.

        size_bytes: of the device. make: more options of mkfs. options: as for mount -o.
        """
        file_systems.fit(kind)
        self._scratch()
        device = file_systems.make_device(self.journal, self.scratch / f"{name}.image", size_bytes)
        file_systems.make_file_system(self.journal, device, kind, make)
        point = self.scratch.resolve() / name
        file_systems.mount(self.journal, device, point, options)
        self._devices[name] = device
        self._systems[name] = (point, options)
        return point

    def device(self, name: str) -> str:
        """The device of a file system, as /sys/block has it: `loop3`."""
        if name not in self._devices:
            hint = did_you_mean(name, self._devices, "make it first")
            raise UserError(f"the experiment has no file system `{name}`", hint)
        return self._devices[name].name

    def server(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        ready: str,
        stop: str = "TERM",
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        user: str | int | None = None,
        group: str | None = None,
    ) -> Server:
        """Starts a server and waits until it is ready: `tcp:HOST:PORT`, `file:PATH` or `seconds:N`.

        group: a control group of the settings, such as `NAME` of `cgroup:NAME/cpu.max`, in which it starts.
        UserError where it ends or is not ready in time; it is gone then.
        """
        self._scratch()
        groups = self.group_members(group) if group else ()
        log = self.scratch / f"{name}.log"
        program = Program(name, arguments, log, stop, cwd, env, user, groups)
        made = servers.start(self.journal, program, ready)
        self._servers[made.number] = made
        return made

    def postgres(
        self,
        name: str,
        *,
        settings: Mapping[str, str],
        port: int = 0,
        place: Path | None = None,
        group: str | None = None,
    ) -> Postgres:
        """A PostgreSQL of its own, started; port 0: a Unix socket only.

        place: where its data lie, such as a file system of the experiment; by default the scratch folder.
        group: a control group of the settings, in which it starts.
        """
        self._scratch()
        made = Postgres(self, name, dict(settings), port, place or self.scratch, group)
        made.create()
        made.start()
        return made

    @contextmanager
    def running(self, workload: str) -> Iterator[str]:
        """While commands of a workload run: the mark that they carry, by which a repair finds and ends them.

        Whoever starts them ends them; they are left only if that program was killed.
        """
        number = workloads.note(self.journal, workload)
        try:
            yield workloads.mark_of(self.journal)
        finally:
            self.journal.undone(number)

    def server_pids(self) -> list[int]:
        """The processes of the servers that run."""
        return [server.pid for server in self._servers.values()]

    def group_members(self, name: str) -> list[Path]:
        """The files (`cgroup.procs`) that a process writes its number to, to come into a group of the
        settings.
        """
        group = self._kinds["cgroup"]
        assert isinstance(group, Cgroup)
        return group.members(name)

    def stop_server(self, server: Server) -> str | None:
        """Stops a server before the undo; a sentence where it had to be killed."""
        warning = server.stop()
        self._servers.pop(server.number, None)
        self.journal.undone(server.number)
        if warning:
            self.warnings.append(warning)
        return warning

    def own_user(self) -> int | None:
        """The user of all servers of this experiment, who is nobody else; None where we are not root.

        UserError: this user could not reach the scratch folder.
        """
        if os.geteuid() != 0:
            return None
        self._scratch()
        if self._own_user is None:
            self._own_user = users.take()
        number = self._own_user.number
        for place in self._closed_folders():
            set_owner(place, 0, number)
            set_mode(place, 0o710)
        for above in (self.scratch, *self.scratch.parents):
            found = above.stat()
            if not found.st_mode & (stat.S_IXGRP if found.st_gid == number else stat.S_IXOTH):
                why = fact("experiment/servers_cannot_enter")
                raise refusal(why, fact("experiment/name_a_folder_for_all"), str(above))
        return number

    def _closed_folders(self) -> list[Path]:
        """The scratch folder and its recording, which only their user may enter."""
        above = self.scratch.parent
        found = [self.scratch, *([above] if (above / "recording.json").is_file() else [])]
        return [place for place in found if not place.stat().st_mode & stat.S_IXOTH]

    def _scratch(self) -> None:
        if not self.scratch.is_dir():
            folders.make(self.journal, self.scratch)


def _stated(error: OSError | UserError) -> str:
    return error.fact if isinstance(error, UserError) else (error.strerror or str(error)).lower()
