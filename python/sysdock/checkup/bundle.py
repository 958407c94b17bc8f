"""Step 4: a single file for the administrator, without contents of files.

Every column of texts is either a closed list of words, or named here with what becomes of it. One that is
neither, as a new table may bring, is left out or hashed.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from sysdock.analysis import Session
from sysdock.analysis.writing import json_text
from sysdock.checkup.hashed_names import LEFT_OUT, Hasher
from sysdock.checkup.site import new_file, refuse_place
from sysdock.checkup.statement import Name, Step, as_it_is
from sysdock.checkup.steps import content, step_3
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.recording.rewrite import Change, Plan, rewrite
from sysdock.scratch import scratch_folder
from sysdock.sections.description import environment

# Words of the kernel, of strace and of sysdock.
_WORDS = {
    ("calls", "call"), ("calls", "class"), ("calls", "errno"), ("calls", "via"), ("paths", "kind"),
    ("signals", "signal"), ("signals", "code"), ("mappings", "protection"), ("processes", "exit_signal"),
    ("environment", "section"), ("environment", "source"), ("import_issues", "issue"),
    ("file_faults", "access"), ("page_io", "kind"), ("page_io", "pages"),
    ("block_requests", "device"), ("block_requests", "op"), ("block_requests", "flags"),
    ("block_requests", "errno"),
    ("run_states", "state"), ("run_states", "cause"), ("run_states", "call"), ("run_states", "class"),
    ("critical_path", "part"), ("critical_path", "cause"), ("critical_path", "call"),
    ("critical_path", "class"), ("interrupts", "kind"), ("interrupts", "name"),
    ("system_metrics", "source"), ("system_metrics", "object"), ("system_metrics", "metric"),
    ("system_metrics", "unit"), ("allocations", "kind"), ("allocations", "function"),
    ("allocations", "module"), ("allocations", "cache"), ("memory_stalls", "kind"),
    ("memory_stalls", "call"), ("memory_stalls", "class"),
}  # fmt: skip
# Lines of the log, with what the program read and wrote.
_CONTENTS = {("import_issues", "excerpt")}
_COMMANDS = {("processes", "command")}
_PATHS = {
    ("processes", "log"), ("import_issues", "source"), ("stacks", "object"), ("stacks", "source"),
}  # fmt: skip
_SINGLE = {
    ("commands", "comm"), ("stacks", "function"), ("run_states", "waker"), ("critical_path", "waker"),
}  # fmt: skip
# Sections of `environment` that reveal nothing about user, host or site.
_PLAIN_SECTIONS = ("kernel", "cpu", "memory", "tool", "recorder")
_PLAIN_OF_HOST = ("operating system", "machine")
_NAME_IN_MOUNT = re.compile(r"^(\S+) on (\S+) (\(.*\))$", re.DOTALL)
_PLAIN_OPTIONS = re.compile(r"[a-z_]+(=\d+[kmg]?)?")
# Keys of recording.json; all others are left out with hashed names.
_KNOWN_KEYS = {
    "format_version", "tool", "started_ns", "duration_ns", "exit_code", "exit_signal", "complete", "captures",
}  # fmt: skip
# Keys of a capture; reasons why a family is missing are texts of the kernel and of sysdock.
_KNOWN_KEYS_OF_CAPTURE = {
    "recorder", "unit", "total", "understood", "lost", "clock", "families", "sources", "counts", "issues",
    "complete", "ended_by",
}  # fmt: skip
_FOLDER = "checkup"
_README = """What is in this folder, made by `sysdock checkup`:

checkup.json       the four steps with their verdicts and numbers
diagnosis.json     all findings of step 3
environment.json   machine and file systems where it was recorded, as far as known
recording/         the system calls as Parquet tables; try `sysdock diagnose recording`
                   and `sysdock show recording io/files`

No content of files is in it: what programs read and wrote was never recorded, and lines of the log that could
not be understood were left out. The findings were made again from the recording in this folder.
Command lines: {commands}.
Names of files, programs and hosts: {names}.
"""


def write_bundle(
    path: Path, session: Session, steps: Sequence[Step], *, hashed: bool, with_commands: bool, lang: str
) -> None:
    """Writes the bundle, and with `hashed` its key next to it (`.key`); neither may exist before."""
    key_path = Path(f"{path}.key")
    for file in (path, key_path) if hashed else (path,):
        refuse_place(file)
    hasher = Hasher() if hashed else None
    has_key = False
    try:
        # Not next to the bundle: the owner of that folder could put another one in its place.
        with scratch_folder() as folder, new_file(path) as whole:
            _collect(Path(folder), whole, session, steps, hasher, with_commands, lang)
            if hasher:
                _write_key(key_path, hasher)
                has_key = True
    except BaseException:
        if has_key:
            key_path.unlink()
        raise


def _collect(
    folder: Path,
    whole: BinaryIO,
    session: Session,
    steps: Sequence[Step],
    hasher: Hasher | None,
    with_commands: bool,
    lang: str,
) -> None:
    copy = rewrite(
        session.recording,
        session.library,
        folder / "recording",
        _plan(hasher, with_commands),
        _manifest(session.recording.manifest, hasher, with_commands),
    )

    def rename(name: Name) -> str:
        if name.kind == "command" and not with_commands:
            return LEFT_OUT
        return hasher.name(name) if hasher else as_it_is(name)

    with Session(copy, session.library) as copied:
        # Findings quote names, so they are made again from what is in the bundle.
        own = [step for step in steps if step.number < 3] + [step_3(copied)]
        findings = [vars(finding) for finding in copied.diagnose(lang)]
        where = environment(copied)
    texts = {
        "README": _README.format(
            commands=("hashed" if hasher else "included") if with_commands else "left out",
            names="hashed; whoever made this can translate them back" if hasher else "as they are",
        ),
        "checkup.json": json_text(content(own, lang, rename), indent=1) + "\n",
        "diagnosis.json": json_text(findings, indent=1) + "\n",
        "environment.json": json_text(where, indent=1) + "\n",
    }
    with tarfile.open(fileobj=whole, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name, text in texts.items():
            # An argument of a command need not be UTF-8.
            data = text.encode("utf-8", "backslashreplace")
            archive.addfile(_entry(name, len(data)), io.BytesIO(data))
        for file in sorted(copy.folder.rglob("*")):
            if file.is_file():
                with open(file, "rb") as opened:
                    archive.addfile(_entry(file.relative_to(folder).as_posix(), file.stat().st_size), opened)


def _entry(name: str, size: int) -> tarfile.TarInfo:
    """Without owner and time, which a bundle has no need to tell."""
    entry = tarfile.TarInfo(f"{_FOLDER}/{name}")
    entry.size, entry.mode = size, 0o644
    return entry


def _write_key(path: Path, hasher: Hasher) -> None:
    """The key is stored before the bundle, because the names in the bundle cannot be read without it."""
    with new_file(path, 0o600) as file:
        file.write(hasher.key.hex().encode() + b"\n")


def _drop(*_: Any) -> None:
    return None


def _plan(hasher: Hasher | None, with_commands: bool) -> Plan:
    def plan(table: str, column: str) -> Change | None:
        place = (table, column)
        if place in _CONTENTS or (place in _COMMANDS and not with_commands):
            return Change(_drop)
        if place == ("environment", "value"):
            return Change(_environment_value(hasher, with_commands), ("section", "name"))
        if hasher is None or place in _WORDS:
            return None
        if place == ("paths", "path"):
            return Change(hasher.object, ("kind",))
        if place == ("environment", "name"):
            return Change(
                lambda name, section: hasher.path(name) if section == "mount" else name, ("section",)
            )
        if place in _COMMANDS:
            return Change(hasher.command)
        if place in _PATHS:
            return Change(hasher.path)
        return Change(hasher.word) if place in _SINGLE else Change(_drop)

    return plan


def _environment_value(hasher: Hasher | None, with_commands: bool) -> Callable[..., str | None]:
    def value(text: str, section: str, name: str) -> str | None:
        if section == "command" and not with_commands:
            return None
        if hasher is None or section in _PLAIN_SECTIONS or (section == "host" and name in _PLAIN_OF_HOST):
            return text
        if section == "mount" and (found := _NAME_IN_MOUNT.match(text)):
            # Options may hold addresses and folders; words and numbers are kept.
            options = [o for o in found[3][1:-1].split(",") if _PLAIN_OPTIONS.fullmatch(o)]
            return f"{found[1]} on {hasher.path(found[2])} ({','.join(options)})"
        return hasher.command(text)

    return value


def _manifest(manifest: dict[str, Any], hasher: Hasher | None, with_commands: bool) -> dict[str, Any]:
    """Keys of recording.json that change."""
    command = manifest.get("command") if with_commands else None
    if hasher is None:
        return {"command": command}
    return {
        **{key: None for key in manifest if key not in _KNOWN_KEYS},
        "command": command and hasher.command(command),
        "directory": manifest.get("directory") and hasher.path(manifest["directory"]),
        "host": manifest.get("host") and hasher.word(manifest["host"]),
        "captures": [_capture(capture, hasher) for capture in manifest["captures"]],
    }


def _capture(capture: dict[str, Any], hasher: Hasher) -> dict[str, Any]:
    sources = [
        {**source, "path": hasher.path(source["path"]) if source.get("path") else None}
        for source in capture.get("sources") or []
    ]
    known = {key: value for key, value in capture.items() if key in _KNOWN_KEYS_OF_CAPTURE}
    # A note may name logs and hosts.
    return {**known, "sources": sources, "clock": {**capture["clock"], "note": None}}


def names_in(recording: Recording) -> list[str]:
    """All names that a bundle of the recording hashes, to translate them back."""
    with Session(recording, Library()) as session:
        found = [recording.manifest.get(key) for key in ("command", "directory", "host")]
        found += [source.get("path") for source in recording.sources]
        for table, column in (("paths", "path"), *sorted(_COMMANDS | _PATHS | _SINGLE)):
            if table in recording.tables:
                found += [name for (name,) in session.fetch(f"SELECT DISTINCT {column} FROM {table}")]
        if "environment" in recording.tables:
            sql = "SELECT name, value FROM environment WHERE section IN ('mount', 'host')"
            found += [text for pair in session.fetch(sql) for text in pair]
    return [name for name in found if name]
