"""Remarks in tables of pages."""

from __future__ import annotations

from sysdock.library import Column
from sysdock.page.tables import table


def cells(name: str, value: str) -> str:
    html = table("t", [Column(name, "VARCHAR", None, "A text.")], [(value,)], ("label", "表"))
    return html.partition("<tbody>")[2]


def test_a_remark_is_there_in_both_languages_and_copied_in_english() -> None:
    shown = cells("note", "the job did nothing; it took 3 ms")
    assert 'data-v="the job did nothing; it took 3 ms"' in shown
    assert "ジョブは何も行わなかった。所要時間は 3 ms" in shown


def test_what_is_recorded_or_not_known_is_there_once() -> None:
    for name, value in (("note", "of somebody else"), ("path", "the job did nothing"), ("reason", "")):
        assert cells(name, value) == f'<tr><td class="s">{value}</td></tr></tbody></table></div>'


def test_a_long_text_is_no_remark() -> None:
    text = "1 of 2 workers " * 100_000
    assert "data-v" not in cells("note", text)


def test_a_remark_is_text() -> None:
    shown = cells("note", "the control group has a limit: <b>1</b>")
    assert "<b>" not in shown
    assert "&lt;b&gt;1&lt;/b&gt;" in shown
