"""What disturbs runs on purpose: a process of its own for each disturbance, which ends with us.

Run as a program, this file is such a process: `interference.py KIND FOLDER`.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Patterns, with the processes that make them.
PATTERNS: dict[str, tuple[str, ...]] = {
    "quiet": (),
    "CPU bursts": ("bursts", "bursts"),
    "I/O hog": ("writes",),
    "drift": ("drift", "drift"),
}
_PERIOD_S = 0.02
_DRIFT_S = 60.0
_MOST = 0.7
_WRITTEN = 4 << 20


@contextmanager
def interference(pattern: str, folder: Path) -> Iterator[None]:
    """The pattern, as long as the block runs; `folder` is on the disk that is to be kept busy."""
    with running(*PATTERNS[pattern], folder=folder):
        yield


@contextmanager
def running(*kinds: str, folder: Path) -> Iterator[list[int]]:
    """Processes of these kinds, by their numbers; all have ended afterwards."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for kind in kinds:
            words = [sys.executable, __file__, kind, str(folder)]
            processes.append(subprocess.Popen(words, process_group=0, stdout=subprocess.PIPE))
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait()


def _spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def _step(kind: str, folder: Path, numbers: random.Random, since: float) -> None:
    """A short piece of the disturbance. A kind that is a number: that part of one CPU."""
    if kind == "bursts":
        _spin(numbers.uniform(0.02, 0.3))
        time.sleep(numbers.uniform(0.05, 0.6))
    elif kind == "writes":
        path = folder / f"hog-{os.getpid()}"
        with open(path, "wb") as file:
            file.write(bytes(_WRITTEN))
            os.fsync(file.fileno())
        path.unlink()
    else:
        # From nothing to most of a CPU, and from nothing again.
        part = _MOST * ((time.monotonic() - since) % _DRIFT_S) / _DRIFT_S if kind == "drift" else float(kind)
        _spin(part * _PERIOD_S)
        time.sleep(max(0.0, 1 - part) * _PERIOD_S)


def main() -> None:
    """Disturbs until SIGTERM, or until the parent has gone."""
    kind, folder = sys.argv[1], Path(sys.argv[2])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    parent, since = os.getppid(), time.monotonic()
    numbers = random.Random()
    print("ready", flush=True)
    while os.getppid() == parent:
        _step(kind, folder, numbers, since)


if __name__ == "__main__":
    main()
