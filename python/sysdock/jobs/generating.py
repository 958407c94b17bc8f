"""Makes up a day of a cluster, as agents would have written it: to measure sizes and times with, and to try."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path

from sysdock.errors import UserError
from sysdock.jobs.compacting import BATCHES
from sysdock.library import Library
from sysdock.recording.lake import hash_of
from sysdock.recording.views import SETTINGS

_INTERVAL_NS = 10_000_000_000
_HOUR_NS = 3600 * 1_000_000_000
_CLUSTER = "made-up"
# A number from 0 to 1 that depends on its arguments only.
_RANDOM = "CREATE MACRO random_of(a, b) AS (hash(a, b, $seed) % 1000000) / 1000000.0"

# Each node runs one job at a time; a job has phases in which it computes, reads or writes.
_SAMPLES = """
WITH steps AS (
    SELECT unnest(range($from_ns, $to_ns, 10000000000)) + 10000000000 AS ts_ns
),

nodes AS (
    SELECT unnest(range(0, $nodes)) AS node_number
),

placed AS (
    SELECT
        s.ts_ns,
        n.node_number,
        (n.node_number * $jobs) // $nodes AS slot,
        (s.ts_ns - $day_ns - 1) // 10000000000 AS step
    FROM steps AS s
    CROSS JOIN nodes AS n
),

running AS (
    SELECT
        p.*,
        1 + CAST(floor(random_of(p.slot, 'length') * 12) AS BIGINT) AS hours,
        random_of(p.slot * 1000 + p.step // 60, 'phase') AS phase,
        random_of(p.node_number * 100000 + p.step, 'noise') AS noise
    FROM placed AS p
),

work AS (
    SELECT
        r.*,
        100000 + r.slot * 100 + r.step // (r.hours * 360) AS job,
        CASE WHEN r.phase > 0.8 THEN CAST(floor(r.noise * 4000) AS BIGINT) ELSE CAST(floor(r.noise * 20) AS BIGINT) END AS calls
    FROM running AS r
)

SELECT
    w.ts_ns,
    10000000000 AS interval_ns,
    'made-up' AS cluster,
    concat('node', lpad(CAST(w.node_number AS VARCHAR), 5, '0')) AS node,
    lpad(CAST(w.node_number AS VARCHAR), 16, '0') AS agent,
    w.step + 1 AS sequence,
    CAST(w.job AS VARCHAR) AS job_id,
    concat('user', w.slot % 97) AS "user",
    concat('case', w.slot) AS name,
    'files' AS counter_group,
    '/work' AS target,
    'lustre' AS file_system,
    w.calls * 65536 AS read_bytes,
    CASE WHEN w.phase > 0.9 THEN w.calls * 1048576 ELSE 0 END AS written_bytes,
    w.calls AS reads,
    CASE WHEN w.phase > 0.9 THEN w.calls ELSE 0 END AS writes,
    w.calls // 10 AS opens,
    w.calls // 50 AS creates,
    w.calls // 10 AS closes,
    w.calls // 3 AS stats,
    w.calls // 200 AS readdirs,
    w.calls // 100 AS removes,
    0 AS renames,
    0 AS makes,
    w.calls // 500 AS attributes,
    w.calls // 300 AS syncs,
    w.calls // 400 AS errors,
    w.calls * 21000 + CAST(floor(w.noise * 100000) AS BIGINT) AS io_time_ns,
    w.calls * 17000 AS io_wait_ns,
    CAST(floor((0.9 + w.noise / 10) * 40) * 10000000000 / 40 AS BIGINT) AS cpu_ns,
    CAST(floor(w.noise * 1000) * 1000 AS BIGINT) AS cpu_wait_ns,
    w.calls * 3 AS minor_faults,
    0 AS major_faults,
    w.calls * 65536 AS disk_read_bytes,
    0 AS disk_written_bytes
FROM work AS w
ORDER BY w.ts_ns, w.node_number
"""


def generate(lake: Path, *, nodes: int, jobs: int, hours: int, date: str, seed: int) -> int:
    """Writes a part for each hour into a lake that is new or has no such day; returns the number of rows."""
    import duckdb

    try:
        day = datetime.date.fromisoformat(date)
    except ValueError:
        raise UserError(f"`{date}` is not a date", "write 2026-01-01", "--date") from None
    folder = lake / "job_samples" / f"date={day}" / f"cluster={_CLUSTER}"
    if folder.exists():
        raise UserError("this day is there already", "give another lake, or --date", str(folder))
    folder.mkdir(parents=True)
    day_ns = int(datetime.datetime.combine(day, datetime.time(), datetime.UTC).timestamp()) * 1_000_000_000
    rows = 0
    with duckdb.connect(config=SETTINGS) as connection:
        connection.execute(_RANDOM.replace("$seed", str(int(seed))))
        columns = ", ".join(_columns())
        for hour in range(hours):
            from_ns = day_ns + hour * _HOUR_NS
            values = {
                "from_ns": from_ns,
                "to_ns": from_ns + _HOUR_NS,
                "day_ns": day_ns,
                "nodes": nodes,
                "jobs": jobs,
            }
            sql = _SAMPLES
            for name, value in values.items():
                sql = sql.replace(f"${name}", str(value))
            first, last = hour * 360 + 1, (hour + 1) * 360
            held = json.dumps({f"{node:016}": [[first, last]] for node in range(nodes)})
            made = folder / f"_making-{hour}"
            connection.execute(
                f"COPY (SELECT {columns} FROM ({sql})) TO '{made}' (FORMAT parquet, COMPRESSION zstd,"
                f" PARQUET_VERSION v2, ROW_GROUP_SIZE 122880, KV_METADATA {{'{BATCHES}': '{held}'}})"
            )
            number = nodes * 360
            name = f"part-{from_ns // 1_000_000_000}-00000000-{hour}-{number}-{hash_of(made)[:16]}.parquet"
            os.rename(made, folder / name)
            rows += number
    return rows


def _columns() -> list[str]:
    """All columns of the table, of its types: what is not made up is not known."""
    made = _SAMPLES[_SAMPLES.rindex("SELECT") :]
    found = []
    for column in Library().table("job_samples").columns:
        is_made = (
            f" AS {column.name}," in made or f' AS "{column.name}",' in made or f" AS {column.name}\n" in made
        )
        is_made = is_made or f"w.{column.name}," in made
        value = f'"{column.name}"' if is_made else "NULL"
        found.append(f'CAST({value} AS {column.sql_type}) AS "{column.name}"')
    return found
