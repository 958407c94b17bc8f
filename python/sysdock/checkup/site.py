"""A site's values: the threshold of step 1 and the rates its file systems reached when they were checked."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

from sysdock import to_disk
from sysdock.checkup.text_file import read_text
from sysdock.checkup.threshold import QUANTILES, Survey, Threshold
from sysdock.entries import Entries, parse_toml, quoted
from sysdock.errors import UserError
from sysdock.sentences import Words, fact, say

_RATE_KEYS = {"read": "read_bytes_s", "write": "write_bytes_s"}
USUAL = fact("checkup/usual_value_no_site")
_NOT_STATED = fact("checkup/usual_value_site_s")


@dataclass(frozen=True)
class Site:
    """Threshold, where it comes from, and rates in B/s by folder: `read`, `write`.

    `threshold` None: that of the rule.
    """

    threshold: float | None = None
    origin: Words = USUAL
    rates: dict[str, dict[str, float]] = field(default_factory=dict)


def read_site(path: Path) -> Site:
    """The values in a file that `sysdock threshold -o` or `sysdock health --site` wrote; it may be edited.

    What holds rates only has no threshold: that of the rule counts then.
    """
    return _parsed(read_text(path, "a site's TOML file"), str(path))


def _parsed(text: str, place: str) -> Site:
    try:
        content = parse_toml(text)
    except ValueError as error:
        raise UserError(
            f"not TOML: {error}", "`sysdock threshold FILE... -o site.toml` writes one", place
        ) from None
    hint = 'as: [rates."/work"], and below it read_bytes_s = 1.2e9, write_bytes_s = 0.9e9'
    entries = Entries(Path(place), hint)
    ratio = content.get("ratio", {})
    threshold = ratio.get("threshold") if isinstance(ratio, dict) else None
    has_rates_only = "ratio" not in content and "rates" in content
    if not has_rates_only and (not _is_number(threshold) or not 0 < threshold <= 1):
        raise UserError("no `threshold` between 0 and 1 below [ratio]", "as: threshold = 0.1", place)
    rates = dict(entries.tables(content, "rates"))
    for folder, values in rates.items():
        entries.closed(f"the table of the rates of `{folder}`", values, _RATE_KEYS.values())
        if not folder.startswith("/") or not all(map(_is_rate, values.values())):
            raise entries.wrong(f"the rates of `{folder}` are invalid")
    records = ratio.get("records")
    is_count = isinstance(records, int) and 0 <= records < 1 << 63
    of_site = (
        fact("checkup/value_of_site_from", records=records) if is_count else fact("checkup/value_of_site")
    )
    return Site(
        threshold,
        _NOT_STATED if has_rates_only else of_site,
        {
            folder: {name: float(values[key]) for name, key in _RATE_KEYS.items() if key in values}
            for folder, values in rates.items()
        },
    )


def parse_rate(text: str) -> tuple[str, dict[str, float]]:
    """`/work=read:1.2e9,write:0.9e9`: a folder and its rates in B/s."""
    folder, _, values = text.partition("=")
    rates = {}
    for value in values.split(","):
        name, _, number = value.partition(":")
        try:
            rate = float(number)
        except ValueError:
            rate = math.nan
        if name not in _RATE_KEYS or not _is_rate(rate) or not folder.startswith("/"):
            raise UserError(
                f"`{text}` states no rate", "write --rate /work=read:1.2e9,write:0.9e9 (B/s)", "--rate"
            )
        rates[name] = rate
    return folder.rstrip("/") or "/", rates


def write_site(
    path: Path, found: Survey, threshold: Threshold, rates: Mapping[str, Mapping[str, float]]
) -> None:
    """Writes the values as TOML, in one step; refuses to replace a file."""
    write_new(path, "\n".join(_lines(found, threshold, rates)).encode() + b"\n")


def update_rates(path: Path, folder: Path, rates: Mapping[str, float]) -> None:
    """Puts the rates of a folder [B/s] (`read`, `write`) into a site's file; all else in it stays as it is.

    A file that is not there is made. UserError: it cannot be read, or states the rates in a way that cannot
    be changed line by line.
    """
    path, name = path.resolve(), str(folder)
    if not path.exists():
        lines = ["# Values of this site for `sysdock checkup --site`, written by `sysdock health`.", ""]
        write_new(path, "\n".join([*lines, *_section(name, rates)]).encode() + b"\n")
        return
    text = read_text(path, "a site's TOML file")
    known = _parsed(text, str(path)).rates
    changed = _with_rates(text, name, rates)
    wanted = {**known, name: {**known.get(name, {}), **rates}}
    try:
        holds = _parsed(changed, str(path)).rates == wanted
    except UserError:
        holds = False
    if not holds:
        lines = _section(name, rates)
        raise UserError("its rates cannot be changed line by line", f"write: {'; '.join(lines)}", str(path))
    with to_disk.replacing(path, 0o600, like=path.stat()) as file:
        file.write(changed.encode())


def _section(folder: str, rates: Mapping[str, float]) -> list[str]:
    return [f"[rates.{quoted(folder)}]", *(f"{_RATE_KEYS[name]} = {rate!r}" for name, rate in rates.items())]


def _with_rates(text: str, folder: str, rates: Mapping[str, float]) -> str:
    """The text with these rates in the table of the folder, or in a new one at its end."""
    lines = text.splitlines()
    heads = [number for number, line in enumerate(lines) if _heads(line, folder)]
    if not heads:
        return "\n".join([*lines, "", *_section(folder, rates)]) + "\n"
    first = heads[0] + 1
    rest = range(first, len(lines))
    last = next((number for number in rest if lines[number].lstrip().startswith("[")), len(lines))
    keys = {_RATE_KEYS[name] for name in rates}
    kept = [line for line in lines[first:last] if line.partition("=")[0].strip() not in keys]
    return "\n".join([*lines[:first], *_section(folder, rates)[1:], *kept, *lines[last:]]) + "\n"


def _heads(line: str, folder: str) -> bool:
    """Whether a line begins the table of the rates of a folder."""
    if not line.lstrip().startswith("["):
        return False
    try:
        return parse_toml(line) == {"rates": {folder: {}}}
    except ValueError:
        return False


def _lines(found: Survey, threshold: Threshold, rates: Mapping[str, Mapping[str, float]]) -> list[str]:
    lines = [
        "# Values of this site for `sysdock checkup --site`, written by `sysdock threshold`.",
        "",
        "[ratio]",
        "# Jobs whose user time / cores / real time is below this wait most of the time.",
        f"threshold = {threshold.value!r}",
        f"method = {quoted(threshold.method)}",
        f"reason = {quoted(say(threshold.reason, 'en'))}",
        f"records = {found.histogram.records}",
        f"too_short = {found.short}",
        f"left_out = {found.without}",
    ]
    if found.first is not None and found.last is not None:
        lines += [f"from = {moment(found.first)}", f"until = {moment(found.last)}"]
    if threshold.split:
        lines.append(f"separation = {threshold.split.separation:.4f}")
    lines += ["", "[ratio.quantiles]"]
    for share in QUANTILES:
        value = found.histogram.quantile(share)
        if value is not None:
            lines.append(f"p{round(share * 100):02d} = {value:.4g}")
    lines += [
        "",
        "# Rates that the file systems reached when the administrator checked them, in B/s:",
        '# [rates."/work"]',
        "# read_bytes_s = 1.2e9",
        "# write_bytes_s = 0.9e9",
    ]
    for folder, values in rates.items():
        lines += ["", f"[rates.{quoted(folder)}]"]
        lines += [f"{_RATE_KEYS[name]} = {float(rate)!r}" for name, rate in values.items()]
    return lines


def moment(epoch_s: float) -> str:
    """A time as TOML and people have it, UTC."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def refuse_place(path: Path) -> None:
    """Raises a UserError where a new file of that name cannot be."""
    if path.exists() or path.is_symlink():
        raise _is_there(path)
    if not path.parent.is_dir():
        raise UserError("no such folder", "make it first", str(path.parent))


def write_new(path: Path, content: bytes) -> None:
    """Writes a file that must not exist, whole or not at all."""
    refuse_place(path)
    with new_file(path) as file:
        file.write(content)


@contextmanager
def new_file(path: Path, mode: int = 0o644) -> Iterator[BinaryIO]:
    """As `to_disk.new_file`; UserError where there is a file of that name by the end."""
    try:
        with to_disk.new_file(path, mode) as file:
            yield file
    except FileExistsError:
        raise _is_there(path) from None


def _is_there(path: Path) -> UserError:
    return UserError("already exists", "choose another name with -o, or remove it first", str(path))


def _is_number(value: Any) -> TypeGuard[float]:
    """Whether it is a number that a float holds; what is none compares with none."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return abs(value) <= sys.float_info.max


def _is_rate(value: Any) -> bool:
    return _is_number(value) and value > 0
