-- Calls by source line
-- Which lines of the program's own source made the calls about files: number, bytes and time, by the innermost frame of each call's
-- stack that lies neither in a library of the system nor in an interpreter. Calls without a stack are left out.
-- needs:  calls, stack_places
-- column: source VARCHAR      Source file and line; empty without debug information.
-- column: function VARCHAR    Function that the line is in.
-- column: object VARCHAR      Executable or library that holds it.
-- column: calls BIGINT        Number of calls.
-- column: errors BIGINT       Calls that returned an error.
-- column: bytes BIGINT        Bytes moved [B].
-- column: time_ns BIGINT      Time in the calls [ns].
-- column: share DOUBLE        Part of the time of all calls with a stack [%].
-- column: files BIGINT        Files worked on.
-- column: main_call VARCHAR   The system call that took most of the time, or came most often.
-- chart:  bars x=source y=time_ns title="Time by source line" title_ja="ソースの行ごとの所要時間"
-- chart:  bars x=source y=bytes title="Bytes by source line" title_ja="ソースの行ごとのバイト数"
-- tags:   calls, time, bytes
WITH used AS (
    SELECT stack_id, call, path_id, count(*) AS number, count(errno) AS failed, sum(dur_ns) AS ns, sum(moved_bytes) AS moved
    FROM calls
    WHERE stack_id IS NOT NULL
    GROUP BY stack_id, call, path_id
), placed AS (
    SELECT p.source, p.function, p.object, u.*
    FROM used AS u
    JOIN stack_places AS p ON p.stack_id = u.stack_id
), by_call AS (
    SELECT source, function, object, call, sum(number) AS number, sum(ns) AS ns
    FROM placed
    GROUP BY source, function, object, call
), main AS (
    SELECT source, function, object, arg_max(call, (coalesce(ns, 0), number, call)) AS call
    FROM by_call
    GROUP BY source, function, object
), lines AS (
    SELECT source, function, object, sum(number) AS number, sum(failed) AS failed, sum(moved) AS moved, sum(ns) AS ns,
        count(DISTINCT path_id) AS files
    FROM placed
    GROUP BY source, function, object
)
SELECT
    l.source,
    l.function,
    l.object,
    CAST(l.number AS BIGINT) AS calls,
    CAST(l.failed AS BIGINT) AS errors,
    CAST(l.moved AS BIGINT) AS bytes,
    CAST(l.ns AS BIGINT) AS time_ns,
    round(CAST(1e2 * l.ns / nullif(sum(l.ns) OVER (), 0) AS DOUBLE), 1) AS share,
    l.files,
    m.call AS main_call
FROM lines AS l
JOIN main AS m ON m.source IS NOT DISTINCT FROM l.source AND m.function IS NOT DISTINCT FROM l.function
    AND m.object IS NOT DISTINCT FROM l.object
ORDER BY coalesce(l.ns, 0) DESC, calls DESC, l.object, l.function, l.source
