"""A user who puts other things in the way of a command that root runs in a folder of theirs.

Run as a command, this is that user: it renames, replaces and links whatever appears in the folder, and the folder itself,
until its standard input ends; then it prints how often.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import random
import re
import select
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

NOBODY = 65534
# What sysdock calls its files: where it followed a link it would write to these, or remove them.
NAMES = [
    "owner",
    "data",
    "log0",
    "shared",
    "w0",
    "w1",
    "f0-0",
    "f0-1",
    "r0-0",
    "s0-0",
    "recording.json",
    "series.json",
    "plan.json",
    "part-000.parquet",
    "lock",
    "report.html",
    "0",
    "1",
    "2",
    "file0",
    "file1",
    "load.json",
    "results.json",
    "experiment.toml",
    "environment.toml",
]
FOLDERS = ["d0", "d1", "dshared", "teeth", "calls", "load_results", "runs", "table", "scratch"]
# Steps of a load that is short, and touches all kinds of its files.
STEPS = [
    {
        "item": "transfer",
        "operations": ["write"],
        "length_bytes": 65536,
        "size_bytes": 1 << 20,
        "processes": 2,
    },
    {"item": "metadata", "files": 200, "processes": 2},
    {"item": "log", "time_ns": 30_000_000, "size_bytes": 1 << 20},
]
MS_BIND, MNT_DETACH = 4096, 2
LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass
class Race:
    """The folder that commands work in, and what must not change."""

    folder: Path
    outside: Path
    swaps: int = 0

    def before(self) -> dict[str, object]:
        """What lies outside: path -> what it is."""
        return {str(path): _fact(path) for path in [self.outside, *sorted(self.outside.rglob("*"))]}


def _fact(path: Path) -> object:
    status = path.lstat()
    content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    return (
        status.st_ino,
        status.st_mode,
        status.st_uid,
        status.st_gid,
        status.st_mtime_ns,
        status.st_ctime_ns,
        content,
    )


def make_race(base: Path) -> Race:
    """A folder of NOBODY, and a tree of root that has what sysdock would look for."""
    os.chmod(base, 0o755)
    outside = base / "outside"
    for folder in (outside, *(outside / name for name in FOLDERS)):
        folder.mkdir()
        for name in NAMES:
            (folder / name).write_text("made by sysdock load\nx\n1 1\n" if name == "owner" else "precious")
    race = Race(base / "theirs" / "folder", outside)
    _renew(race)
    return race


def _renew(race: Race) -> None:
    """Empty folders of the other user."""
    theirs = race.folder.parent
    if theirs.exists():
        shutil.rmtree(theirs)
    race.folder.mkdir(parents=True)
    for path in (theirs, race.folder):
        os.chown(path, NOBODY, NOBODY)


@contextmanager
def attacked(race: Race, seed: int, mounts: bool = False) -> Iterator[None]:
    """The attacker works in its body; what is outside is the same after it."""
    before = race.before()
    words = [sys.executable, __file__, race.folder.name, str(race.outside), str(seed)]
    attacker = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=race.folder.parent
    )
    assert attacker.stdout is not None
    assert attacker.stdout.readline() == "ready\n"
    stop = threading.Event()
    mounter = threading.Thread(target=_mount_over, args=(race, stop, seed))
    if mounts:
        mounter.start()
    try:
        yield
    finally:
        stop.set()
        if mounts:
            mounter.join()
        said, _ = attacker.communicate()
    race.swaps += json.loads(said)
    after = race.before()
    changed = sorted(path for path in before | after if before.get(path) != after.get(path))
    assert not changed, f"seed {seed}: {changed[:5]}"


def _mount_over(race: Race, stop: threading.Event, seed: int) -> None:
    """What an administrator could do meanwhile: mounts the outside over folders, and unmounts it again."""
    chance = random.Random(seed)
    while not stop.wait(0.005):
        for path in _folders(race.folder):
            if chance.random() < 0.3:
                _mount_once(race, path, stop)


def _mount_once(race: Race, path: Path, stop: threading.Event) -> None:
    try:
        # It may be a link to the outside by now.
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    here = f"/proc/self/fd/{folder}"
    if LIBC.mount(bytes(race.outside), here.encode(), None, MS_BIND, None) == 0:
        stop.wait(0.01)
        while LIBC.umount2(os.readlink(here).encode(), MNT_DETACH) != 0:
            # A folder above it was renamed meanwhile.
            pass
    os.close(folder)


def _folders(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
    return []


def races(
    base: Path, command: Callable[[Path], Sequence[str | Path]], swaps: int, seed: int = 1
) -> Counter[int]:
    """Run a command in attacked folders until there were so many swaps. Returns how often it ended with which status.

    A command may fail, but must not change what lies outside, and must end by itself.
    """
    ended: Counter[int] = Counter()
    race = make_race(base)
    # Without an attacker it does what it is for: a mistake in the command would change nothing either.
    done = _run(command(race.folder), base)
    assert done.returncode == 0, done.stderr
    while race.swaps < swaps:
        _renew(race)
        runs = ended.total()
        # Where something is mounted, nothing can be renamed.
        with attacked(race, seed + runs, mounts=runs % 4 == 3):
            done = _run(command(race.folder), base)
        assert not {"Traceback", "panicked"} & set(re.findall(r"\w+", done.stderr)), done.stderr
        assert done.returncode in (0, 1, 2), (done.returncode, done.stderr)
        ended[done.returncode] += 1
    return ended


def _run(words: Sequence[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600, cwd=folder
    )


class Attacker:
    """The user, who may do this in folders of theirs."""

    def __init__(self, folder: Path, outside: Path, seed: int) -> None:
        self.folder, self.outside = folder, outside
        self.chance = random.Random(seed)
        self.swaps = 0

    def work(self) -> None:
        """Until standard input ends."""
        print("ready", flush=True)
        while not select.select([0], [], [], 0)[0]:
            with contextlib.suppress(OSError):
                inside = [path for path in self.folder.iterdir() if not path.name.startswith("aside-")]
                # Mostly what the command made.
                if inside and self.chance.random() < 0.95:
                    self.swap(self.chance.choice(inside))
                elif self.chance.random() < 0.01:
                    self.swap(self.folder)

    def swap(self, path: Path) -> None:
        """Put something else in place of a path, for a moment or for good."""
        aside = path.with_name(f"aside-{self.swaps}")
        os.rename(path, aside)
        self.swaps += 1
        what = self.chance.randrange(4)
        with contextlib.suppress(OSError):
            if what == 0:
                path.symlink_to(self.outside)
            elif what == 1:
                path.symlink_to(self.outside / self.chance.choice(FOLDERS + NAMES))
            elif what == 2:
                path.mkdir()
                for name in NAMES:
                    (path / name).symlink_to(self.outside / name)
        time.sleep(self.chance.choice([0, 0.0001, 0.001, 0.01]))
        if self.chance.random() < 0.9:
            with contextlib.suppress(OSError):
                if what != 3 and path.is_symlink():
                    path.unlink()
                elif what == 2:
                    shutil.rmtree(path)
                os.rename(aside, path)


if __name__ == "__main__":
    # Here, because Python itself may lie where only root may enter.
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    attacker = Attacker(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
    attacker.work()
    json.dump(attacker.swaps, sys.stdout)
