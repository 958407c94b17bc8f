"""Logs that were cut, shuffled, thinned and scribbled on: the importer counts what it does not understand and never crashes."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from sampling import sampled

LOGS = Path(__file__).resolve().parents[3] / "testdata" / "strace"
TOKENS = [
    b"<unfinished ...>", b"<... read resumed>", b") = ", b'"', b"<", b">", b"[", b"{", b"(", b"-1", b"9223372036854775807",
    b"0xffffffffffffffff", b"\\", b"= ?", b"+++ superseded by execve in pid 1 +++", b"99999999999999999999", b"\0", b"\n",
]  # fmt: skip


def scribble(data: bytearray, chance: random.Random) -> bytes:
    """Random bytes in random places."""
    for _ in range(chance.randrange(1, 200)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


def shuffle(data: bytearray, chance: random.Random) -> bytes:
    """Lines in any order, some of them missing."""
    lines = [line for line in data.split(b"\n") if chance.random() < 0.8]
    chance.shuffle(lines)
    return b"\n".join(lines)


def insert(data: bytearray, chance: random.Random) -> bytes:
    """What strace's grammar is made of, in the wrong places."""
    for _ in range(chance.randrange(1, 300)):
        at = chance.randrange(len(data))
        data[at : at + chance.randrange(3)] = chance.choice(TOKENS)
    return bytes(data)


def splice(data: bytearray, chance: random.Random) -> bytes:
    """Halves of different lines put together, as two writers on one file leave them."""
    lines = data.split(b"\n")
    for _ in range(200):
        left, right = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[left] = (
            lines[left][: chance.randrange(len(lines[left]) + 1)]
            + lines[right][chance.randrange(len(lines[right]) + 1) :]
        )
    return b"\n".join(lines)


@pytest.mark.parametrize("mutate", [scribble, shuffle, insert, splice])
def test_a_mutated_log_is_counted_and_never_crashes(
    mutate: Callable[[bytearray, random.Random], bytes], native: Path, tmp_path: Path, manifest: Callable
) -> None:
    chance = random.Random(mutate.__name__)
    logs = sorted(path for path in LOGS.iterdir() if path.is_file())
    for round_number in range(sampled(10, 40)):
        log, out = tmp_path / "log", tmp_path / f"rec-{round_number}"
        log.write_bytes(mutate(bytearray(chance.choice(logs).read_bytes()[:60_000]), chance))
        done = subprocess.run([native, "import", log, "-o", out], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        stated = manifest(out)
        assert stated["lines_total"] == len(log.read_bytes().removesuffix(b"\n").split(b"\n"))
        lost = sum(
            stated["issues"].get(kind, 0)
            for kind in ("unknown_line", "broken_call", "impossible_number", "cut_line", "long_line")
        )
        assert stated["lines_understood"] == stated["lines_total"] - lost
