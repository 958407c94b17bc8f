"""HTML pieces, and numbers for human eyes."""

from __future__ import annotations

import pytest
from sysdock.page.markup import inline, prose, text
from sysdock.page.numbers import duration, measured, size


def test_text_is_harmless_and_visible() -> None:
    assert text('<a href="x">&\'') == "&lt;a href=&quot;x&quot;&gt;&amp;&#x27;"
    assert text("a\0b\x7f\u202e") == "a\N{SYMBOL FOR NULL}b&lt;U+007F&gt;&lt;U+202E&gt;"


def test_prose_knows_paragraphs_lists_and_code() -> None:
    markdown = (
        "One `a<b` and\n**two**.\n\n- first\n  goes on\n- [second](http://x)\n\n```c\nif (a < b)\n```\n"
    )
    assert prose(markdown).splitlines() == [
        "<p>One <code>a&lt;b</code> and <strong>two</strong>.</p>",
        "<ul><li>first goes on</li><li>second</li></ul>",
        "<pre><code>if (a &lt; b)</code></pre>",
    ]


def test_markup_in_prose_is_text() -> None:
    assert inline("<script>alert(1)</script>") == "&lt;script&gt;alert(1)&lt;/script&gt;"


def test_a_line_break_in_japanese_is_no_blank() -> None:
    assert prose("読み込みと\n書き込み、\n1 行") == "<p>読み込みと書き込み、1 行</p>"


@pytest.mark.parametrize(
    ("ns", "words"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_500, "1.50 µs"),
        (45_600_000, "45.60 ms"),
        (1_234_000_000, "1.23 s"),
        (125_000_000_000, "2 min 5 s"),
        (7_260_000_000_000, "2 h 1 min"),
        (None, "unknown"),
    ],
)
def test_durations(ns: int | None, words: str) -> None:
    assert duration(ns) == words


@pytest.mark.parametrize(
    ("count", "words"), [(4096, "4,096 B"), (64.5, "64.5 B"), (65536, "64.00 KiB"), (3 * 2**30, "3.00 GiB")]
)
def test_sizes(count: float, words: str) -> None:
    assert size(count) == words


def test_numbers_of_columns() -> None:
    assert measured(1234, None) == "1,234"
    assert measured(None, "ns") == ""
    assert measured(0.25, "s") == "0.25 s"
    assert measured(float("nan"), "ns") == "nan"
    assert measured(33.333333333, "%") == "33.333333 %"
