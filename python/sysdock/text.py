"""Numbers and recorded names as people read them, on a terminal and elsewhere."""

from __future__ import annotations

import math
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

# The micro sign, not the Greek letter: fonts with Japanese characters draw that one as wide as two.
TIMES = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
_MINUTES_FROM_S = 120
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Characters that steer a terminal or a page, first and last of each range: controls, and what changes the
# direction of text or is not seen. Without the joiners of scripts and of pictures.
STEERING = (
    (0x00, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x61C, 0x61C), (0x180E, 0x180E), (0x200B, 0x200B),
    (0x200E, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB),
    (0xE0000, 0xE007F),
)  # fmt: skip
# With these a cell begins that a spreadsheet takes for a formula.
FORMULA_STARTS = "=+-@\t\r"
_RANGES = [f"{chr(first)}-{chr(last)}" for first, last in (*STEERING, (0xD800, 0xDFFF))]
_STEERING = re.compile(f"[{''.join(_RANGES)}]")
# In JSON the first of them are escaped anyway, or are between the values.
_STEERING_IN_JSON = re.compile(f"[{''.join(_RANGES[1:])}]")
_RATIO_DIGITS = 3


def human_ns(value: float | None) -> str:
    """A time as people read it: `1.23 ms`, from two minutes on `2 min 5 s`; `-` where it is not known."""
    if value is not None and math.isfinite(value) and abs(value) >= _MINUTES_FROM_S * TIMES[0][0]:
        minutes, seconds = divmod(round(abs(value) / TIMES[0][0]), 60)
        hours, minutes = divmod(minutes, 60)
        sign = "-" if value < 0 else ""
        return f"{sign}{hours:,} h {minutes} min" if hours else f"{sign}{minutes} min {seconds} s"
    return _scaled(value, TIMES)


def human_bytes(value: float | None) -> str:
    """A size as people read it: `1.23 MiB`; `-` where it is not known."""
    return _scaled(value, SIZES)


def human_count(value: float | None) -> str:
    """A count with separators: `1,234,567`."""
    return "-" if value is None else f"{value:,}"


def plural(noun: str) -> str:
    """The regular plural of an English noun, or of the last word of a phrase: `entries`, `written files`."""
    if re.search("[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return noun + ("es" if noun.endswith(("s", "x", "z", "ch", "sh")) else "s")


def agreeing(number: object, words: str) -> str:
    """The word that agrees with a number: of `file` or `is|are`, singular or plural."""
    one, _, several = words.partition("|")
    return one if number == 1 else several or plural(one)


def counted(number: int, noun: str) -> str:
    """A count with its noun: `1 file`, `1,234 files`; `index|indices` names an irregular plural."""
    return f"{number:,} {agreeing(number, noun)}"


def percent(part: float, whole: float) -> str:
    """A share as text, rounded down, so that only all of them are 100 %; of nothing it is 0 %."""
    if not whole:
        return "0 %"
    if part >= whole:
        return "100 %"
    return f"{int(part / whole * 1000) / 10:.1f} %"


def truncated(value: float, digits: int = _RATIO_DIGITS) -> str:
    """The first significant digits of a number from 0 on, the rest cut off, not rounded: `0.0463`."""
    if value <= 0:
        return "0"
    from decimal import ROUND_DOWN, Decimal

    # Twelve digits first: the float next to 0.29 lies below it, and would be cut to 0.289.
    number = Decimal(f"{value:.12g}")
    last = min(number.adjusted() - digits + 1, 0)
    return f"{number.quantize(Decimal(1).scaleb(last), ROUND_DOWN):f}"


def _scaled(value: float | None, units: Sequence[tuple[int, str]]) -> str:
    if value is None:
        return "-"
    if not math.isfinite(value):
        return str(value)
    for factor, unit in units:
        if abs(value) >= factor or factor == 1:
            number = value / factor
            digits = 0 if factor == 1 and number == int(number) else 2 if abs(number) < 100 else 1
            return f"{number:,.{digits}f} {unit}"
    raise AssertionError("the last factor is 1")


def printable(text: str) -> str:
    """A recorded name without characters that would move the cursor or colour the terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else escaped(c) for c in text)


def escaped(char: str) -> str:
    r"""A character by its number: `\u0085`. `\xNN` in a recorded name is a byte that is no UTF-8."""
    return _SHORT_ESCAPES.get(char) or (
        f"\\u{ord(char):04x}" if ord(char) < 1 << 16 else f"\\U{ord(char):08x}"
    )


def visible(text: str) -> str:
    """A recorded name in which whatever steers a terminal, a page or the direction of text is escaped."""
    return text if text.isascii() and text.isprintable() else _STEERING.sub(lambda c: escaped(c[0]), text)


def spreadsheet_text(text: str) -> str:
    """A text as a cell of CSV: visible, and with `'` before it where a spreadsheet would compute it."""
    return ("'" if text[:1] and text[0] in FORMULA_STARTS else "") + visible(text)


def harmless_json(json_text: str) -> str:
    """JSON that says the same in characters that steer nothing."""
    return _STEERING_IN_JSON.sub(_json_escape, json_text)


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def printable_lines(text: str) -> str:
    """The same for a message of several lines."""
    return "\n".join(printable(line) for line in text.split("\n"))


def width(text: str) -> int:
    """Columns that a text takes on a terminal; wide East Asian characters take two."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def shorten(text: str, room: int, middle: bool = False) -> str:
    """`text` in at most `room` terminal columns, cut at its end, or in the `middle` as paths are."""
    if width(text) <= room:
        return text
    if middle:
        half = (room - 1) // 2
        return head(text, room - 1 - half) + "…" + head(text[::-1], half)[::-1]
    return head(text, room - 1) + "…"


def head(text: str, room: int) -> str:
    """The longest beginning of `text` that fits into `room` columns."""
    end = used = 0
    for char in text:
        used += width(char)
        if used > room:
            break
        end += 1
    return text[:end]


def pad(text: str, room: int, right: bool = False) -> str:
    """`text` filled up with blanks to `room` terminal columns."""
    blanks = " " * max(room - width(text), 0)
    return blanks + text if right else text + blanks


# Commands are not broken. Their blanks are replaced by this meanwhile.
_CODE, _BLANK = re.compile("`[^`]+`"), "\0"


def wrapped(text: str, room: int, indent: str = "", *, whole: bool = False) -> list[str]:
    """Lines of at most `room` columns; Japanese, which has no blanks, is broken anywhere.

    What is in back-ticks is a command to copy: it is not broken at a blank, where it fits into a line.
    whole: a word that is wider, such as a path, stays in one piece.
    """
    most = sys.maxsize if whole else room - width(indent)
    text = _CODE.sub(lambda code: code[0].replace(" ", _BLANK) if width(code[0]) <= most else code[0], text)
    lines, line = [], ""
    for piece in _pieces(text, most):
        if line and width(indent + line + piece.rstrip()) > room:
            lines.append(indent + line.rstrip())
            line = piece.lstrip()
        else:
            line += piece
    lines += [indent + line.rstrip()] if line.strip() else []
    return [line.replace(_BLANK, " ") for line in lines]


# A line to copy into a shell.
_COMMAND = re.compile(r" +(?:[A-Z_]+=\S+ |export |sudo )*(?:sysdock|export|systemctl) |\$ ")
# Columns of a line but for the last; more than one blank separates them.
_NAMES = re.compile(r" *\S+(?: \S+)* {2,}(?=\S)")


def fitted(lines: Iterable[str], room: int | None) -> list[str]:
    """Lines of prose broken to fit into `room` columns (None: as they are), each below its own beginning.

    Lines of tables (with more than one blank in a row) and commands stay whole. But where there is a name
    and a text for it, the text continues below itself.
    """
    return [
        part
        for line in lines
        for part in ([line] if not room or width(line) <= room else _broken(line, room))
    ]


def _broken(line: str, room: int) -> list[str]:
    text = line.lstrip()
    if _COMMAND.match(line) or not text:
        return [line]
    if "  " not in text:
        return wrapped(text, room, line[: len(line) - len(text)], whole=True)
    name = _NAMES.match(line)
    rest = line[name.end() :] if name else ""
    if name is None or "  " in rest or " " not in rest or width(name[0]) > room // 2:
        return [line]
    first, *others = wrapped(rest, room, " " * width(name[0]), whole=True)
    return [name[0] + first.lstrip(), *others]


# Signs that must not begin a line, and those that must not end one (JIS X 4051).
_CLOSING = (
    "、。・」』】\uff09\uff0c\uff0e\uff1a\uff1b\uff01\uff1f)],.%"
    "ーぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ々"
)
_OPENING = "「『【\uff08(["


def _pieces(text: str, room: int) -> Iterator[str]:
    """Parts of a text between which a line may be broken; none is wider than `room`."""
    piece = ""
    for char in text:
        wide = any(unicodedata.east_asian_width(each) in "WF" for each in piece[-1:] + char)
        breaks = piece.endswith(" ") or (wide and char not in _CLOSING and piece[-1:] not in _OPENING)
        if piece and char != " " and (breaks or width(piece + char) > room):
            yield piece
            piece = ""
        piece += char
    if piece:
        yield piece
