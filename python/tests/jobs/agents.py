"""Agents for tests, jobs that they count, and what comes of it in a lake."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any, cast

from sysdock.analysis import Session
from sysdock.recording.lake import Lake, is_lake
from sysdock.recording.native import find_native
from waiting import wait_for

NATIVE = find_native()


class Agent:
    """An agent with a spool of its own; programs in the kernel go with it."""

    def __init__(self, folder: Path, *words: str | Path) -> None:
        self.spool = folder / "spool"
        self.log = folder / "agent.log"
        with open(self.log, "ab") as out:
            options = ["--spool", self.spool, "--interval=300ms", "--linger=600ms", "--no-pin", *words]
            self.process = subprocess.Popen(
                [NATIVE, "agent", "run", *options], stderr=out, stdin=subprocess.DEVNULL
            )
        wait_for(lambda: "counting" in self.said() or self.process.poll() is not None)
        # What it takes first is what the others are compared with.
        wait_for(lambda: (self.spool / "state.json").exists() or self.process.poll() is not None)

    def said(self) -> str:
        """What it wrote to standard error."""
        return self.log.read_text()

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ends it, and waits."""
        self.process.send_signal(how)
        return self.process.wait(600)

    def waiting(self) -> list[str]:
        """Batches in its spool."""
        return sorted(path.name for path in self.spool.glob("batch-*.json"))

    def answer(self, job: str, *words: str) -> subprocess.CompletedProcess[str]:
        """`agent print` of a job."""
        options = ["--spool", self.spool, "--job", job, *words]
        return subprocess.run(
            [NATIVE, "agent", "print", *options], capture_output=True, text=True, check=False, timeout=600
        )

    def status(self) -> dict[str, Any]:
        """`agent status`."""
        command = [NATIVE, "agent", "status", "--format=json", "--spool", self.spool]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
        return cast("dict[str, Any]", json.loads(done.stdout))


def run_job(job: str, script: str, folder: Path, **environment: str) -> None:
    """A job of Slurm, as its processes see it."""
    all_ = {
        "PATH": os.environ["PATH"],
        "SLURM_JOB_ID": job,
        "SLURM_JOB_NAME": f"name of {job}",
        **environment,
    }
    subprocess.run(["sh", "-c", script], env=all_, cwd=folder, check=True)


def rows(lake: Path, sql: str) -> list[tuple[object, ...]]:
    """Rows of a query on a lake; none if the lake does not exist yet."""
    if not is_lake(lake):
        return []
    with Session(Lake.open(lake)) as session:
        return session.fetch(sql)
