"""Facts in tables of pages."""

from __future__ import annotations

from sysdock.library import Column
from sysdock.page.markup import text
from sysdock.page.tables import table
from sysdock.sentences import fact, json_of


def cells(value: str, unit: str | None = "fact") -> str:
    html = table("t", [Column("note", "VARCHAR", unit, "A text.")], [(value,)], "label")
    return html.partition("<tbody>")[2]


def test_a_fact_is_there_in_every_language_and_copied_as_its_code() -> None:
    value = json_of([fact("load/nothing_done"), fact("load/too_short", took=3_000_000)])
    assert value
    shown = cells(value)
    assert f'data-v="{text(value)}"' in shown
    assert "nothing was done; it took only 3.00 ms" in shown
    assert "何も行われなかった。所要時間が 3.00 ms" in shown


def test_what_is_recorded_or_not_known_is_there_once() -> None:
    for value, unit in (("of another recorder", "fact"), ("the job did nothing", None), ("", "fact")):
        shown = cells(value, unit)
        assert shown.count(f">{value}<") >= 1
        assert 'lang="ja"' not in shown


def test_a_long_text_is_no_fact() -> None:
    assert "data-v" not in cells("1 of 2 workers " * 100_000, None)


def test_a_fact_is_text() -> None:
    value = json_of(fact("load/group_limit", limit="<b>1</b>"))
    assert value
    shown = cells(value)
    assert "<b>" not in shown
    assert "&lt;b&gt;1&lt;/b&gt;" in shown
