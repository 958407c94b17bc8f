"""A Japanese report: nothing that is for reading is left in English."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from make_recording import RecordingMaker
from sysdock.analysis import Session
from sysdock.chart import drawings
from sysdock.library import Library
from sysdock.library.headings import heading
from sysdock.recording import Recording
from sysdock.report import markdown
from sysdock.report.writer import report

# Two English words in a row that are no name of a call, path, unit or product.
_SENTENCE = re.compile(r"\b(?:[a-z]{2,}|[A-Z][a-z]+) +(?:[a-z]{2,}) +[a-z]{2,}\b")
# What Japanese engineers write as it is.
_NAMES = {"inode", "O_DIRECT", "softirq"}
# What the made dump has recorded, and messages that are quoted.
_RECORDED = re.compile("sysrq triggered crash|Trigger a crash|「[^」]*」")
_JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")


class Reading(HTMLParser):
    """The texts of a page as its Japanese reader sees them, without code, scripts and recorded names."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("input", "br", "meta", "link", "hr", "img"):
            return
        of = dict(attrs)
        classes = (of.get("class") or "").split()
        english = of.get("lang") == "en" and tag != "html"
        recorded = {"s", "mono", "subject"} & set(classes)
        is_hidden = tag in ("script", "style", "code", "pre", "title") or english or bool(recorded)
        self.hidden.append("x" if is_hidden or (self.hidden and self.hidden[-1]) else "")

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("input", "br", "meta", "link", "hr", "img") and self.hidden:
            self.hidden.pop()

    def handle_data(self, data: str) -> None:
        if not (self.hidden and self.hidden[-1]) and data.strip():
            self.texts.append(" ".join(data.split()))


@pytest.fixture(scope="module")
def sessions(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Session]]:
    """Sessions over recordings of each kind that are made up."""
    maker = RecordingMaker(library, tmp_path_factory.mktemp("ja"))
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(Session(Recording.open(folder), library)) for folder in maker.make_each_kind()
        ]


def english_in(texts: list[str]) -> list[str]:
    """Those of the texts with English in them that is no name."""
    return sorted({text for text in texts if _SENTENCE.search(_RECORDED.sub("", text))})


def test_the_page_has_no_english_sentence(sessions: list[Session]) -> None:
    for session in sessions:
        reading = Reading()
        reading.feed(report(session, "ja"))
        assert len(reading.texts) > 50
        assert english_in(reading.texts) == [], session.recording.folder.name


def test_charts_have_japanese_titles_axes_and_legends(sessions: list[Session]) -> None:
    wrong = set()
    for session in sessions:
        for analysis in session.answerable():
            for drawing in drawings(session, analysis, lang="ja"):
                wrong |= {f"{analysis.id}: {name}" for name in _titles(drawing.spec) if _is_english(name)}
    assert sorted(wrong) == []


def _is_english(name: str) -> bool:
    return name not in _NAMES and bool(re.search("[A-Za-z]{4}", name)) and not _JAPANESE.search(name)


def _titles(spec: Any) -> Iterator[str]:
    """All titles of a chart: its own, those of axes, legends and tooltips."""
    if isinstance(spec, dict):
        for key, value in spec.items():
            if key in ("title", "text", "subtitle") and isinstance(value, str):
                yield value
            elif key != "data":
                yield from _titles(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from _titles(value)


def test_markdown_has_no_english_sentence(sessions: list[Session]) -> None:
    for session in sessions:
        text = re.sub(r"`[^`]*`|^    sysdock .*", "", markdown(session, "ja"), flags=re.MULTILINE)
        assert english_in(text.splitlines()) == [], session.recording.folder.name


def test_every_column_has_a_japanese_heading(library: Library) -> None:
    headings = {
        f"{analysis.id}: {column.name}": heading(column, "ja")
        for analysis in library.analyses()
        for column in analysis.columns
    }
    assert {name: shown for name, shown in headings.items() if _is_english(shown)} == {}


def test_headings_are_of_columns(library: Library) -> None:
    names = {column.name for each in [*library.analyses(), *library.rules()] for column in each.columns}
    names |= {column.name for table in library.tables() for column in table.all_columns}
    stated = tomllib.loads((library.root / "headings" / "ja.toml").read_text("utf-8"))
    assert sorted(stated.keys() - names) == []
