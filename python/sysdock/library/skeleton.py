"""Writes the beginnings of an analysis or a rule: two files that work as they are."""

from __future__ import annotations

import re
from pathlib import Path

from sysdock.errors import UserError

_NAME = re.compile(r"[a-z][a-z0-9_]*(/[a-z][a-z0-9_]*)*")

_ANALYSIS_SQL = """\
-- {title}
-- One row per system call. Say here, in plain words, which question it answers.
-- needs:  calls
-- param:  min_dur_ns BIGINT = 0   Leave out shorter calls [ns].
-- column: call VARCHAR     Name of the system call.
-- column: calls BIGINT     Number of calls.
-- column: time_ns BIGINT   Time in the calls [ns].
-- chart:  bars x=call y=time_ns
-- tags:   calls, time
SELECT
    call,
    count(*) AS calls,
    CAST(sum(dur_ns) AS BIGINT) AS time_ns
FROM calls
WHERE coalesce(dur_ns, 0) >= $min_dur_ns
GROUP BY call
ORDER BY coalesce(time_ns, 0) DESC, call
"""

_ANALYSIS_PAGE = """\
# {title}

Which system calls took the time. Say here what the answer means and how to read it.

## Example

```strace
1 1700000000.000000 openat(AT_FDCWD</tmp>, "a", O_RDONLY) = 3</tmp/a> <0.000020>
1 1700000000.001000 read(3</tmp/a>, "x"..., 4096) = 100 <0.000010>
1 1700000000.002000 read(3</tmp/a>, "", 4096) = 0 <0.000005>
```

```params
min_dur_ns = 6000
```

| call | calls | time_ns |
|---|---|---|
| openat | 1 | 20000 |
| read | 1 | 10000 |
"""

_RULE_SQL = """\
-- {title}
-- Time in calls that wait until data is on disk. Say here, in plain words, what the rule looks for.
-- needs:  calls, totals
-- param:  limit_ns BIGINT = 100000000   Time from which on it is a finding [ns].
-- column: subject VARCHAR       What it is about; here all files together, so there is none.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Calls that wait.
-- column: limit_value DOUBLE    From which on it is a finding; here it is the time that counts.
-- column: cost_ns BIGINT        Time in them [ns].
-- column: gain_ns BIGINT        What could be saved at most [ns].
-- column: certainty VARCHAR     high, medium or low.
-- column: calls BIGINT          Calls checked.
-- says: finding en  {value} calls waited {cost_ns} for the disk.
-- says: finding ja  {value} 回の呼び出しが合計 {cost_ns} ディスクを待ちました。
-- says: ok en       Checked {calls} calls: those that wait for the disk took {cost_ns}.
-- says: ok ja       システムコール {calls} 回を調べました。ディスク待ちは合計 {cost_ns} です。
-- says: unknown en  The log holds no durations of calls.
-- says: unknown ja  ログに呼び出しの所要時間がありません。
-- evidence: io/files --call fsync,fdatasync,sync
-- tags:   time
WITH waits AS (
    SELECT count(*) AS calls, CAST(coalesce(sum(dur_ns), 0) AS BIGINT) AS time_ns
    FROM calls
    WHERE class = 'sync'
), judged AS (
    SELECT w.calls AS waits, w.time_ns, t.calls,
        CASE
            WHEN t.calls = 0 OR NOT t.has_durations THEN 'unknown'
            WHEN w.time_ns > $limit_ns THEN 'finding'
            ELSE 'ok'
        END AS status
    FROM waits AS w
    CROSS JOIN totals AS t
)
SELECT
    CAST(NULL AS VARCHAR) AS subject,
    status,
    CASE WHEN status <> 'unknown' THEN CAST(waits AS DOUBLE) END AS value,
    CAST(NULL AS DOUBLE) AS limit_value,
    CASE WHEN status <> 'unknown' THEN time_ns END AS cost_ns,
    CASE WHEN status = 'finding' THEN time_ns END AS gain_ns,
    CASE WHEN status = 'finding' THEN 'medium' END AS certainty,
    calls
FROM judged
"""

_RULE_PAGE = """\
# {title}

## What it finds

Programs that wait long until their data is on disk.

## Why it matters

Each such call stops the program until the disk has answered.

## Example

A finding: two calls waited 200 ms.

```strace
1 1700000000.000000 fsync(3</tmp/a>) = 0 <0.150000>
1 1700000001.000000 fsync(3</tmp/a>) = 0 <0.050000>
```

| subject | status | cost_ns | gain_ns |
|---|---|---|---|
|  | finding | 200000000 | 200000000 |

No finding: the wait was short.

```strace
1 1700000000.000000 fsync(3</tmp/a>) = 0 <0.000100>
```

| subject | status | cost_ns | gain_ns |
|---|---|---|---|
|  | ok | 100000 |  |

Unknown: the log was recorded without `-T`, so it is unknown how long the call took.

```strace
1 1700000000.000000 fsync(3</tmp/a>) = 0
```

| subject | status | cost_ns | gain_ns |
|---|---|---|---|
|  | unknown |  |  |

## What to do

Write more between two of these calls, or make one of them at the end.

## How sure it is

- medium: each wait was recorded with its time, but not whether the program needs so many.

## When to ignore it

When losing the data would be worse than waiting, as in a database.

# {title} (日本語の題)

## 何を見つけるか

データがディスクに書かれるまで長く待つプログラム。

## なぜ問題か

この種の呼び出しのたびに、ディスクが応答するまでプログラムが止まります。

## 例

上の例では、2 回の呼び出しで合計 200 ミリ秒待っています。

## どうするか

呼び出しの間により多く書くか、最後に一度だけ呼び出してください。

## どれだけ確かか

- medium: 待ちは 1 回ずつ時間とともに記録されているが、これほどの回数が必要かどうかはわからない。

## 無視してよい場合

データベースのように、データを失うほうが待つより困る場合。
"""


def write_skeleton(kind: str, name: str, into: Path) -> tuple[Path, Path]:
    """Writes the .sql and .md file of an `analysis` or `rule` into the folder `into`; returns their paths."""
    if not _NAME.fullmatch(name):
        hint = "use small letters, digits and `_`, with the area in front: io/largest_files"
        raise UserError(f"`{name}` is not a name for know-how", hint)
    base = into / ("analyses" if kind == "analysis" else "rules")
    sql, page = base / f"{name}.sql", base / f"{name}.md"
    for path in (sql, page):
        if path.exists():
            raise UserError("already exists", "choose another name, or change that file", str(path))
    title = name.rsplit("/", 1)[-1].replace("_", " ").capitalize()
    texts = (_ANALYSIS_SQL, _ANALYSIS_PAGE) if kind == "analysis" else (_RULE_SQL, _RULE_PAGE)
    try:
        sql.parent.mkdir(parents=True, exist_ok=True)
        for path, text in zip((sql, page), texts, strict=True):
            path.write_text(text.replace("{title}", title), "utf-8")
    except OSError as error:
        raise UserError(f"cannot be written: {error.strerror}", place=str(sql)) from None
    return sql, page
