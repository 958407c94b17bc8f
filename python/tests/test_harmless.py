"""Recorded names in what goes out: nothing in them steers a terminal, a spreadsheet or a page."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from make_recording import RecordingMaker
from sysdock.analysis.writing import json_text, write_csv
from sysdock.recording import Recording
from sysdock.recording.export import export
from sysdock.report import as_text
from sysdock.screen.answer import answer_lines
from sysdock.text import harmless_json, printable, spreadsheet_text, visible

STEERING = "\x00\x1b[31m\x07\x7f\x9b\u202e\u2066\u200f\ufeff\u2028\U000e0041"
ODD = [
    "=cmd|' /C calc'!A1",
    "+1",
    "-1+1",
    "@SUM(A1)",
    "\tx",
    "\rx",
    "a\nb",
    f"/tmp/{STEERING.replace(chr(0), '')}/x",
    "/日本語/👩‍🚀",
    "\u0085",
    r"\x85",
    "",
    "plain -=+@",
]
FOUND = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)


def with_names(maker: RecordingMaker, name: str = "rec", **manifest: object):
    """A recording of a read of a file of each odd name."""
    calls = [
        {
            "t": n / 10,
            "call": "read",
            "path": path,
            "dur_ns": 1000 * (n + 1),
            "comm": path[:15],
            "transferred_bytes": 5,
        }
        for n, path in enumerate(ODD)
    ]
    return maker.make(calls, name, **manifest)


def test_characters_that_steer_are_shown_by_their_number() -> None:
    assert visible("a\x1b[31m\u202eb\n") == r"a\u001b[31m\u202eb\n"
    assert visible("/日本語/👩‍🚀") == "/日本語/👩‍🚀"
    assert len({printable(name) for name in ODD}) == len(ODD)
    assert len({visible(name) for name in ODD}) == len(ODD)


def test_an_unreadable_byte_and_a_control_character_stay_different() -> None:
    assert printable("\u0085") == r"\u0085"
    assert printable(r"\x85") == r"\x85"


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", "\ta", "\ra"])
def test_a_text_is_no_formula(text: str) -> None:
    assert spreadsheet_text(text).startswith("'")


def test_csv_from_python_and_from_the_engine_is_the_same(maker: RecordingMaker, open_session) -> None:
    session = open_session(with_names(maker))
    result = session.run("io/files", {"per_call": False})
    engine, ours = io.BytesIO(), io.StringIO()
    result.copy_to(engine, "csv")
    write_csv(ours, [column.name for column in result.columns], result.rows())
    texts = engine.getvalue().decode()
    assert not FOUND.search(texts)
    by_engine, by_us = (
        list(csv.DictReader(io.StringIO(text, newline=""))) for text in (texts, ours.getvalue())
    )
    assert [row["path"] for row in by_engine] == [row["path"] for row in by_us]
    assert {row["path"] for row in by_engine} == {spreadsheet_text(name) for name in ODD}


def test_raw_csv_has_names_as_they_were_recorded(maker: RecordingMaker, open_session) -> None:
    out = io.BytesIO()
    open_session(with_names(maker)).run("io/files", {"per_call": False}).copy_to(out, "csv", raw=True)
    rows = csv.DictReader(io.StringIO(out.getvalue().decode(), newline=""))
    assert {row["path"] for row in rows} == set(ODD)


def test_numbers_below_zero_stay_numbers() -> None:
    out = io.StringIO()
    write_csv(out, ["a", "b"], [(-1, -0.5)])
    assert out.getvalue() == "a,b\n-1,-0.5\n"


def test_json_says_the_same_in_harmless_characters(maker: RecordingMaker, open_session) -> None:
    out = io.BytesIO()
    open_session(with_names(maker)).run("io/files", {"per_call": False}).copy_to(out, "json")
    text = out.getvalue().decode()
    # The engine begins each object with a tab.
    assert not FOUND.search(text.replace("\n\t{", "\n{"))
    assert {row["path"] for row in json.loads(text)} == set(ODD)
    assert json.loads(json_text({"a": ODD})) == {"a": ODD}
    assert not FOUND.search(json_text({"a": ODD}))
    assert json.loads(harmless_json('"\U000e0041"')) == "\U000e0041"


def test_exported_tables_are_harmless_unless_raw(maker: RecordingMaker, library, tmp_path) -> None:
    recording = Recording.open(with_names(maker))
    for raw, names in ((False, {spreadsheet_text(name) for name in ODD}), (True, set(ODD))):
        export(recording, library, tmp_path / str(raw), "csv", raw=raw)
        with open(tmp_path / str(raw) / "paths.csv", newline="") as file:
            assert {row["path"] for row in csv.DictReader(file)} == names


@pytest.mark.parametrize("format_", ["md", "json", "html"])
def test_reports_are_harmless(maker: RecordingMaker, open_session, format_: str) -> None:
    odd = STEERING.replace("\x00", "")
    session = open_session(with_names(maker, command=f"=ls {odd}", host=odd, directory=odd))
    text = as_text(session, format_)
    # Script and style are our own and Vega's.
    text = re.sub(r"<(script|style)>.*?</\1>", "", text, flags=re.DOTALL)
    assert not FOUND.search(text)


def test_the_first_screen_is_harmless(maker: RecordingMaker, open_session) -> None:
    odd = STEERING.replace("\x00", "")
    session = open_session(with_names(maker, command=f"ls {odd}", host=odd))
    assert not FOUND.search("\n".join(answer_lines(session, None, "en")))
