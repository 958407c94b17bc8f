"""Makes up a day of a cluster, as agents would have written it: to measure sizes and times with."""

from __future__ import annotations

import datetime
import json
import os
import re
from pathlib import Path

from sysdock import to_disk
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.own_folder import opened
from sysdock.recording.compacting import BATCHES
from sysdock.recording.lake import FORMAT, MARK, hash_of
from sysdock.recording.views import SETTINGS

_INTERVAL_NS = 10_000_000_000
_HOUR_NS = 3600 * 1_000_000_000
_CLUSTER = "made-up"
# A number from 0 to 1 that depends on its arguments only.
_RANDOM = "CREATE MACRO random_of(a, b) AS (hash(a, b, $seed) % 1000000) / 1000000.0"
_RANDOM_TO = "CREATE MACRO random_to(a, b, most) AS CAST(floor(random_of(a, b) * most) AS BIGINT)"

# Each node runs one job at a time; a job has phases in which it computes, reads or writes. Each counter
# varies by itself from interval to interval: no column follows from another one.
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
        p.node_number * 100000 + p.step AS moment
    FROM placed AS p
),

work AS (
    SELECT
        r.*,
        100000 + r.slot * 100 + r.step // (r.hours * 360) AS job,
        CASE WHEN r.phase > 0.8 THEN 4000 ELSE 20 END AS most,
        CASE WHEN r.phase > 0.9 THEN 4000 ELSE 0 END AS most_writes
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
    random_to(w.moment, 'reads', w.most) * 65536 AS read_bytes,
    random_to(w.moment, 'writes', w.most_writes) * 1048576 AS written_bytes,
    random_to(w.moment, 'reads', w.most) AS reads,
    random_to(w.moment, 'writes', w.most_writes) AS writes,
    random_to(w.moment, 'opens', w.most // 10) AS opens,
    random_to(w.moment, 'creates', w.most // 50) AS creates,
    random_to(w.moment, 'closes', w.most // 10) AS closes,
    random_to(w.moment, 'stats', w.most // 3) AS stats,
    random_to(w.moment, 'readdirs', w.most // 200) AS readdirs,
    random_to(w.moment, 'removes', w.most // 100) AS removes,
    0 AS renames,
    0 AS makes,
    random_to(w.moment, 'attributes', w.most // 500) AS attributes,
    random_to(w.moment, 'syncs', w.most // 300) AS syncs,
    random_to(w.moment, 'errors', w.most // 400) AS errors,
    random_to(w.moment, 'time', w.most * 21000) AS io_time_ns,
    random_to(w.moment, 'wait', w.most * 17000) AS io_wait_ns,
    random_to(w.moment, 'cpu', 2000000) * 5000 AS cpu_ns,
    random_to(w.moment, 'cpu wait', 1000) * 1000 AS cpu_wait_ns,
    random_to(w.moment, 'faults', w.most) AS minor_faults,
    0 AS major_faults,
    random_to(w.moment, 'disk', w.most) * 4096 AS disk_read_bytes,
    0 AS disk_written_bytes
FROM work AS w
ORDER BY w.ts_ns, w.node_number
"""
# Columns of a row that are counters.
COUNTERS = 22


def generate(lake: Path, *, nodes: int, jobs: int, hours: int, date: str, seed: int) -> int:
    """Writes a part for each hour into a lake that is new or has no such day; returns the number of rows."""
    try:
        day = datetime.date.fromisoformat(date)
    except ValueError:
        raise UserError(f"`{date}` is not a date", "write 2026-01-01", "--date") from None
    to_disk.make_folder(lake)
    with opened(lake) as place:
        folder = place / "job_samples" / f"date={day}" / f"cluster={_CLUSTER}"
        if folder.exists():
            raise UserError("this day is there already", "give another lake, or --date", str(folder))
        folder.mkdir(parents=True)
        (place / MARK).write_text(json.dumps({"format": FORMAT}))
        return _fill(folder, day, nodes, jobs, hours, seed)


def _fill(folder: Path, day: datetime.date, nodes: int, jobs: int, hours: int, seed: int) -> int:
    from sysdock.engine import duckdb

    day_ns = int(datetime.datetime.combine(day, datetime.time(), datetime.UTC).timestamp()) * 1_000_000_000
    number = nodes * 360
    with duckdb.connect(config=SETTINGS) as connection:
        connection.execute(_RANDOM.replace("$seed", str(int(seed))))
        connection.execute(_RANDOM_TO)
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
            name = f"part-{from_ns // 1_000_000_000}-00000000-{hour}-{number}-{hash_of(made)[:16]}.parquet"
            os.rename(made, folder / name)
    return hours * number


def _columns() -> list[str]:
    """All columns of the table, of its types: what is not made up is not known."""
    made = set(re.findall(r'(?:AS |w\.)"?(\w+)"?(?:,|\n)', _SAMPLES[_SAMPLES.rindex("SELECT") :]))

    def value(name: str) -> str:
        return f'"{name}"' if name in made else "NULL"

    columns = Library().table("job_samples").columns
    return [f'CAST({value(c.name)} AS {c.sql_type}) AS "{c.name}"' for c in columns]
