"""Takes the descriptor tags of `strace -y` out of a log: what is left is the log that strace would have written without -y."""

from __future__ import annotations

import re

# A descriptor or AT_FDCWD with its tag. Inside of a path `<` and `>` are escaped; a device names its numbers in brackets of its own.
TAG = re.compile(
    r"(?<![\w.])(\d+|AT_FDCWD)<(/[^<>]*(?:<(?:char|block) \d+:\d+>)?|[A-Za-z_]+[\w-]*:\[[^\n]*?\])>(?:\(deleted\))?"
)
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def untagged(text: str) -> str:
    """The log without tags. Quoted strings stay as they are: a buffer may hold what looks like a tag."""
    return "".join(_untagged_line(line) for line in text.splitlines(keepends=True))


def _untagged_line(line: str) -> str:
    parts, at = [], 0
    while at < len(line):
        string = STRING.match(line, at)
        tag = None if string else TAG.match(line, at)
        if string:
            parts.append(string[0])
            at = string.end()
        elif tag:
            parts.append(tag[1])
            at = tag.end()
        else:
            parts.append(line[at])
            at += 1
    return "".join(parts)
