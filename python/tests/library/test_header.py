"""The header of analyses and rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sysdock.errors import UserError
from sysdock.library import RULE_COLUMNS, ChartLine, Column, Param
from sysdock.library.header import parse
from sysdock.library.headings import description, heading

GOOD = """\
-- I/O size histogram
-- Reads and writes per power-of-two size.
-- Calls that moved nothing have no size.
-- needs:  calls, recording
-- param:  min_dur_ns BIGINT = 5   Leave out shorter calls [ns].
-- param:  name VARCHAR = 'it''s'   A name.
-- param:  limit DOUBLE = NULL   Nothing by default.
-- column: size_from BIGINT   Smallest size in the class [B].
-- column: call VARCHAR       Name of the call.
-- chart:  bars x=size_from y=reads,writes title="two words"
-- portable: false
-- tags:   size, calls
-- was:    io/old, io/older
SELECT 1 -- a remark in the SQL
FROM calls;

"""


def write(folder: Path, text: str) -> Path:
    path = folder / "x.sql"
    path.write_text(text)
    return path


def test_every_key_is_read(tmp_path: Path) -> None:
    analysis = parse(write(tmp_path, GOOD), "io/x", "analysis")
    assert analysis.title == "I/O size histogram"
    assert analysis.text == "Reads and writes per power-of-two size. Calls that moved nothing have no size."
    assert analysis.needs == ("calls", "recording")
    assert analysis.params == (
        Param("min_dur_ns", "BIGINT", 5, "Leave out shorter calls.", "ns"),
        Param("name", "VARCHAR", "it's", "A name."),
        Param("limit", "DOUBLE", None, "Nothing by default."),
    )
    assert analysis.columns == (
        Column("size_from", "BIGINT", "B", "Smallest size in the class."),
        Column("call", "VARCHAR", None, "Name of the call."),
    )
    assert analysis.charts == (
        ChartLine("bars", {"x": "size_from", "y": "reads,writes", "title": "two words"}),
    )
    assert not analysis.portable
    assert analysis.tags == ("size", "calls")
    assert analysis.was == ("io/old", "io/older")
    assert analysis.sql == "SELECT 1 -- a remark in the SQL\nFROM calls"
    assert analysis.page_path == tmp_path / "x.md"


def test_rows_are_found_again_by_columns(tmp_path: Path) -> None:
    lines = "-- sums:   size_from\n-- match:  call\n-- portable: false"
    analysis = parse(write(tmp_path, GOOD.replace("-- portable: false", lines)), "io/x", "analysis")
    assert (analysis.sums, analysis.match) == (("size_from",), ("call",))


def test_a_column_may_state_its_japanese_heading(tmp_path: Path) -> None:
    text = GOOD.replace("-- portable: false", "-- heads_ja:  call=呼び出し名\n-- portable: false")
    columns = parse(write(tmp_path, text), "io/x", "analysis").columns
    assert [heading(column, "ja") for column in columns] == ["サイズの下限", "呼び出し名"]
    assert [heading(column, "en") for column in columns] == ["size from", "call"]


def test_a_description_of_its_own_goes_before_the_common_one(tmp_path: Path) -> None:
    text = GOOD.replace("-- portable: false", "-- texts_ja:  call=呼び出し、名前\n-- portable: false")
    size, call = parse(write(tmp_path, text), "io/x", "analysis").columns
    assert description(call, "ja") == "呼び出し、名前"
    # Where there is no common one either, the heading says what it is.
    assert description(replace(size, text="unknown"), "ja") == "サイズの下限"


def test_a_parameter_may_have_a_bound(tmp_path: Path) -> None:
    text = GOOD.replace("BIGINT = 5   Leave", "BIGINT = 5 > 0   Leave")
    [param, *_] = parse(write(tmp_path, text), "io/x", "analysis").params
    assert param == Param("min_dur_ns", "BIGINT", 5, "Leave out shorter calls.", "ns", above=0)


@pytest.mark.parametrize(
    ("old", "new", "line", "fact"),
    [
        ("-- needs:", "-- need:", 4, "unknown header key `need`"),
        ("-- tags:   size", "-- tags:   sise", 12, "unknown tag `sise`"),
        ("size_from BIGINT ", "size_from BIGNUM ", 8, "unknown type BIGNUM"),
        ("= 5 ", "= five ", 5, "the default `five` is not a BIGINT"),
        ("= 5   Leave out shorter calls [ns].", "= 5", 5, "not a parameter"),
        ("= 5   Leave", "= 5 > 5   Leave", 5, "the default `5` is not greater than 5"),
        ("= 'it''s'   A", "= 'it''s' > 1   A", 6, "a VARCHAR has no bound"),
        ("-- portable: false", "-- portable: no", 11, "neither true nor false"),
        ("-- portable: false", "-- question: tasks T", 11, "`question:` and `reads:` belong together"),
        ("-- portable: false", "-- question: T\n-- reads: log", 11, "it is not a name and a title"),
        ("-- portable: false", "-- reads: tasks", 11, "`question:` and `reads:` belong together"),
        ("-- column: call VARCHAR ", "-- column: size_from VARCHAR ", 9, "column `size_from` stands twice"),
        ("x=size_from", "size_from", 10, "`size_from` is not key=value"),
        ("-- needs:  calls, recording", "-- needs:", 4, "`needs:` says nothing"),
        ("-- tags:   size", "-- and more\n-- tags:   size", 12, "a header line without a key"),
        ("-- portable: false", "-- match: cal", 11, "`cal` is not a column"),
        ("-- portable: false", "-- match: call", 11, "nothing adds up"),
        ("-- portable: false", "-- heads_ja: cal=呼", 11, "`cal` is not a column"),
        ("-- portable: false", "-- heads_ja: call", 11, "`call` is not name=heading"),
        ("-- portable: false", "-- texts_ja: cal=呼", 11, "`cal` is not a column"),
        ("-- portable: false", "-- texts_ja: call", 11, "`call` is not name=text"),
        ("-- I/O size histogram\n", "", None, None),
    ],
)
def test_mistakes_are_named_with_their_line(
    tmp_path: Path, old: str, new: str, line: int | None, fact: str | None
) -> None:
    path = write(tmp_path, GOOD.replace(old, new))
    if fact is None:
        # Without its first line the description is the title: nothing is wrong.
        assert parse(path, "x", "analysis").title == "Reads and writes per power-of-two size"
        return
    with pytest.raises(UserError) as caught:
        parse(path, "x", "analysis")
    assert fact in caught.value.fact
    assert caught.value.place == f"{path}:{line}"


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("SELECT 1", "the first line is not a title"),
        ("-- Title\n-- needs: calls\n-- column: a BIGINT  A.\n", "there is no SELECT"),
        ("-- Title\n-- column: a BIGINT  A.\nSELECT 1", "no `needs:` line"),
        ("-- Title\n-- needs: calls\nSELECT 1", "no `column:` line"),
        ("-- Title\n-- needs: calls\n-- column: a BIGINT  A.\nSELECT " + 101 * "(", "nested deeper than 100"),
    ],
)
def test_what_must_be_there(tmp_path: Path, text: str, fact: str) -> None:
    with pytest.raises(UserError, match=fact):
        parse(write(tmp_path, text), "x", "analysis")


def test_a_rule_has_the_columns_of_a_rule(tmp_path: Path) -> None:
    path = write(tmp_path, "-- Title\n-- needs: calls\n-- evidence: io/files --file {subject}\nSELECT 1")
    rule = parse(path, "x", "rule")
    assert rule.columns == RULE_COLUMNS
    assert rule.evidence == "io/files --file {subject}"
    wrong = write(tmp_path, "-- Title\n-- needs: calls\n-- column: a BIGINT  A.\nSELECT 1")
    with pytest.raises(UserError, match="not those of a rule"):
        parse(wrong, "x", "rule")
