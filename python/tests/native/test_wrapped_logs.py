"""Logs as people have them: copied from web pages, mails, CI services and system logs. Each has the rows of the plain one."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path

import pytest

PLAIN = "".join(
    f'991 {1718000000 + number}.000000 openat(AT_FDCWD, "/opt/app/m{number}.dat", O_RDONLY|O_CLOEXEC) = 3</opt/app/m{number}.dat> <0.000020>\n'
    f'991 {1718000000 + number}.000100 read(3</opt/app/m{number}.dat>, "it\'s..."..., 65536) = 4000 <0.000010>\n'
    f"991 {1718000000 + number}.000200 close(3</opt/app/m{number}.dat>) = 0 <0.000005>\n"
    for number in range(20)
)
SQL = (
    "SELECT ts_ns, dur_ns, call, path, transferred_bytes FROM calls JOIN paths USING (path_id) ORDER BY ts_ns"
)
CONTEXT = " [system_u:object_r:etc_t:s0]"


def before(text: str) -> str:
    """The log with a text before each line."""
    return "".join(text + line for line in PLAIN.splitlines(keepends=True))


def typeset(text: str) -> str:
    """As a text processor sets it."""
    parts = text.split('"')
    quoted = "".join(part + "\u201c\u201d"[number % 2] for number, part in enumerate(parts[:-1])) + parts[-1]
    return quoted.replace("...", "\u2026").replace("'", "\u2019")


WRAPPED: dict[str, tuple[str | bytes, list[str]]] = {
    "CI service": (before("2026-01-05T10:00:00.1234567Z "), ["issues/before_lines"]),
    "quoted": (before("> "), ["issues/before_lines"]),
    "indented": (before("    "), ["issues/before_lines"]),
    "system log": (before("Nov  5 01:09:22 host tool[12]: "), ["issues/before_lines"]),
    "containers": (before("web-1  | "), ["issues/before_lines"]),
    "HTML": (html.escape(PLAIN), ["issues/html_decoded"]),
    "quoted HTML": (html.escape(before("> ")), ["issues/before_lines", "issues/html_decoded"]),
    "typographic": (typeset(PLAIN), ["issues/quotes_straightened"]),
    "contexts": (
        PLAIN.replace("991 ", f"991{CONTEXT} ")
        .replace(">, ", f">{CONTEXT}, ")
        .replace("> <", f">{CONTEXT} <"),
        ["issues/contexts_removed"],
    ),
    "UTF-16": (
        "\ufeff".encode("utf-16-le") + PLAIN.replace("\n", "\r\n").encode("utf-16-le"),
        ["issues/utf_16_decoded"],
    ),
    "byte order mark": ("\ufeff" + PLAIN, []),
    "a remark first": ("strace: Process 991 attached\n" + PLAIN, []),
    "a prompt first": ("$ strace -p 991 -ttt -T -y\n\n" + PLAIN, []),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_it_has_the_rows_of_the_plain_log(
    name: str, import_log: Callable[..., Path], query: Callable, manifest: Callable
) -> None:
    content, said = WRAPPED[name]
    plain, wrapped = import_log(PLAIN), import_log(content)
    assert query(wrapped, SQL) == query(plain, SQL)
    stated = manifest(wrapped)
    assert (stated["clock"], stated["started_ns"]) == (
        manifest(plain)["clock"],
        manifest(plain)["started_ns"],
    )
    sql = "SELECT detail FROM import_issues WHERE issue = 'wrapped'"
    found = query(wrapped, sql) if said else []
    assert sorted(json.loads(detail)[0]["code"] for [detail] in found) == said
