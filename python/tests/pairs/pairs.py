"""Loads the pairs of programs in testdata/pairs, builds and runs them, and records them.

A pair is a program with a fault and the same program with the remedy; `testdata/pairs/README.md` says what its
pair.toml holds. `python -m pytest python/tests/pairs` checks them, `tools/pairs` prints what they gain.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "testdata" / "pairs"
SHARED = FOLDER / "shared"
NATIVE = Path(os.environ.get("SYSDOCK_NATIVE", Path(sys.executable).parent / "sysdock-native"))
VARIANTS = ("faulty", "fixed")
SUFFIXES = {"c": "c", "python": "py", "shell": "sh", "java": "java"}
TEXTS = ("name", "rule", "language", "title", "title_ja", "remedy", "remedy_ja", "shows")
# The interpreter itself: `python3` may be a script that looks for it, and that of an environment starts differently.
PYTHON = str(Path(sys.executable).resolve())
# In place of a rule: the pair was written by somebody who had not read the rules, and `tools/exam` asks what they say of it.
UNSEEN = "unseen"
# No pair takes longer than a few seconds; this is for one that hangs.
PATIENCE_S = 120


@dataclass(frozen=True)
class Pair:
    """What a pair.toml says."""

    folder: Path
    name: str
    rule: str
    language: str
    title: str
    title_ja: str
    remedy: str
    remedy_ja: str
    shows: str
    origin: str = ""
    setup: list[list[str]] = field(default_factory=list)
    run: list[str] = field(default_factory=lambda: ["{program}"])
    needs: list[str] = field(default_factory=list)
    also: list[str] = field(default_factory=list)
    cause: str = ""
    names: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    output: str = ""
    remote: list[str] = field(default_factory=list)
    remote_fixed: list[str] | None = None

    def source(self, variant: str) -> Path:
        """The program; of Java a folder of its own, since the class must be named like the file."""
        if self.language == "java":
            return self.folder / variant / "Main.java"
        return self.folder / f"{variant}.{SUFFIXES[self.language]}"


def load(folder: Path) -> Pair:
    """One pair; a ValueError names what is wrong with its pair.toml."""
    stated = tomllib.loads((folder / "pair.toml").read_text())
    known = set(Pair.__dataclass_fields__) - {"folder"}
    if unknown := sorted(set(stated) - known):
        raise ValueError(f"{folder.name}/pair.toml: unknown field {unknown[0]}")
    if lacking := [name for name in TEXTS if not stated.get(name)]:
        raise ValueError(f"{folder.name}/pair.toml: {lacking[0]} is missing")
    if stated["name"] != folder.name or stated["language"] not in SUFFIXES:
        raise ValueError(f"{folder.name}/pair.toml: name is not that of the folder, or language is unknown")
    pair = Pair(folder=folder, **stated)
    for variant in VARIANTS:
        if not pair.source(variant).exists():
            raise ValueError(f"{folder.name}: {pair.source(variant).relative_to(folder)} is missing")
    return pair


def load_all(names: list[str] | None = None) -> list[Pair]:
    """All pairs by name, or those whose name, rule or language is in `names`."""
    found = [load(path.parent) for path in sorted(FOLDER.glob("*/pair.toml"))]
    if not names:
        return found
    return [pair for pair in found if {pair.name, pair.rule, pair.language} & set(names)]


def missing(pair: Pair) -> str | None:
    """Why this pair cannot run here; None where it can."""
    needs = set(pair.needs) | ({"fuse"} if pair.remote else set()) | {pair.language}
    if "fuse" in needs and (os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK)):
        return "needs root and /dev/fuse"
    if needs & {"root", "kernel"} and os.geteuid() != 0:
        return "needs root"
    for need, command in (("c", "cc"), ("java", "javac"), ("shell", "bash"), ("fuse", "cc")):
        if need in needs and shutil.which(command) is None:
            return f"needs {command} (make setup, tools/setup dev)"
    return None


class Workshop:
    """A folder in which programs are built, once each, and in which scratch folders are made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._built: dict[Path, Path] = {}
        self._numbers = itertools.count()

    def compile(self, source: Path, name: str) -> Path:
        """The executable, or the folder of classes, that `source` was compiled to."""
        if source not in self._built:
            target = self.folder / "build" / name
            target.parent.mkdir(exist_ok=True)
            java = source.suffix == ".java"
            command = ["javac", "-d", target] if java else ["cc", "-O1", "-Wall", "-Werror", "-o", target]
            subprocess.run([*command, source], check=True, timeout=PATIENCE_S)
            self._built[source] = target
        return self._built[source]

    def program(self, pair: Pair, variant: str) -> list[str]:
        """What starts a program of a pair."""
        source = pair.source(variant)
        if pair.language == "python":
            return [PYTHON, str(source)]
        if pair.language == "shell":
            shell = source.read_text().partition("\n")[0].removeprefix("#!/bin/")
            return [shell, str(source)]
        target = str(self.compile(source, f"{pair.name}-{variant}"))
        return ["java", "-cp", target, "Main"] if pair.language == "java" else [target]

    @contextlib.contextmanager
    def prepared(self, pair: Pair, variant: str) -> Iterator[tuple[list[str], Path]]:
        """The command of a program and a scratch folder that is set up for it; taken down whatever happens."""
        program = self.program(pair, variant)
        scratch = Path(tempfile.mkdtemp(prefix=f"{pair.name}-{variant}-", dir=self.folder))
        try:
            for command in pair.setup:
                subprocess.run(_filled(command, scratch, program), check=True, timeout=PATIENCE_S)
            with self._remote(pair, variant, scratch):
                yield _filled(pair.run, scratch, program), scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    @contextlib.contextmanager
    def _remote(self, pair: Pair, variant: str, scratch: Path) -> Iterator[None]:
        """Shows {dir}/server as {dir}/remote through the slow file system, if the pair asks for it."""
        options = pair.remote
        if variant == "fixed" and pair.remote_fixed is not None:
            options = pair.remote_fixed
        if not options:
            yield
            return
        server, mount_point = scratch / "server", scratch / "remote"
        server.mkdir(exist_ok=True)
        mount_point.mkdir()
        slowfs = self.compile(SHARED / "slowfs.c", "slowfs")
        # The server unmounts by itself when the pipe ends: also if this process is killed.
        command = [str(slowfs), str(server), str(mount_point), *options]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as starter:
            if starter.wait(PATIENCE_S) != 0:
                raise RuntimeError(f"{' '.join(command)} ended with status {starter.returncode}")
            try:
                yield
            finally:
                # It ends with its last mount; -l: also where a program still holds a file.
                subprocess.run(["umount", "-l", mount_point], check=True, timeout=PATIENCE_S)

    def record(self, pair: Pair, variant: str, recorder: str = "auto") -> tuple[Path, str]:
        """The recording of a run, and its result: what the program printed, and a hash of its output file."""
        with self.prepared(pair, variant) as (command, scratch):
            recording, printed = self._recorded(f"{pair.name}-{variant}", command, scratch, recorder)
            if pair.output:
                [output] = _filled([pair.output], scratch, [])
                printed += hashlib.sha256(Path(output).read_bytes()).hexdigest()
        return recording, printed

    def record_healthy(self, name: str, program: dict[str, Any], recorder: str = "auto") -> Path:
        """The recording of a program of testdata/healthy."""
        scratch = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))
        try:
            for command in program.get("setup", []):
                subprocess.run(
                    _filled(command, scratch, []),
                    check=True,
                    timeout=PATIENCE_S,
                    cwd=scratch,
                    capture_output=True,
                )
            return self._recorded(name, _filled(program["run"], scratch, []), scratch, recorder)[0]
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _recorded(self, name: str, command: list[str], scratch: Path, recorder: str) -> tuple[Path, str]:
        # A pair may be recorded again while its first recordings are open.
        recording = self.folder / f"{name}-{next(self._numbers)}.rec"
        recorded = [str(NATIVE), "record", "--with", recorder, "-o", str(recording), "--", *command]
        return recording, _run(recorded, scratch)

    def wall_s(self, pair: Pair, variant: str) -> float:
        """Seconds that a run takes without a tracer, on fresh data."""
        with self.prepared(pair, variant) as (command, scratch):
            start = time.monotonic()
            _run(command, scratch)
            return time.monotonic() - start


def _filled(command: list[str], scratch: Path, program: list[str]) -> list[str]:
    """Arguments with the folders put in; `{program}` stands for one or more."""
    words: list[str] = []
    for word in command:
        if word == "{program}":
            words += program
        else:
            for place, text in (("{dir}", str(scratch)), ("{shared}", str(SHARED)), ("{python}", PYTHON)):
                word = word.replace(place, text)
            words.append(word)
    return words


def _run(command: list[str], scratch: Path) -> str:
    """What a command printed; an error if it fails, with what it said. Nothing that it started outlives a failure."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "JAVA"))}
    # In the C locale a program starts with the same few calls everywhere.
    environment |= {"LC_ALL": "C"}
    process = subprocess.Popen(
        command,
        cwd=scratch,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        printed, said = process.communicate(timeout=PATIENCE_S)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if process.returncode != 0:
        words = said.decode(errors="replace")[-2000:]
        raise RuntimeError(f"{' '.join(command)} ended with status {process.returncode}: {words}")
    return printed.decode(errors="replace")
