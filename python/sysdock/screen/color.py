"""Colour on terminals: where it is wanted, and which lines have it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TextIO

_BOLD, _RED, _GREEN, _YELLOW, _CYAN = "1", "1;31", "32", "33", "36"
# By status of a rule. Only a finding is red: a note or an inconclusive rule is not an error.
_OF_STATUS = {"finding": _RED, "note": _YELLOW, "unknown": _CYAN, "ok": _GREEN}
_when = "auto"


def choose(when: str) -> None:
    """`auto`, `always` or `never`, as --color says, for the rest of the process."""
    global _when
    _when = when


def is_wanted(stream: TextIO) -> bool:
    """Whether what goes to the stream is to be coloured. NO_COLOR: https://no-color.org"""
    if _when != "auto":
        return _when == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    try:
        return stream.isatty()
    except ValueError:
        # The stream is closed.
        return False


def painted(lines: Sequence[str], words: dict[str, str], stream: TextIO) -> list[str]:
    """Lines about findings, coloured where that is wanted. `words`: names of statuses and of headings."""
    if not is_wanted(stream):
        return list(lines)
    by_word = {words[status]: code for status, code in _OF_STATUS.items()}
    statuses = re.compile(rf"( *)({'|'.join(map(re.escape, by_word))})(?=  ?\S)")
    headings = [words[name].partition("{")[0].rstrip() for name in ("findings", "do", "next", "report")]
    heading = re.compile(rf"( *)({'|'.join(map(re.escape, headings))})")

    def coloured(line: str) -> str:
        if found := statuses.match(line):
            return f"{found[1]}{_with(found[2], by_word[found[2]])}{line[found.end() :]}"
        if found := heading.match(line):
            return f"{found[1]}{_with(found[2], _BOLD)}{line[found.end() :]}"
        return line

    return [coloured(line) for line in lines]


def painted_words(
    lines: Sequence[str], stream: TextIO, heads: Collection[str], statuses: Mapping[str, str]
) -> list[str]:
    """Lines with headings in bold and coloured names of statuses, where that is wanted.

    `heads`: whole lines, or beginnings that end in a colon. `statuses`: a word, and the status that it is:
    `finding`, `note`, `unknown` or `ok`. It counts where it begins a line, a column, a bracket or a clause.
    """
    if not is_wanted(stream):
        return list(lines)
    status = re.compile(rf"(?:^ *|  |: |\[)({'|'.join(map(re.escape, statuses)) or '(?!)'})(?=[\s\]:,;]|$)")
    beginnings = tuple(head for head in heads if head.endswith(":"))

    def coloured(line: str) -> str:
        text = line.strip()
        if text and text in heads:
            return _with(line, _BOLD)
        if found := status.search(line):
            code = _OF_STATUS[statuses[found[1]]]
            line = f"{line[: found.start(1)]}{_with(found[1], code)}{line[found.end(1) :]}"
        if beginning := next((head for head in beginnings if text.startswith(head)), None):
            line = line.replace(beginning, _with(beginning, _BOLD), 1)
        return line

    return [coloured(line) for line in lines]


def painted_head(lines: Sequence[str], stream: TextIO) -> list[str]:
    """The lines of a table, its headings in bold where that is wanted."""
    return [_with(lines[0], _BOLD), *lines[1:]] if lines and is_wanted(stream) else list(lines)


def painted_error(text: str, stream: TextIO) -> str:
    """An error with its hint, the names of both coloured where that is wanted."""
    if not is_wanted(stream):
        return text
    text = re.sub(r"\Asysdock:", _with("sysdock:", _RED), text)
    return re.sub(r"(?m)^hint:", _with("hint:", _BOLD), text)


def _with(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"
