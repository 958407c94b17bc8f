"""Numbers and names for human eyes."""

from __future__ import annotations

import pytest
from sysdock.text import (
    counted,
    fitted,
    human_bytes,
    human_ns,
    percent,
    printable,
    printable_lines,
    shorten,
    width,
    wrapped,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0 ns"),
        (999, "999 ns"),
        (1_500, "1.50 µs"),
        (-1_500, "-1.50 µs"),
        (123_456_789, "123.5 ms"),
        (119_000_000_000, "119.0 s"),
        (125_000_000_000, "2 min 5 s"),
        (7_260_000_000_000, "2 h 1 min"),
        (-7_260_000_000_000, "-2 h 1 min"),
        (float("nan"), "nan"),
    ],
)
def test_times(value: float | None, text: str) -> None:
    assert human_ns(value) == text


def test_sizes() -> None:
    assert [human_bytes(value) for value in (0, 1023, 1536, 5 << 30)] == [
        "0 B",
        "1,023 B",
        "1.50 KiB",
        "5.00 GiB",
    ]


def test_a_name_cannot_steer_the_terminal() -> None:
    assert printable("a\x1b[31m\nb\u202e") == "a\\u001b[31m\\nb\\u202e"
    assert printable("日本語 é") == "日本語 é"


def test_width_of_japanese() -> None:
    assert width("日本") == 4
    assert shorten("日本語の名前", 7) == "日本語…"
    assert shorten("/usr/share/doc/readme", 11, middle=True) == "/usr/…eadme"
    assert shorten("short", 5) == "short"


def test_a_message_keeps_its_lines() -> None:
    assert printable_lines("a\x1b]0;x\x07\n\nhint: b") == "a\\u001b]0;x\\u0007\n\nhint: b"


def test_shares_are_rounded_down() -> None:
    assert [percent(*pair) for pair in ((0, 0), (1, 1), (9999, 10000), (1, 3))] == [
        "0 %",
        "100 %",
        "99.9 %",
        "33.3 %",
    ]


def test_prose_is_fitted_and_tables_and_commands_are_not() -> None:
    prose, table = "  one two three four", "a  b  c  d  e  f  g  h"
    command = "    sysdock show rec io/files"
    assert fitted([prose, table, command], None) == [prose, table, command]
    assert fitted([prose, table, command], 10) == ["  one two", "  three", "  four", table, command]
    assert fitted(["see /a/long/path/to/it now"], 10) == ["see", "/a/long/path/to/it", "now"]
    assert fitted(["", "short"], 10) == ["", "short"]
    assert fitted(["see what `sysdock info rec` says"], 20) == ["see what", "`sysdock info rec`", "says"]


def test_a_text_next_to_a_name_continues_below_itself() -> None:
    assert fitted(["clock   one two three four"], 20) == ["clock   one two", "        three four"]
    assert fitted(["a name that is long   one two three"], 20) == ["a name that is long   one two three"]
    assert fitted(["path   /one/long/path/of/a/file"], 20) == ["path   /one/long/path/of/a/file"]


def test_english_is_wrapped_between_words() -> None:
    assert wrapped("one two three four", 9, "  ") == ["  one two", "  three", "  four"]
    assert wrapped("x" * 12, 5) == ["xxxxx", "xxxxx", "xx"]
    assert wrapped("", 10) == []


def test_a_command_in_back_ticks_is_not_broken_where_it_fits() -> None:
    text = "Run `sysdock show rec io/files` to see them."
    assert wrapped(text, 30) == ["Run", "`sysdock show rec io/files` to", "see them."]
    assert wrapped(text, 20) == ["Run `sysdock show", "rec io/files` to see", "them."]


def test_japanese_is_wrapped_anywhere_but_before_a_full_stop() -> None:
    lines = wrapped("ほかに 17 個のファイルも同様です。同じプログラムが何度も起動されています。", 32)
    assert all(24 <= width(line) <= 34 for line in lines[:-1])
    assert (
        "".join(lines).replace(" ", "")
        == "ほかに17個のファイルも同様です。同じプログラムが何度も起動されています。"
    )
    assert not any(line.startswith(("、", "。")) for line in lines)


@pytest.mark.parametrize("room", range(8, 40))
def test_signs_of_japanese_stay_with_their_words(room: int) -> None:
    text = (
        "呼び出しは 36 回\uff08最も長いのは「チェック」\uff09で、"
        "データ\uff08ファイル\uff09の読み込みより長くかかっています (確度: 高)。"
    )
    lines = wrapped(text, room)
    assert not [line for line in lines if line[0] in "\uff09」、。)ーァィゥェォッャュョっゃゅょ"]
    assert not [line for line in lines if line[-1] in "\uff08「("]
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_a_noun_agrees_with_its_number() -> None:
    shown = [counted(number, "written file") for number in (0, 1, 1200)]
    assert shown == ["0 written files", "1 written file", "1,200 written files"]
    nouns = ("entry", "process", "branch", "key", "box")
    assert [counted(2, noun) for noun in nouns] == [
        "2 entries", "2 processes", "2 branches", "2 keys", "2 boxes"
    ]  # fmt: skip
    assert counted(2, "read or write|reads and writes") == "2 reads and writes"
