"""Event files that are damaged, incomplete, or none."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def traced(native: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a program."""
    folder = tmp_path_factory.mktemp("trace") / "rec"
    words = [native, "itrace", "attach", "-o", folder, "--limit", "20000", "--", "/bin/true"]
    subprocess.run(words, check=True, capture_output=True)
    return folder


@pytest.fixture
def convert(native: Path, tmp_path: Path) -> Run:
    """Makes a recording of a folder with these bytes as its event file."""

    def run(content: bytes | None, facts: str | None = None) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / "given"
        folder.mkdir()
        if content is not None:
            (folder / "trace.sdit").write_bytes(content)
        if facts is not None:
            (folder / "facts.json").write_text(facts)
        words = [native, "itrace", "convert", folder, "-o", tmp_path / "made"]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    return run


def test_a_copy_is_the_same(traced: Path, convert: Run, tmp_path: Path) -> None:
    done = convert((traced / "trace.sdit").read_bytes())
    assert done.returncode == 0, done.stderr
    totals = [
        {name: table["rows"] for name, table in json.loads(text)["tables"].items() if name != "environment"}
        for text in ((folder / "recording.json").read_text() for folder in (traced, tmp_path / "made"))
    ]
    assert totals[0] == totals[1]
    assert totals[0]["function_calls"] > 5


@pytest.mark.parametrize(
    ("content", "fact", "hint"),
    [
        (None, "trace.sdit: No such file or directory", "sysdock itrace attach -o REC -- CMD"),
        (b"", "trace.sdit: not an event file of an instruction trace", None),
        (b"\x7fELF" * 100, "trace.sdit: not an event file of an instruction trace", None),
        (b"SDIT\x63\0\0\0", "trace.sdit: unknown format version 99", "a newer version"),
    ],
    ids=["missing", "empty", "foreign", "of the future"],
)
def test_what_is_no_event_file(
    convert: Run, tmp_path: Path, content: bytes | None, fact: str, hint: str | None
) -> None:
    done = convert(content)
    assert done.returncode == 2
    assert fact in done.stderr
    assert (hint or "") in done.stderr
    assert not (tmp_path / "made").exists()


def test_facts_that_are_no_json(traced: Path, convert: Run, tmp_path: Path) -> None:
    done = convert((traced / "trace.sdit").read_bytes(), "{")
    assert done.returncode == 2
    assert "facts.json: EOF while parsing" in done.stderr
    assert not (tmp_path / "made").exists()


def test_a_file_that_was_cut_says_so(traced: Path, convert: Run, tmp_path: Path) -> None:
    whole = (traced / "trace.sdit").read_bytes()
    done = convert(whole[: len(whole) // 3])
    assert done.returncode == 0, done.stderr
    assert "was not closed by its recorder: its last part may be missing" in done.stderr
    manifest = json.loads((tmp_path / "made" / "recording.json").read_text())
    assert manifest["captures"][0]["lost"] == 1


def test_damage_is_counted(traced: Path, convert: Run, tmp_path: Path) -> None:
    content = bytearray((traced / "trace.sdit").read_bytes())
    # In the middle of the events, which are most of the file.
    content[len(content) // 2] ^= 1
    done = convert(bytes(content))
    assert done.returncode == 0, done.stderr
    assert "1 sections of the event file are damaged, and missing" in done.stderr
    assert json.loads((tmp_path / "made" / "recording.json").read_text())["captures"][0]["lost"] == 1


def test_a_reader_that_has_enough(native: Path, traced: Path) -> None:
    for verb in ("decode", "dump"):
        words = [str(native), "itrace", verb, str(traced)]
        done = subprocess.run(
            ["bash", "-c", 'set -o pipefail; "$@" | head -1', "-", *words], capture_output=True, text=True
        )
        assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
