"""A writer, and somebody who owns the folder above what it writes: files and folders are swapped for links all the time.

Each trial follows from its number. The victims are a file and a folder of ours that the links lead to; they must stay as they are.
We are root, and the other one is nobody: links of our own user are followed.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

from sysdock import to_disk
from sysdock.chart.output import write_atomically
from sysdock.checkup.site import update_rates, write_new
from sysdock.errors import UserError
from sysdock.own_folder import created

_ROUNDS, _NOBODY = 20, 65534
CONTENT = b"ours" * 5000


def _fill(place: Path) -> None:
    with created(place) as reach:
        for name in ("calls", "paths"):
            (reach / name).mkdir(exist_ok=True)
            (reach / name / "part-0000.parquet").write_bytes(CONTENT)
        to_disk.write(reach / "recording.json", CONTENT)


WRITERS: dict[str, Callable[[Path], None]] = {
    "a file": lambda place: to_disk.write(place, CONTENT, 0o644),
    "a chart": lambda place: write_atomically(place, CONTENT),
    "a site": lambda place: write_new(place, CONTENT),
    "rates": lambda place: update_rates(place, Path("/x"), {"read": 1.0}),
    "a recording": _fill,
}


def attack(number: int, folder: Path) -> str | None:
    """One trial in an empty folder; what happened to the victims, or None."""
    chance = random.Random(number)
    name = list(WRITERS)[number % len(WRITERS)]
    theirs, victims = folder / "theirs", folder / "victims"
    os.chmod(folder, 0o755)
    theirs.mkdir()
    os.chown(theirs, _NOBODY, _NOBODY)
    (victims / "folder" / "calls").mkdir(parents=True)
    for each in (
        victims / "file",
        victims / "folder" / "recording.json",
        victims / "folder" / "calls" / "kept",
    ):
        each.write_text("precious")
        os.chmod(each, 0o600)
    before = _state(victims)
    attacker = os.fork()
    if attacker == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
        _swap_for_ever(chance, theirs, victims)
    try:
        for _ in range(_ROUNDS):
            with contextlib.suppress(OSError, UserError, ValueError):
                WRITERS[name](theirs / "out.svg")
    finally:
        os.kill(attacker, signal.SIGKILL)
        os.waitpid(attacker, 0)
    return None if _state(victims) == before else f"{name}: {_state(victims)} and not {before}"


def _swap_for_ever(chance: random.Random, theirs: Path, victims: Path) -> None:
    while True:
        with contextlib.suppress(OSError):
            for path in theirs.iterdir():
                target = victims / ("folder" if path.is_dir() and chance.random() < 0.9 else "file")
                if path.name.startswith("away"):
                    continue
                path.rename(theirs / f"away-{chance.randrange(1 << 30)}")
                if chance.random() < 0.7:
                    path.symlink_to(target)


def _state(victims: Path) -> dict[str, tuple[int, int, str]]:
    return {
        str(path.relative_to(victims)): (
            path.lstat().st_mode,
            path.lstat().st_uid,
            path.read_text(errors="replace")[:20] if path.is_file() else "",
        )
        for path in sorted(victims.rglob("*"))
    }
