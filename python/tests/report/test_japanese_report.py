"""A Japanese report: nothing that is for reading is left in English."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from make_recording import RecordingMaker
from sysdock import chart
from sysdock.analysis import Session
from sysdock.chart import drawings
from sysdock.cli.answer import answer_lines, diagnosis_lines
from sysdock.experiment.words import of_verdict
from sysdock.library import Library, Page
from sysdock.library.headings import heading, japanese_value
from sysdock.page.statements_ja import NOTES, clock_note_ja, ending_ja
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


def test_the_page_has_no_english_sentence(sessions: list[Session]) -> None:
    for session in sessions:
        reading = Reading()
        reading.feed(report(session, "ja"))
        assert len(reading.texts) > 50
        assert english_in(reading.texts) == [], session.recording.folder.name


def test_tooltips_and_labels_are_japanese(sessions: list[Session]) -> None:
    for session in sessions:
        reading = Reading()
        reading.feed(report(session, "ja"))
        assert len(reading.labels) > 10
        wrong = {label for label in reading.labels if _is_english(label)}
        assert sorted(wrong) == [], session.recording.folder.name


def test_an_english_page_keeps_its_labels_and_has_the_others_for_the_switch(sessions: list[Session]) -> None:
    page = report(sessions[0], "en")
    assert ' aria-label="Contents" data-other="目次"' in page
    assert ' aria-label="目次" data-other="Contents"' in report(sessions[0], "ja")


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
        "note": "the log has no clock; times only count lines",
    }
    folder = maker.make(clock=clock, complete=False, ended_by="input error")
    reading = Reading()
    reading.feed(report(open_session(folder), "ja"))
    assert "ログに時刻がない。時刻は行番号にすぎない" in reading.texts
    assert "記録は途中で終わっています: 入力のエラー。" in reading.texts
    assert english_in(reading.texts) == []


def test_what_recorders_state_is_known_in_japanese() -> None:
    stated = "times run back 3 times, by up to 7 s: the clock was set, or calls are in the order of their return (-z)"
    assert clock_note_ja(stated).startswith("時刻が 3 回、最大 7 秒戻る")
    assert clock_note_ja("2 recordings, compared by: clock; see `ranks`") == (
        "2 個の記録、比較の方法: clock。詳細は `ranks`"
    )
    assert clock_note_ja("of another recorder") == "of another recorder"
    assert ending_ja("of another recorder") == "of another recorder"


def test_notes_are_those_that_recorders_write() -> None:
    root = Path(__file__).parents[3]
    sources = [*root.glob("crates/*/src/**/*.rs"), root / "python/sysdock/recording/merging.py"]
    written = "\n".join(path.read_text("utf-8") for path in sources)
    endings = re.findall(r'rename = "([^"]+)"', (root / "crates/table/src/manifest.rs").read_text("utf-8"))
    assert [note for note in NOTES if _fixed_part(note) not in written] == []
    assert {"running", "end of input", "input error"} <= set(endings)
    assert [ending for ending in endings if not _JAPANESE.search(ending_ja(ending))] == []


def test_notes_on_a_load_are_known_in_japanese() -> None:
    note = "a job ended with No space left on device (error 28); it took 1 ms, and fio counts whole ones"
    assert japanese_value(note) == (
        "ジョブがエラーで終了した: No space left on device (error 28)。所要時間は 1 ms で、fio の時間は 1 ms 単位"
    )
    assert japanese_value("read (lock)") == "read (ロック)"
    assert japanese_value("/srv/of another recorder") == "/srv/of another recorder"


def test_reasons_of_verdicts_are_known_in_japanese() -> None:
    row = {"metric": "elapsed_s", "verdict": "invalid", "ratio_low": None}
    english, japanese = of_verdict(
        {**row, "reason": "5 blocks are too few: 6 is the least at this level"}, 0.02
    )
    assert english == "elapsed_s: invalid: 5 blocks are too few: 6 is the least at this level"
    assert japanese == "elapsed_s: 無効: 5 ブロックでは足りない (この有意水準では最低 6 ブロック)"


def test_notes_in_japanese_are_those_that_are_written(library: Library) -> None:
    root = Path(__file__).parents[3]
    sources = [*root.glob("crates/load/src/**/*.rs"), *root.glob("python/sysdock/experiment/**/*.py")]
    sources += [*library.root.glob("environment/*.toml"), *root.glob("python/sysdock/dump/*.py")]
    sources += [library.root / f"rules/{name}.sql" for name in ("load/not_usable", "time/user_code")]
    written = "\n".join(path.read_text("utf-8") for path in sources)
    # A text that goes over several lines of Python is one.
    written = re.sub(r'"\s*f?"', "", written)
    stated = tomllib.loads((library.root / "headings/notes.ja.toml").read_text("utf-8"))
    fixed = {note: max((part.strip() for part in note.split("*")), key=len) for note in stated}
    assert [note for note, part in fixed.items() if part not in written] == []
    assert [note for note, text in stated.items() if note.count("*") != text.count("*")] == []


def _fixed_part(pattern: str) -> str:
    """The longest part of a note that is the same in all recordings."""
    parts = re.split(r"\(\\d\+\)|\(\.\*\)", pattern.replace(r"\(", "(").replace(r"\)", ")"))
    return max((part.strip() for part in parts), key=len)


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
    columns = [column for analysis in library.analyses() for column in analysis.columns if not column.text_ja]
    tables = [library.table(name) for name in ("environment", "import_issues")]
    texts = {column.text for column in columns} | {
        column.text for table in tables for column in table.columns
    }
    described = tomllib.loads((library.root / "headings" / "descriptions.ja.toml").read_text("utf-8"))
    assert sorted(texts ^ described.keys()) == []


def test_headings_are_of_columns(library: Library) -> None:
    names = {column.name for each in [*library.analyses(), *library.rules()] for column in each.columns}
    names |= {column.name for table in library.tables() for column in table.all_columns}
    stated = tomllib.loads((library.root / "headings" / "ja.toml").read_text("utf-8"))
    assert sorted(stated.keys() - names) == []
