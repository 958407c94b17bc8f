"""Adds up the samples of a day of a lake by hour: `job_hours`, from which years are answered.

The part of a day is replaced, never changed: the new one gets its name when it is whole, then the old one
goes. A reader takes the one whose name says that it has the samples that are there.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from sysdock import to_disk
from sysdock.library import Library
from sysdock.recording.lake import SAMPLES, SUMS, LakePart, digest_of, hash_of, parts_of
from sysdock.recording.views import SETTINGS, literal, quoted

_ORDER = "hour_ns, cluster, job_id, counter_group, target"


def sums_folder(lake: Path, samples: LakePart) -> Path:
    """Folder of the sums for the day and cluster of a part of `job_samples`; it is created."""
    folder = lake / SUMS / samples.path.parent.relative_to(lake / SAMPLES)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def is_added_up(lake: Path, example: LakePart) -> bool:
    """Whether the sums of the day and cluster of `example` are those of all samples that are there."""
    digest = digest_of(list(parts_of(SAMPLES, example.date, example.path.parent)))
    return any(part.writer == digest for part in parts_of(SUMS, example.date, sums_folder(lake, example)))


def add_up(lake: Path, example: LakePart, memory: str, *, without_damaged: bool = False) -> bool:
    """Writes the sums of the day and cluster of `example`, a part of its samples; False: they are there."""
    if is_added_up(lake, example):
        return False
    folder = sums_folder(lake, example)
    samples = list(parts_of(SAMPLES, example.date, example.path.parent))
    if without_damaged:
        samples = [part for part in samples if part.damage() is None]
    if not samples:
        return False
    digest = digest_of(samples)
    old = list(parts_of(SUMS, example.date, folder))
    new, rows = _write(folder, samples, memory)
    name = f"part-{int(time.time())}-{digest}-{time.time_ns() // 1000}-{rows}-{hash_of(new)[:16]}.parquet"
    os.rename(new, folder / name)
    to_disk.sync(folder)
    for part in old:
        part.path.unlink(missing_ok=True)
    return True


def _write(folder: Path, samples: list[LakePart], memory: str) -> tuple[Path, int]:
    """A file with the sums, whose name no reader takes, and how many rows it has."""
    from sysdock.engine import duckdb

    table = Library().table(SUMS)
    new, spill = folder / f"_merging-{os.getpid()}", folder / f"_merging-{os.getpid()}.spill"
    files = ", ".join(literal(str(part.path)) for part in samples)
    columns = ", ".join(f"CAST({quoted(c.name)} AS {c.sql_type}) AS {quoted(c.name)}" for c in table.columns)
    config = {**SETTINGS, "memory_limit": memory, "temp_directory": str(spill)}
    try:
        with duckdb.connect(config=config) as connection:
            connection.execute(
                f"CREATE TEMP VIEW {SAMPLES} AS SELECT * FROM"
                f" read_parquet([{files}], union_by_name=true, hive_partitioning=false)"
            )
            [(rows,)] = connection.execute(
                f"COPY (SELECT {columns} FROM ({table.sql}) ORDER BY {_ORDER}) TO {literal(str(new))}"
                " (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2)"
            ).fetchall()
        to_disk.sync(new)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    finally:
        shutil.rmtree(spill, ignore_errors=True)
    return new, rows
