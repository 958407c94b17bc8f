"""Recordings of pairs that are kept in testdata/kept, and when they may be judged in place of new ones.

An archive holds both recordings of a pair by one recorder, and kept.json: what the programs printed, the key, and when and where it was
recorded. The key is a hash of all that decides what a recording holds: the pair's folder, the shared files that it uses, the format of
recordings, and the recorder's sources without what the compiler does not see (comments, descriptions, tests). Where the key differs, the
pair is recorded again, as if nothing were kept: a kept recording saves time and never decides anything.
"""

from __future__ import annotations

import functools
import hashlib
import json
import platform
import re
import tarfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pairs
from pairs import FOLDER, ROOT, VARIANTS, Pair
from sysdock.version import FORMAT_VERSION

KEPT = ROOT / "testdata" / "kept"
# What makes recordings; of the executable, the verb `record`.
_CRATES = ("bpf", "calls", "strace", "symbols", "table")
_VERB = ("by_*.rs", "orphans.rs", "record.rs", "relay.rs", "watched.rs")
# Files of tests only.
_TESTS = re.compile(r"(^|/)(tests?|testing|fuzzing)(/|\.rs$)")
# Comments and strings of Rust and C: what looks like a comment in a string is none.
_TOKENS = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<text>r(?P<hashes>\#*)".*?"(?P=hashes)|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'|b'(?:\\.|[^'\\])')""",
    re.DOTALL,
)
# Texts for people in definitions of tables.
_DESCRIPTION = re.compile(
    r'^(text|text_ja|order|note) = (""".*?"""|"(?:\\.|[^"\\])*")$', re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Kept:
    """What is kept of a pair: the folders of its recordings, and what the programs printed."""

    folders: dict[str, Path]
    printed: dict[str, str]


def archive(pair: Pair, recorder: str) -> Path:
    """Where the recordings of a pair are kept."""
    return KEPT / f"{pair.name}-{recorder}.tar.xz"


def kept(pair: Pair, recorder: str, folder: Path) -> Kept | None:
    """Unpacks what is kept of a pair into `folder`; None where there is nothing, or where it is of something else."""
    try:
        with tarfile.open(archive(pair, recorder)) as file:
            first = file.extractfile("kept.json")
            stated = json.load(first) if first else {}
            if stated.get("key") != key(pair, recorder):
                return None
            file.extractall(folder, filter="data")
    except FileNotFoundError:
        return None
    return Kept({variant: folder / variant for variant in VARIANTS}, stated["printed"])


def keep(pair: Pair, recorder: str, recordings: dict[str, Path], printed: dict[str, str]) -> int:
    """Keeps the recordings of a pair; returns the size of the archive in bytes."""
    path = archive(pair, recorder)
    path.parent.mkdir(exist_ok=True)
    stated = {
        "key": key(pair, recorder),
        "recorded": time.strftime("%Y-%m-%d", time.gmtime()),
        "kernel": platform.release(),
        "printed": printed,
    }
    first = path.with_name("kept.json")
    first.write_text(json.dumps(stated, indent=1))
    try:
        with tarfile.open(path, "w:xz", preset=9) as file:
            file.add(first, "kept.json", filter=_anonymous)
            for variant in VARIANTS:
                file.add(recordings[variant], variant, filter=_anonymous)
    finally:
        first.unlink()
    return path.stat().st_size


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without whose it is and when it was written."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def key(pair: Pair, recorder: str) -> str:
    """The hash of what decides what a recording of this pair holds."""
    digest = hashlib.sha256(f"{recorder} {FORMAT_VERSION} {_recorder_key()}".encode())
    for path in sorted(_files_of(pair)):
        digest.update(f"\n{path.relative_to(FOLDER)}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def _files_of(pair: Pair) -> Iterable[Path]:
    """The files of a pair, and the shared ones that it uses."""
    yield from (
        path for path in (FOLDER / pair.name).rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    said = (FOLDER / pair.name / "pair.toml").read_text()
    yield from (FOLDER / "shared" / name for name in set(re.findall(r"\{shared\}/([\w.]+)", said)))
    if pair.remote:
        yield FOLDER / "shared" / "slowfs.c"


@functools.cache
def _recorder_key() -> str:
    """The hash of the recorder's sources, as the compiler sees them."""
    # How programs are compiled and started is part of it.
    digest = hashlib.sha256(Path(pairs.__file__).read_bytes())
    for path in sorted(_sources()):
        digest.update(f"\n{path.relative_to(ROOT)}\n".encode())
        digest.update(essence(path.suffix, path.read_text("utf-8")).encode())
    return digest.hexdigest()


def _sources() -> Iterable[Path]:
    for crate in _CRATES:
        for path in (ROOT / "crates" / crate).rglob("*"):
            if path.suffix in (".rs", ".c", ".h", ".txt") and not _TESTS.search(str(path.relative_to(ROOT))):
                yield path
    for pattern in _VERB:
        yield from (ROOT / "crates/native/src").glob(pattern)
    yield from (ROOT / "knowhow/tables").glob("*.toml")


def essence(suffix: str, text: str) -> str:
    """What the compiler sees of a source: no comment, test, description or space more than one."""
    if suffix == ".toml":
        text = _DESCRIPTION.sub("", re.sub(r"^#.*$", "", text, flags=re.MULTILINE))
    elif suffix != ".txt":
        # In place of a string its number, so that braces are those of the language.
        strings: list[str] = []

        def replaced(found: re.Match[str]) -> str:
            if found["comment"]:
                return " "
            strings.append(found[0])
            return f"\0{len(strings) - 1}\0"

        text = _without_tests(_TOKENS.sub(replaced, text))
        text = re.sub(r"\0(\d+)\0", lambda found: strings[int(found[1])], text)
    return " ".join(text.split())


def _without_tests(text: str) -> str:
    """Without what is compiled for tests only: modules, functions and imports."""
    while (start := text.find("#[cfg(test)]")) >= 0:
        end = start + len("#[cfg(test)]")
        depth = 0
        while end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
            if (text[end - 1] == "}" and depth == 0) or (text[end - 1] == ";" and depth == 0):
                break
        text = text[:start] + text[end:]
    return text
