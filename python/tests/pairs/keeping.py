"""Makes what is kept of pairs (kept.py): records them anew where the key differs, and judges them as the tests do."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pairs
from kept import KEPT, archive, keep, kept
from pairs import Pair, Workshop, load, missing
from sysdock.library import Library
from sysdock.recording.limits import OFF, SWITCH
from test_pairs import KEPT_RUNS, TRIES, Recorded, found_wrongly, runs, shown_wrongly

# Recordings hold paths and the name of the host: these say nothing of who made them.
PLACE, HOST = Path("/var/tmp/sysdock-pairs"), "pairs"
_CLONE_NEWUTS, _CLONE_NEWNS = 0x04000000, 0x00020000


def keep_all(names: set[str]) -> int:
    """Keeps what is not kept yet, of the pairs with these names or of all; returns how many could not be."""
    if os.geteuid() != 0:
        raise SystemExit("pairs: keep: needs root")
    _leave_the_machine()
    os.environ[SWITCH] = OFF
    library, failed, size = Library(pairs.ROOT / "knowhow"), 0, 0
    with _place() as folder:
        workshop = Workshop(folder / "runs")
        for pair, recorder in KEPT_RUNS:
            if names and pair.name not in names:
                continue
            said = _keep_one(pair, recorder, workshop, library)
            failed += said.startswith("FAILED")
            size += archive(pair, recorder).stat().st_size if archive(pair, recorder).exists() else 0
            print(f"{pair.name}-{recorder}: {said}", flush=True)
    for path in KEPT.glob("*.tar.xz"):
        if not names and path not in {archive(*run) for run in KEPT_RUNS}:
            path.unlink()
            print(f"{path.name}: removed, as it is of no pair that is tested")
    print(f"{size / 1e6:.1f} MB are kept, {failed} pairs could not be")
    return failed


def _leave_the_machine() -> None:
    """Goes on under another host name, without what only this machine has mounted."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUTS | _CLONE_NEWNS) != 0:
        raise SystemExit(f"pairs: keep: unshare: {os.strerror(ctypes.get_errno())}")
    socket.sethostname(HOST)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
        point = line.split()[1]
        if point != "/" and not point.startswith(("/proc", "/sys", "/dev")):
            subprocess.run(["umount", "-l", point], check=True)


@contextlib.contextmanager
def _place() -> Iterator[Path]:
    """A folder with copies of all that is recorded, under a name that is the same everywhere."""
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(mode=0o755)
    try:
        shutil.copytree(pairs.FOLDER, PLACE / "pairs", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy2(pairs.NATIVE, PLACE / "sysdock-native")
        (PLACE / "runs").mkdir()
        pairs.NATIVE, pairs.SHARED = PLACE / "sysdock-native", PLACE / "pairs" / "shared"
        pairs.PYTHON = str(Path("/usr/bin/python3").resolve(strict=True))
        yield PLACE
    finally:
        shutil.rmtree(PLACE)


def _keep_one(pair: Pair, recorder: str, workshop: Workshop, library: Library) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        if kept(pair, recorder, Path(scratch)):
            return "kept already"
    if reason := missing(pair):
        return f"FAILED: {reason}"
    wrong: object = None
    for _ in range(TRIES):
        with runs(load(PLACE / "pairs" / pair.name), recorder, workshop, library) as made:
            wrong = _wrong(made)
            if wrong is None:
                folders = {variant: session.recording.folder for variant, session in made.sessions.items()}
                return f"{keep(pair, recorder, folders, made.printed) / 1000:.0f} kB"
    archive(pair, recorder).unlink(missing_ok=True)
    return f"FAILED: {wrong}"


def _wrong(made: Recorded) -> object:
    """What the tests would say against it."""
    if not made.printed["faulty"].strip() or made.printed["faulty"] != made.printed["fixed"]:
        return made.printed
    return shown_wrongly(made) or found_wrongly(dataclasses.replace(made, is_kept=True))
