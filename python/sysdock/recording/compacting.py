"""Merges the many small parts of a lake into few that are sorted by job, and removes what is too old.

A folder of parts is merged in these steps, each of which leaves a lake that can be read:

1. The new part is written under a name that readers do not take (`_new-part-...`).
2. `_swap.json` names the new part and the old ones: from now on readers take the new one.
3. The new part gets its name, the old ones go, and `_swap.json` last.

Who finds a `_swap.json` goes on with step 3. Batches that landed twice are there once afterwards: the footer
of each part names those that it holds (`sysdock.batches`).
"""

from __future__ import annotations

import datetime
import fcntl
import json
import os
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sysdock import to_disk
from sysdock.errors import UserError
from sysdock.recording.hours import add_up, is_added_up, sums_folder
from sysdock.recording.lake import (
    PART,
    SAMPLES,
    SUMS,
    SWAP,
    LakePart,
    folders_of,
    hash_of,
    parts_of,
    read_swap,
    scan,
)
from sysdock.recording.views import SETTINGS, literal
from sysdock.sentences import fact, say

if TYPE_CHECKING:
    import duckdb

BATCHES = "sysdock.batches"
# By what the rows of a table are sorted: what is asked for together lies together.
ORDER = {
    "job_samples": "job_id, node, counter_group, target, ts_ns",
    "job_totals": "ended_ns, job_id, node",
    "job_files": "job_id, node, io_time_ns DESC",
    "agent_batches": "node, agent, sequence",
}
_ROWS_PER_GROUP = 122_880
_UNFINISHED = ("_writing-", "_merging-", "_new-")
_ABANDONED_S = 6 * 3600

Ranges = dict[str, list[tuple[int, int]]]


@dataclass
class Done:
    """The result of a run."""

    folders: int = 0
    parts_before: int = 0
    parts_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    rows: int = 0
    doubled_rows: int = 0
    summed_days: int = 0
    removed_days: int = 0
    damaged: list[str] = field(default_factory=list)


def compact(
    lake: Path,
    *,
    today: bool = False,
    keep_days: int | None = None,
    keep_sums_days: int | None = None,
    memory: str = "1GB",
    progress: Callable[[str], None] = lambda text: None,
) -> Done:
    """Merges the parts of each day that is over, `today` of this one, too, and adds its samples up by hour.

    Keeps the last `keep_days` of all but the sums, and `keep_sums_days` of those. The samples of a day are
    added up before they go.
    """
    done = Done()
    for _, _, folder in folders_of(lake):
        with _errors(folder), _alone(folder) as is_alone:
            if is_alone:
                # Whatever cannot be read because of it, can be read then.
                finish_swap(folder)
    now = datetime.datetime.now(datetime.UTC).date()
    first_sums = datetime.date.min
    if keep_sums_days is not None:
        first_sums = now - datetime.timedelta(days=keep_sums_days)
    if keep_days is not None:
        first = now - datetime.timedelta(days=keep_days)
        _add_up_days(lake, (first_sums, first - datetime.timedelta(days=1)), memory, done)
        _remove_days(lake, first, done, lambda table: table != SUMS)
    if keep_sums_days is not None:
        _remove_days(lake, first_sums, done, lambda table: table == SUMS)
    folders: dict[Path, LakePart] = {}
    for part in scan(lake):
        if part.table in ORDER and (today or part.date < now):
            folders.setdefault(part.path.parent, part)
    for folder, part in folders.items():
        progress(str(folder.relative_to(lake)))
        with _errors(folder), _alone(folder) as is_alone:
            if is_alone and _compact_folder(part, folder, memory, done) and part.table == SAMPLES:
                _remove_abandoned(sums_folder(lake, part))
                done.summed_days += add_up(lake, part, memory)
    return done


def _compact_folder(example: LakePart, folder: Path, memory: str, done: Done) -> bool:
    """Merges the parts of a folder; whether none of them is damaged."""
    finish_swap(folder)
    _remove_abandoned(folder)
    parts = list(parts_of(example.table, example.date, folder))
    whole = [part for part in parts if part.damage() is None]
    done.damaged += [str(part.path) for part in parts if part not in whole]
    if len(whole) < 2:
        return len(whole) == len(parts)
    new, doubled = _merge(example.table, folder, whole, memory)
    add = new.name.removeprefix("_new-")
    swap = {"remove": [part.path.name for part in whole], "add": [add]}
    to_disk.write(folder / SWAP, json.dumps(swap).encode())
    done.bytes_after += new.stat().st_size
    finish_swap(folder)
    done.folders += 1
    done.parts_before += len(whole)
    done.parts_after += 1
    done.bytes_before += sum(part.bytes for part in whole)
    done.rows += int(PART.match(add)[4])  # type: ignore[index]
    done.doubled_rows += doubled
    return len(whole) == len(parts)


def _merge(table: str, folder: Path, parts: list[LakePart], memory: str) -> tuple[Path, int]:
    """Writes the new part; returns its path and how many rows were there twice."""
    from sysdock.engine import duckdb

    number = time.time_ns() // 1000
    unfinished = folder / f"_merging-{number}"
    spill = folder / f"_merging-{number}.spill"
    config = {**SETTINGS, "memory_limit": memory, "temp_directory": str(spill)}
    try:
        with duckdb.connect(config=config) as connection:
            held = {part.path.name: _batches(connection, part.path) for part in parts}
            doubled, ranges = _doubled(held)
            files = ", ".join(literal(str(part.path)) for part in parts)
            source = f"read_parquet([{files}], filename=true, union_by_name=true, hive_partitioning=false)"
            columns = "filename VARCHAR, agent VARCHAR, first BIGINT, last BIGINT"
            connection.execute(f"CREATE TABLE doubled ({columns})")
            if doubled:
                connection.executemany("INSERT INTO doubled VALUES ($1, $2, $3, $4)", doubled)
            where = (
                "NOT EXISTS (FROM doubled AS d WHERE d.agent = t.agent"
                " AND t.sequence BETWEEN d.first AND d.last AND ends_with(t.filename, d.filename))"
            )
            select = f"SELECT t.* EXCLUDE (filename) FROM {source} AS t WHERE {where} ORDER BY {ORDER[table]}"
            connection.execute(
                f"COPY ({select}) TO {literal(str(unfinished))} (FORMAT parquet, COMPRESSION zstd,"
                f" PARQUET_VERSION v2, ROW_GROUP_SIZE {_ROWS_PER_GROUP},"
                f" KV_METADATA {{{literal(BATCHES)}: {literal(json.dumps(ranges))}}})"
            )
            [(rows,)] = connection.execute(
                f"SELECT count(*) FROM read_parquet({literal(str(unfinished))})"
            ).fetchall()
        stated = sum(part.rows for part in parts)
        if not doubled and rows != stated:
            raise UserError(f"{rows:,} rows were merged of {stated:,}", None, str(folder))
        to_disk.sync(unfinished)
        digest = hash_of(unfinished)
        seconds = min(int(PART.match(part.path.name.removeprefix("_new-"))[1]) for part in parts)  # type: ignore[index]
        new = folder / f"_new-part-{seconds}-merged-{number}-{rows}-{digest[:16]}.parquet"
        os.rename(unfinished, new)
        return new, stated - rows
    finally:
        unfinished.unlink(missing_ok=True)
        shutil.rmtree(spill, ignore_errors=True)


def _batches(connection: duckdb.DuckDBPyConnection, path: Path) -> Ranges:
    """The batches that a part holds."""
    sql = f"SELECT value FROM parquet_kv_metadata({literal(str(path))}) WHERE key = $key"
    found = connection.execute(sql, {"key": BATCHES.encode()}).fetchall()
    try:
        listed = json.loads(found[0][0]) if found else {}
        return {str(agent): [_range(*one) for one in own] for agent, own in listed.items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise UserError(say(fact("lake/wrong_list_of_batches"), "en"), None, str(path)) from None


def _range(first: int, last: int) -> tuple[int, int]:
    """A range as a footer lists it; ValueError: it is none."""
    if not all(isinstance(number, int) and abs(number) < 1 << 62 for number in (first, last)):
        raise ValueError
    return first, last


def _doubled(held: dict[str, Ranges]) -> tuple[list[tuple[str, str, int, int]], Ranges]:
    """Batches that an earlier part holds as well, and all batches, both as ranges."""
    doubled = []
    union: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for name, ranges in held.items():
        for agent, own in ranges.items():
            for first, last in own:
                for other_first, other_last in union[agent]:
                    both = max(first, other_first), min(last, other_last)
                    if both[0] <= both[1]:
                        doubled.append((name, agent, *both))
        for agent, own in ranges.items():
            union[agent] = _joined(union[agent] + [(first, last) for first, last in own])
    return doubled, dict(union)


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges without gaps and overlaps between them."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def finish_swap(folder: Path) -> None:
    """Goes on with a merge whose new part is written; nothing where there is none."""
    try:
        swap = read_swap(folder)
    except UserError:
        # It is replaced in one step, so the disk is at fault; the old parts are all there.
        os.rename(folder / SWAP, folder / f"{SWAP}.damaged")
        return
    if not swap:
        return
    for name in swap["add"]:
        if (folder / f"_new-{name}").exists():
            os.rename(folder / f"_new-{name}", folder / name)
    to_disk.sync(folder)
    for name in swap["remove"]:
        (folder / name).unlink(missing_ok=True)
    to_disk.sync(folder)
    (folder / SWAP).unlink()


def _remove_abandoned(folder: Path) -> None:
    """Removes what writers that were killed have left."""
    for path in folder.iterdir():
        if path.name.startswith(_UNFINISHED) and time.time() - path.stat().st_mtime > _ABANDONED_S:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _add_up_days(lake: Path, days: tuple[datetime.date, datetime.date], memory: str, done: Done) -> None:
    """Adds the samples of days up whose sums are not there; those of damaged parts are lost, and reported."""
    folders = {part.path.parent: part for part in scan(lake, days) if part.table == SAMPLES}
    for folder, part in folders.items():
        with _errors(folder), _alone(folder) as is_alone:
            if is_alone and not is_added_up(lake, part):
                # Batches that landed twice are there once afterwards.
                _compact_folder(part, folder, memory, done)
                done.summed_days += add_up(lake, part, memory, without_damaged=True)


def _remove_days(lake: Path, first: datetime.date, done: Done, is_meant: Callable[[str], bool]) -> None:
    old = {
        part.path.parent.parent
        for part in scan(lake, (datetime.date.min, first - datetime.timedelta(days=1)))
        if is_meant(part.table)
    }
    for folder in sorted(old):
        # A name that no reader takes, in one step; then its content.
        aside = folder.with_name(f"_old-{folder.name}")
        os.rename(folder, aside)
        shutil.rmtree(aside)
    done.removed_days += len({folder.name for folder in old})


@contextmanager
def _errors(folder: Path) -> Iterator[None]:
    """A full disk, or a part that the engine cannot read: an error with its place. No part is lost."""
    from sysdock.engine import duckdb

    try:
        yield
    except duckdb.Error as error:
        why = str(error).strip().partition("\n")[0]
        raise UserError(say(fact("lake/cannot_be_merged", why=why), "en"), None, str(folder)) from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        place = str(error.filename or folder)
        raise UserError(say(fact("lake/cannot_be_merged", why=why), "en"), None, place) from None


def become_owner(lake: Path) -> Path:
    """As root, goes on as the user to whom a lake belongs, for good; returns the lake's path from there.

    What root wrote into it, a collector with a user of its own could not read.
    """
    owner = lake.stat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        return lake
    # The way to it may be one that only root can go (/var/lib/private).
    os.chdir(lake)
    try:
        os.setgroups([])
        os.setresgid(owner.st_gid, owner.st_gid, owner.st_gid)
        os.setresuid(owner.st_uid, owner.st_uid, owner.st_uid)
    except OSError as error:
        what = fact("lake/cannot_continue_as_owner", uid=owner.st_uid, why=str(error.strerror))
        raise UserError(say(what, "en"), None, str(lake)) from None
    return Path()


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Whether no one else merges in this folder."""
    handle = os.open(folder / "_lock", os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
