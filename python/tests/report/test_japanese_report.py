"""A Japanese report: nothing that is for reading is left in English."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from make_recording import RecordingMaker
from sysdock import chart
from sysdock.analysis import Session
from sysdock.chart import drawings
from sysdock.experiment.outcomes import of_verdict
from sysdock.library import Library, Page
from sysdock.library.headings import heading
from sysdock.recording import Recording
from sysdock.report import markdown
from sysdock.report.writer import report
from sysdock.screen.answer import answer_lines, diagnosis_lines
from sysdock.sentences import catalogue, say

# Two English words in a row that are no name of a call, path, unit or product.
_SENTENCE = re.compile(r"\b(?:[a-z]{2,}|[A-Z][a-z]+) +(?:[a-z]{2,}) +[a-z]{2,}\b")
# What Japanese engineers write as it is.
_NAMES = {"inode", "O_DIRECT", "softirq"}
# What the made dump has recorded, and messages that are quoted.
_RECORDED = re.compile("sysrq triggered crash|Trigger a crash|「[^」]*」")
_JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
# Attributes that are for reading, or for listening.
_ATTRIBUTES = ("title", "aria-label", "alt")


class Reading(HTMLParser):
    """The texts of a page as its Japanese reader sees them, without code, scripts and recorded names.

    `labels`: those of attributes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hidden: list[str] = []
        self.texts: list[str] = []
        self.labels: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.labels += [value or "" for name, value in attrs if name in _ATTRIBUTES]
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


@pytest.fixture(scope="module")
def pages(sessions: list[Session]) -> dict[str, Reading]:
    """What the Japanese page of each recording says, by the name of its folder."""
    found = {}
    for session in sessions:
        found[session.recording.folder.name] = reading = Reading()
        reading.feed(report(session, "ja"))
    return found


def test_the_page_has_no_english_sentence(pages: dict[str, Reading]) -> None:
    for name, reading in pages.items():
        assert len(reading.texts) > 50
        assert english_in(reading.texts) == [], name


def test_tooltips_and_labels_are_japanese(pages: dict[str, Reading]) -> None:
    for name, reading in pages.items():
        assert len(reading.labels) > 10
        wrong = {label for label in reading.labels if _is_english(label)}
        assert sorted(wrong) == [], name


def test_an_english_page_keeps_its_labels_and_has_the_others_for_the_switch(sessions: list[Session]) -> None:
    labels = 'data-in-ja="目次" data-in-en="Contents"'
    assert f'aria-label="Contents" {labels}' in report(sessions[0], "en")
    assert f'aria-label="目次" {labels}' in report(sessions[0], "ja")


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"file": "nowhere"}, "--file nowhere に一致するパスはこの記録にありません"),
        ({"process": "nobody"}, "--process nobody に一致するプロセスやプログラムはこの記録にありません"),
        ({"call": "opn"}, "--call opn に一致する呼び出しはこの記録にありません"),
    ],
)
def test_notes_on_filters_are_japanese(
    maker: RecordingMaker, open_session: Callable[..., Session], filters: dict[str, str], said: str
) -> None:
    reading = Reading()
    reading.feed(report(open_session(maker.make(), **filters), "ja"))
    assert said in reading.texts
    assert english_in(reading.texts) == []


def test_clock_and_ending_are_japanese(maker: RecordingMaker, open_session: Callable[..., Session]) -> None:
    clock = {
        "kind": "relative",
        "has_durations": True,
        "note": [{"code": "clock/no_clock"}, {"code": "clock/lines_only"}],
    }
    folder = maker.make(clock=clock, complete=False, ended_by="input error")
    reading = Reading()
    reading.feed(report(open_session(folder), "ja"))
    assert "ログに時刻がない。時刻は行番号にすぎない" in reading.texts
    assert "記録は途中で終わっています: 入力のエラー。" in reading.texts
    assert english_in(reading.texts) == []


def test_reasons_of_verdicts_are_known_in_japanese() -> None:
    reason = '[{"code": "experiment/too_few_blocks", "blocks": 5, "least": 6}]'
    row = {"metric": "elapsed_s", "verdict": "invalid", "reason": reason}
    row |= dict.fromkeys(("ratio", "ratio_low", "p", "smallest_visible"))
    row |= {"baseline_median": 1.0, "scenario_median": 1.0}
    words = of_verdict(row, 0.02)
    assert say(words, "en") == "elapsed_s: invalid: 5 blocks are too few: 6 is the least at this level"
    assert say(words, "ja") == "elapsed_s: 無効: 5 ブロックでは足りない (この有意水準では最低 6 ブロック)"


def test_charts_have_japanese_titles_axes_and_legends(sessions: list[Session]) -> None:
    wrong = set()
    for session in sessions:
        for analysis in session.answerable():
            for drawing in drawings(session, analysis, lang="ja"):
                wrong |= {f"{analysis.id}: {name}" for name in _titles(drawing.spec) if _is_english(name)}
    assert sorted(wrong) == []


def test_a_page_with_a_chart_has_a_japanese_title(sessions: list[Session], tmp_path: Path) -> None:
    chart.write(sessions[0], "io/sizes", {}, tmp_path / "chart.html", lang="ja")
    assert "<h1>サイズごとの入出力" in (tmp_path / "chart.html").read_text()


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


def test_terminals_show_no_english_sentence(sessions: list[Session]) -> None:
    for session in sessions:
        folder = session.recording.folder
        lines = diagnosis_lines(session.diagnose("ja"), folder, "ja") + answer_lines(session, None, "ja")
        shown = [line for line in lines if not re.search(f"sysdock (show|diagnose) {folder}", line)]
        assert english_in(shown) == [], folder.name


def test_reasons_in_the_examples_of_rules_have_no_english_sentence(library: Library) -> None:
    """Also where a rule had nothing to name: "code that is not known" is not for a Japanese sentence."""
    wrong = {
        f"{rule.id}: {reason}"
        for rule in library.rules()
        for reason in _reasons_ja(library.page(rule))
        if english_in([reason])
    }
    assert sorted(wrong) == []


def _reasons_ja(page: Page) -> Iterator[str]:
    for example in page.examples:
        if "reason_ja" in example.expected_columns:
            at = example.expected_columns.index("reason_ja")
            yield from (row[at] or "" for row in example.expected_rows)


def test_every_column_has_a_japanese_heading(library: Library) -> None:
    headings = {
        f"{analysis.id}: {column.name}": heading(column, "ja")
        for analysis in library.analyses()
        for column in analysis.columns
    }
    assert {name: shown for name, shown in headings.items() if _is_english(shown)} == {}


def test_every_column_has_a_japanese_description(library: Library) -> None:
    """In its header, or by its English text; and no text is left of a column that has another one now."""
    every = [column for analysis in library.analyses() for column in analysis.columns]
    columns = [column for column in every if not (column.means and "ja" in column.means.texts)]
    tables = [library.table(name) for name in ("environment", "import_issues")]
    texts = {column.text for column in columns} | {
        column.text for table in tables for column in table.columns
    }
    assert sorted(texts ^ catalogue().subject("descriptions").keys()) == []


def test_headings_are_of_columns(library: Library) -> None:
    names = {column.name for each in [*library.analyses(), *library.rules()] for column in each.columns}
    names |= {column.name for table in library.tables() for column in table.all_columns}
    assert sorted(catalogue().subject("columns").keys() - names) == []
