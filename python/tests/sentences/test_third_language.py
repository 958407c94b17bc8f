"""A language that nobody wrote: it takes entries in `knowhow/sentences` and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from make_recording import RecordingMaker
from sysdock.own_files import own_root
from sysdock.sentences import catalogue

# Every text of the made-up language is the English one between these.
BEGIN, END = "\N{LEFT CORNER BRACKET}", "\N{RIGHT CORNER BRACKET}"
PLAIN = {"columns", "descriptions", "values"}


@pytest.fixture(scope="module")
def with_a_language(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The know-how with one more language, `xx`, in its sentences only."""
    root = tmp_path_factory.mktemp("third") / "knowhow"
    shutil.copytree(own_root(), root)
    for subject in catalogue().subjects():
        entries = catalogue().subject(subject)
        lines = [line for name, entry in entries.items() for line in _table(subject, name, entry)]
        if subject == "languages":
            english = {**entries["en"], "name": "Made-up", "unknown": f"{BEGIN}unknown{END}"}
            lines += _table(subject, "xx", english)
        (root / "sentences" / f"{subject}.toml").write_text("\n".join(lines) + "\n", "utf-8")
    return root


def _table(subject: str, name: str, entry: dict[str, Any]) -> list[str]:
    texts = {key: value for key, value in entry.items() if isinstance(value, str)}
    if subject != "languages":
        texts["xx"] = f"{BEGIN}{name if subject in PLAIN else entry['en']}{END}"
    lines = ["", f"[{_quoted(name)}]", *(f"{key} = {_quoted(value)}" for key, value in texts.items())]
    if units := entry.get("values"):
        lines.append(
            "values = { " + ", ".join(f"{key} = {_quoted(unit)}" for key, unit in units.items()) + " }"
        )
    return lines


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _run(root: Path, *arguments: str) -> str:
    """What a verb prints with that know-how."""
    code = (
        "import sys, pathlib, sysdock.own_files as own\n"
        f"own.own_root = lambda: pathlib.Path({str(root)!r})\n"
        "from sysdock.__main__ import main\nsys.exit(main())"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=300
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_a_report_is_in_the_new_language(with_a_language: Path, maker: RecordingMaker) -> None:
    folder = maker.make()
    report = _run(with_a_language, "report", str(folder), "--lang", "xx", "-o", "-")
    assert 'value="xx" checked' in report
    assert ">Made-up</label>" in report
    assert ':root:has(#lang-xx:checked) .t:not([lang="xx"])' in report
    # Its Japanese and English readers have what they had.
    assert 'data-in-ja="目次"' in report


def test_texts_without_a_translation_are_english(with_a_language: Path, maker: RecordingMaker) -> None:
    said = _run(with_a_language, "diagnose", str(maker.make()), "--lang", "xx")
    assert BEGIN in said
    known = _run(with_a_language, "diagnose", str(maker.make(name="again")), "--lang", "en")
    assert BEGIN not in known
