"""Experiments that are killed at random moments, repaired, and compared with what was there before.

Each trial is a process that applies settings and fixtures in an order drawn from the number of the trial, undoes them, and begins
again until it is killed. In every fourth trial the first repair is killed, too. Others may use the machine meanwhile, so of
mounts, loop devices, processes and control groups those count that name the trial's folder or mark.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sysdock.experiment.state import Journal, State, folders, repair, servers
from sysdock.experiment.state.mounts import mounts

MIB = 1 << 20
# Their names, and values that slow nobody down.
SYSCTLS = {
    "vm.dirty_expire_centisecs": ("2900", "2950", "3050"),
    "vm.dirty_background_bytes": ("2147483648", "3221225472"),
    "vm.dirty_background_ratio": ("9", "11"),
    "vm.dirty_bytes": ("8589934592", "6442450944"),
    "vm.swappiness": ("59", "61"),
    "vm.vfs_cache_pressure": ("99", "101"),
}
GROUPS = ("pids", "cpu", "memory", "blkio", "freezer", "unified")
QUEUE = ("read_ahead_kb", "scheduler", "nr_requests")
LONGEST_S = 1.2


@dataclass
class Tally:
    """What came of the trials; `differences` is one line for each that was left."""

    trials: int = 0
    with_changes: int = 0
    undone: int = 0
    repairs_killed: int = 0
    differences: list[str] = field(default_factory=list)


@contextmanager
def alone() -> Iterator[None]:
    """Settings of the machine are changed by one test at a time, whichever checkout it is of."""
    with open(Path(tempfile.gettempdir()) / "sysdock-settings.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Trials:
    """Trials in a folder of their own. Who runs them is `alone`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scratch = folder / "scratch"
        self.files = folder / "files"
        self.mark = f"sysdock-killed-{os.getpid()}"
        # Whether other users reach the folder.
        self.is_open = all(place.stat().st_mode & 0o001 for place in (folder, *folder.parents))
        self.files.mkdir()
        (self.files / "a.conf").write_text("as it was\n")
        os.chmod(self.files / "a.conf", 0o640)
        os.environ["SYSDOCK_STATE"] = str(folder / "journals")
        # One of the servers does not stop.
        servers.STOP_S = 0.5

    def run(self, number: int, tally: Tally) -> None:
        """One trial; what is different afterwards is added to the tally."""
        drawn = random.Random(number)
        before = self.snapshot()
        child = in_child(lambda: self.experiment(drawn))
        try:
            time.sleep(drawn.uniform(0, LONGEST_S))
        finally:
            status = kill(child)
        if status != -signal.SIGKILL:
            tally.differences.append(f"trial {number}: the experiment failed, with status {status}")
        tally.trials += 1
        tally.with_changes += self.snapshot() != before
        if number % 4 == 0:
            repairing = in_child(lambda: repair(lambda _: None))
            time.sleep(drawn.uniform(0, LONGEST_S / 4))
            tally.repairs_killed += kill(repairing) == -signal.SIGKILL
        said: list[str] = []
        tally.undone += sum(done.undone for done in repair(said.append))
        after = self.snapshot()
        left = [
            f"{key}: {before.get(key)!r} became {after.get(key)!r}"
            for key in sorted({*before, *after})
            if before.get(key) != after.get(key)
        ]
        if left:
            tally.differences += [f"trial {number}: {line}" for line in (*left, *said)]

    def experiment(self, drawn: random.Random) -> None:
        """Applies and undoes, until it is killed."""
        while True:
            journal = Journal.begin("a trial")
            state = State(journal, self.scratch)
            steps = [
                self.set_sysctls,
                self.change_files,
                self.make_file_system,
                self.start_server,
                self.limit,
                self.set_sysctls,
            ]
            drawn.shuffle(steps)
            for step in steps[: drawn.randint(1, len(steps))]:
                step(state, drawn)
                mark = state.mark()
                if drawn.random() < 0.3:
                    self.set_sysctls(state, drawn)
                    assert state.undo(mark) == []
            assert state.undo() == []
            journal.close()

    def set_sysctls(self, state: State, drawn: random.Random) -> None:
        names = drawn.sample(sorted(SYSCTLS), 2)
        state.apply({f"sysctl:{name}": drawn.choice(SYSCTLS[name]) for name in names})

    def change_files(self, state: State, drawn: random.Random) -> None:
        state.apply(
            {f"file:{self.files}/{name}": f"content {drawn.random()}\n" for name in ("a.conf", "new.conf")}
        )

    def make_file_system(self, state: State, drawn: random.Random) -> None:
        name = f"fs{state.mark()}"
        kind, size = drawn.choice(
            [("ext4", 24 * MIB), ("ext4", 24 * MIB), ("ext2", 8 * MIB), ("btrfs", 128 * MIB)]
        )
        point = state.file_system(name, kind, size)
        (point / "content").write_text("something")
        queue = f"/sys/block/{state.device(name)}/queue"
        state.apply({f"sysfs:{queue}/read_ahead_kb": "256", f"sysfs:{queue}/scheduler": "mq-deadline"})
        if kind == "ext4":
            state.apply({f"mount.options:{name}": drawn.choice(["data=journal", "nobarrier", "relatime"])})

    def start_server(self, state: State, drawn: random.Random) -> None:
        name = f"server{state.mark()}"
        # Some of them as a user of their own, in a folder of that user.
        is_of_its_own = drawn.random() < 0.5 and self.is_open
        user = state.own_user() if is_of_its_own else None
        state._scratch()
        folders.make(state.journal, self.scratch / name, user)
        ready = self.scratch / name / "ready"
        script = (
            drawn.choice(["", "trap '' TERM; "]) + 'sleep 1000 & echo > "$1"; while :; do sleep 0.2; done'
        )
        state.server(name, ["sh", "-c", script, self.mark, str(ready)], ready=f"file:{ready}", user=user)

    def limit(self, state: State, drawn: random.Random) -> None:
        state.apply(
            {
                f"cgroup:{self.mark}/pids.max": str(drawn.randint(100, 200)),
                f"cgroup:{self.mark}/cpu.max": "150000",
            }
        )
        member = os.fork()
        if not member:
            try:
                for file in state.group_members(self.mark):
                    file.write_text(str(os.getpid()))
            except OSError:
                # The experiment was killed meanwhile, and its groups are gone.
                os._exit(0)
            os.execvp("sleep", ["sleep", "1000"])

    def snapshot(self) -> dict[str, str]:
        """All that a trial may change."""
        found = {
            f"sysctl {name}": Path("/proc/sys", *name.split(".")).read_text().strip() for name in SYSCTLS
        }
        inside = str(self.folder)
        for mount in mounts():
            if inside in mount.point:
                found[f"mount {mount.point}"] = str(mount)
        for device in Path("/sys/block").glob("loop*"):
            backing = device / "loop" / "backing_file"
            over = backing.read_text().strip() if backing.exists() else ""
            if inside in over:
                found[f"loop device over {over}"] = device.name
        for path in self.folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                status = path.stat()
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                found[f"file {path}"] = (
                    f"{status.st_ino} {status.st_mode:o} {status.st_uid} {status.st_mtime_ns} {digest}"
                )
            else:
                found[f"file {path}"] = "no regular file"
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if who := self.of_trial(pid):
                found[f"process {pid}"] = who
        for controller in (*GROUPS, ""):
            if (place := Path("/sys/fs/cgroup", controller, self.mark)).is_dir():
                found[f"control group {place}"] = "there"
        return {key: value for key, value in found.items() if key != f"file {self.folder / 'journals'}"}

    def of_trial(self, pid: str) -> str | None:
        """The command of a process of a trial; it names the mark, carries that of a journal, or is in the group."""
        try:
            status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            group = Path(f"/proc/{pid}/cgroup").read_text()
        except OSError:
            return None
        if status[0] in "ZX" or int(pid) == os.getpid():
            return None
        has_state = f"SYSDOCK_STATE={self.folder}".encode() in environment
        if self.mark.encode() in words or has_state or self.mark in group:
            return words.decode(errors="replace").replace("\0", " ")
        return None


def in_child(do: Callable[[], object]) -> int:
    """Does it in a process of its own, which says where it fails."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        do()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def kill(pid: int) -> int:
    """Its status: minus SIGKILL, unless it ended before."""
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
