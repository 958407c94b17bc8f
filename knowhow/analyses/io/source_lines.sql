-- Calls by source line
-- The lines of the program's own source code that made the calls on files: count, bytes and time, by the innermost frame of each call's
-- stack that is neither in a system library nor in an interpreter or its modules. Calls without a stack are left out.
-- needs:  calls, paths, stack_places
-- column: source VARCHAR      Source file and line; empty without debug information.
-- column: function VARCHAR    Function that contains the line.
-- column: object VARCHAR      Executable, library or Python file that contains it.
-- column: calls BIGINT        Number of calls.
-- column: errors BIGINT       Calls that returned an error.
-- column: bytes BIGINT        Bytes transferred [B].
-- column: time_ns BIGINT      Time in the calls [ns].
-- column: main_call VARCHAR   The system call that took most of the time; without times, the most frequent one.
-- column: main_path VARCHAR   The file, among those used by single calls, that took most of the time.
-- sums:   calls, errors, bytes, time_ns
-- match:  source, function, object
-- chart:  bars x=source y=time_ns title="Time by source line" title_ja="ソースの行ごとの所要時間"
-- chart:  bars x=source y=bytes title="Bytes by source line" title_ja="ソースの行ごとのバイト数"
-- tags:   calls, time, bytes
WITH used AS (
    SELECT stack_id, call, path_id, count(*) AS number, count(errno) AS failed, sum(dur_ns) AS ns, sum(transferred_bytes) AS moved
    FROM calls
    WHERE stack_id IS NOT NULL
    GROUP BY stack_id, call, path_id
), placed AS (
    SELECT p.source, p.function, p.object, u.call, u.path_id, sum(u.number) AS number, sum(u.failed) AS failed, sum(u.ns) AS ns,
        sum(u.moved) AS moved
    FROM used AS u
    JOIN stack_places AS p ON p.stack_id = u.stack_id
    GROUP BY p.source, p.function, p.object, u.call, u.path_id
), lines AS (
    SELECT source, function, object, sum(number) AS number, sum(failed) AS failed, sum(moved) AS moved, sum(ns) AS ns,
        arg_max(call, coalesce(ns, number)) AS call, arg_max(path_id, coalesce(ns, number)) AS path_id
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
    l.call AS main_call,
    f.path AS main_path
FROM lines AS l
LEFT JOIN paths AS f ON f.path_id = l.path_id
ORDER BY coalesce(time_ns, 0) DESC, calls DESC, l.object, l.function, l.source
