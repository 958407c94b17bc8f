"""Pages: documentation, examples and tests in one."""

from __future__ import annotations

from pathlib import Path

import pytest
from sysdock.errors import UserError
from sysdock.library.page import cell_text, cells, parse_page
from sysdock.sentences import say

PAGE = """\
# Small requests

What it answers.

## Example

A table before the log belongs to nothing:

| a | b |
|---|---|
| 1 | 2 |

```strace
1 1700000000.000000 read(3</tmp/a>, "x"..., 4096) = 100 <0.000010>
# not a heading
```

```params
interval_s = 0.5
name = "x"
```

| call | bytes |
|---|---:|
| read | 100 |
| a\\|b |  |

```strace
second
```

## What to do

First `paragraph`,
in **two** lines.

Second paragraph.

# 小さな読み書き

## どうするか

まとめて
読む。
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "p.md"
    path.write_text(text)
    return path


def test_clauses_of_certainties(tmp_path: Path) -> None:
    text = """# T

## How sure it is

- high: it was `seen`,
  twice.
- low.write: only counted.

Beside the list.

# 題

## どれだけ確かか

- high: 見た。
"""
    page = parse_page(write(tmp_path, text))
    assert page.clauses() == {"high": "it was seen, twice", "low.write": "only counted"}
    assert say(page.how_sure("high", "write"), "en") == "it was seen, twice"
    assert say(page.how_sure("high", None), "ja") == "見た"
    # What is missing in one language is said in the other.
    assert say(page.how_sure("low", "write"), "ja") == "only counted"
    assert page.how_sure("low", "read") is page.how_sure(None, None) is None


def test_titles_sections_and_examples(tmp_path: Path) -> None:
    page = parse_page(write(tmp_path, PAGE))
    assert (page.title, say(page.titles, "ja"), page.text) == (
        "Small requests",
        "小さな読み書き",
        "What it answers.",
    )
    assert list(page.sections) == ["Example", "What to do", "どうするか"]
    assert say(page.first_paragraph("what_to_do"), "en") == "First paragraph, in two lines."
    assert say(page.first_paragraph("what_to_do"), "ja") == "まとめて読む。"
    assert page.first_paragraph("nothing") is None
    first, second = page.examples
    assert first.log_text.startswith("1 1700000000.000000 read(")
    assert first.log_text.endswith("# not a heading\n")
    assert first.params == {"interval_s": 0.5, "name": "x"}
    assert first.expected_columns == ["call", "bytes"]
    assert first.expected_rows == [["read", "100"], ["a|b", None]]
    assert PAGE.splitlines()[first.line_no - 1] == "```strace"
    assert first.table_lines is not None
    assert PAGE.splitlines()[first.table_lines[0] - 1] == "| call | bytes |"
    assert second.table_lines is None


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("no title", "no title"),
        ("# T\n```strace\nx", "the block is not closed"),
        ("# T\n```params\na = 1\n```\n", "without a `strace` or `rows` block"),
        ("# T\n```strace\nx\n```\n```params\na = \n```\n", "not `name = value`"),
        ("# T\n```strace\nx\n```\n```rows\na\n```\n", "names one table"),
        ("# T\n```strace\nx\n```\n| a | b |\n|---|---|\n| 1 |\n", "1 cells under 2 columns"),
        ("# T\n" + "```strace\nx\n```\n" * 101, "more than 100 examples"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, fact: str) -> None:
    with pytest.raises(UserError, match=fact):
        parse_page(write(tmp_path, text))


def test_no_page(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no page"):
        parse_page(tmp_path / "none.md")


@pytest.mark.parametrize(
    "text", ["plain", "a|b", "two\nlines", "back\\slash", "tab\there", "<script>", "\\xff"]
)
def test_a_cell_can_hold_any_text(text: str) -> None:
    assert cells(f"| {cell_text(text)} | x |") == [text, "x"]


def test_cells_of_other_values() -> None:
    assert [cell_text(value) for value in (None, True, 5, 2.5, 3.0, "")] == [
        "",
        "true",
        "5",
        "2.5",
        "3",
        "''",
    ]
