"""Filters on recorded events: what the user may write, and what it means.

A value the user gave never becomes SQL text: patterns are rows of a temporary table, numbers are variables of
the connection.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation

from sysdock.errors import UserError
from sysdock.recording.manifest import Recording

_SECONDS = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)$")


@dataclass(frozen=True)
class Filters:
    """Rows to keep. Texts are comma lists as typed; `\\` before one of `*?[],\\` removes its special meaning.

    file: a path; a name without a slash matches the last component; with `*?[` a pattern for the whole path
    or, without a slash, also for the last component. Calls without a path are dropped. A copy call is kept by
    either of its two files.
    exclude_dir: everything below that folder (an absolute path, a name anywhere in the path, or a pattern).
    exclude_suffix: paths that end so. Both keep calls without a path; of a copy call they check the file
    that is read only.
    call: names or patterns of system calls. process: process ids (all tasks that had them) or program names.
    from_, to: seconds since the start of the recording, or an ISO time stamp; `to` itself is outside.
    only_ok: calls that returned without an error. only_errors: calls that returned one.
    """

    file: str | None = None
    exclude_dir: str | None = None
    exclude_suffix: str | None = None
    call: str | None = None
    process: str | None = None
    from_: str | None = None
    to: str | None = None
    only_ok: bool = False
    only_errors: bool = False

    def __post_init__(self) -> None:
        if self.only_ok and self.only_errors:
            raise UserError("--only-ok and --only-errors leave nothing", "give one of them")
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, str) and not split_list(value):
                raise UserError(
                    "an empty filter", "leave the option out to have everything", _option(field.name)
                )

    @property
    def active(self) -> bool:
        """Whether anything is filtered at all."""
        return self != Filters()

    @property
    def by_path(self) -> bool:
        """Whether paths decide."""
        return bool(self.file or self.exclude_dir or self.exclude_suffix)

    def describe(self) -> str:
        """The options, as they would be typed; empty where nothing is filtered."""
        import shlex

        words = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value is True:
                words.append(_option(field.name))
            elif value:
                words += [_option(field.name), shlex.quote(value)]
        return " ".join(words)


def _option(name: str) -> str:
    return "--" + name.rstrip("_").replace("_", "-")


def quote(name: str) -> str:
    """A path or name written so that a filter takes every character for itself."""
    return re.sub(r"([*?\[\],\\])", r"\\\1", name)


def split_list(text: str) -> list[str]:
    r"""Items of a comma list; `\,` is a comma inside an item. Other escapes stay for the pattern."""
    items, item, chars = [], "", iter(text)
    for char in chars:
        if char == "\\":
            following = next(chars, "")
            item += following if following == "," else char + following
        elif char == ",":
            items.append(item)
            item = ""
        else:
            item += char
    return [item for item in [*items, item] if item]


def is_pattern(text: str) -> bool:
    """Whether an item holds a `*`, `?` or `[` that was not escaped."""
    return bool(re.search(r"(?<!\\)(?:\\\\)*[*?\[]", text))


def plain(text: str) -> str:
    r"""An item without its escapes. `\x` stays: unreadable bytes stand as `\xNN` in recorded paths."""
    return re.sub(r"\\([*?\[\],\\])", r"\1", text)


def glob(text: str) -> str:
    """An item in the syntax of DuckDB's GLOB: a backslash that escapes nothing is literal."""
    return re.sub(r"\\(?![*?\[\],\\])", r"\\\\", text)


def path_rules(filters: Filters) -> list[tuple[str, str, str]]:
    """(side, mode, text) for each pattern: side `keep` or `drop`; mode says how `text` is compared."""
    rules = []
    for item in split_list(filters.file or ""):
        if is_pattern(item):
            rules.append(("keep", "glob" if "/" in item else "name_glob", glob(item)))
        else:
            rules.append(("keep", "path" if "/" in item else "name", plain(item)))
    for item in split_list(filters.exclude_dir or ""):
        item = item.rstrip("/") if item.strip("/") else item
        if is_pattern(item):
            rules.append(("drop", "dir_glob", glob(item)))
        else:
            rules.append(("drop", "dir" if item.startswith("/") else "dir_name", plain(item)))
    rules += [("drop", "suffix", plain(item)) for item in split_list(filters.exclude_suffix or "")]
    return rules


# Comparison of a row `r` of the table path_rules with a row `p` of `paths`. The root folder is the only
# folder whose path ends in a slash.
PATH_MATCH = """CASE r.mode
    WHEN 'path' THEN p.path = r.text
    WHEN 'name' THEN split_part(p.path, '/', -1) = r.text
    WHEN 'glob' THEN p.path GLOB r.text
    WHEN 'name_glob' THEN p.path GLOB r.text OR split_part(p.path, '/', -1) GLOB r.text
    WHEN 'suffix' THEN ends_with(p.path, r.text)
    WHEN 'dir' THEN p.path = r.text OR starts_with(p.path, concat(rtrim(r.text, '/'), '/'))
    WHEN 'dir_name' THEN contains(concat('/', p.path), concat('/', r.text, '/'))
        OR (p.kind = 'directory' AND ends_with(concat('/', p.path), concat('/', r.text)))
    WHEN 'dir_glob' THEN p.path GLOB r.text OR p.path GLOB concat(r.text, '/*')
END"""


def time_ns(text: str, option: str, recording: Recording) -> int:
    """The moment that --from or --until states, ns since the epoch on the recording's clock."""
    if _SECONDS.match(text):
        try:
            return recording.started_ns + int(Decimal(text).scaleb(9).to_integral_value())
        except InvalidOperation:
            raise UserError(f"`{text}` is too large", place=option) from None
    kind = recording.clock.get("kind")
    try:
        stamp = datetime.datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text))
    except ValueError:
        hint = "give seconds since the start of the recording (1.5), or a time stamp (2026-11-20T08:30:00)"
        raise UserError(f"`{text}` is not a time", hint, option) from None
    if kind in ("relative", "order"):
        hint = "give seconds since the start of the recording"
        raise UserError("the clock of this recording has no date", hint, option)
    if stamp.tzinfo is None:
        stamp = stamp.astimezone()
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return (stamp - epoch) // datetime.timedelta(microseconds=1) * 1000
