"""Preparations about Java: libraries of other people, each known by its checksum."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

from sysdock.errors import UserError
from sysdock.experiment.bench import Bench
from sysdock.experiment.preparation import preparation
from sysdock.experiment.tools import note_command, run_tool

_GET = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:get"
_COORDINATES = re.compile(r"([\w.-]+):([\w.-]+):([\w.-]+)")
_FOLDER = "jars"


def _repository() -> Path:
    """Maven's default folder of downloaded files."""
    return Path.home() / ".m2" / "repository"


def _place(coordinates: str) -> Path:
    """The file of a library in a repository."""
    found = _COORDINATES.fullmatch(coordinates)
    if found is None or ".." in coordinates:
        hint = "write them as org.postgresql:postgresql:42.7.14"
        raise UserError(f"`{coordinates}` are not coordinates of a library", hint, "jars")
    group, artifact, version = found.groups()
    return Path(group.replace(".", "/"), artifact, version, f"{artifact}-{version}.jar")


def _tools(jars: dict[str, str], **_: object) -> tuple[str, ...]:
    """Maven is needed for what is not there yet."""
    is_whole = all((_repository() / _place(coordinates)).is_file() for coordinates in jars)
    return () if is_whole else ("mvn",)


@preparation(_tools)
def fetch_jars(bench: Bench, *, jars: dict[str, str]) -> None:
    """Copies Java libraries (by coordinates, SHA-256) to `{scratch}/jars`; Maven fetches missing ones."""
    folder = bench.scratch / _FOLDER
    folder.mkdir(exist_ok=True)
    for coordinates, digest in jars.items():
        place = _place(coordinates)
        file = _repository() / place
        if not file.is_file():
            _fetch(coordinates)
        content = file.read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            fact = f"{file} is not the library that the experiment was made with: its SHA-256 differs"
            raise UserError(fact, "remove it, so that it is fetched again", coordinates)
        note_command("cp", file, folder)
        shutil.copy(file, folder)
        bench.about("library", coordinates, f"SHA-256 {digest}")


def _fetch(coordinates: str) -> None:
    arguments = ["mvn", "--batch-mode", "--quiet", _GET, f"-Dartifact={coordinates}", "-Dtransitive=false"]
    try:
        run_tool(*arguments, f"-Dmaven.repo.local={_repository()}")
    except UserError:
        hint = f"without a network, bring it to {_repository() / _place(coordinates)}"
        raise UserError("Maven could not fetch this library", hint, coordinates) from None
    if not (_repository() / _place(coordinates)).is_file():
        raise UserError("Maven fetched no file of this library", "is it a jar?", coordinates)
