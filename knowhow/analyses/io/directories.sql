-- I/O by directory
-- One row per directory: calls on the files directly in it, and on the directory itself. Calls without a file, or on
-- a file whose location is not in the log, are left out. A copy call is counted for the file it reads from.
-- needs:  file_use, paths
-- column: directory VARCHAR   Directory.
-- column: files BIGINT        Files directly in it that were used.
-- column: calls BIGINT        Number of calls.
-- column: errors BIGINT       Calls that returned an error.
-- column: time_ns BIGINT      Time in the calls [ns].
-- column: bytes BIGINT        Bytes transferred [B].
-- sums:   calls, errors, time_ns, bytes
-- match:  directory
-- chart:  icicle x=directory y=time_ns title="Time in calls" title_ja="所要時間"
-- chart:  icicle x=directory y=bytes title="Bytes transferred" title_ja="バイト数"
-- tags:   files, calls, time, bytes, metadata
WITH used AS (
    SELECT path_id, sum(calls) AS number, sum(errors) AS failed, sum(time_ns) AS ns, sum(transferred_bytes) AS moved
    FROM file_use
    GROUP BY path_id
), placed AS (
    SELECT CASE WHEN p.kind = 'directory' AND p.path LIKE '/%' THEN p.path ELSE p.directory END AS directory,
        p.kind, u.number, u.failed, u.ns, u.moved
    FROM used AS u
    JOIN paths AS p ON p.path_id = u.path_id
)
SELECT
    directory,
    count(*) FILTER (WHERE kind <> 'directory') AS files,
    CAST(sum(number) AS BIGINT) AS calls,
    CAST(sum(failed) AS BIGINT) AS errors,
    CAST(sum(ns) AS BIGINT) AS time_ns,
    CAST(sum(moved) AS BIGINT) AS bytes
FROM placed
WHERE directory IS NOT NULL
GROUP BY directory
ORDER BY coalesce(time_ns, 0) DESC, calls DESC, directory
