-- I/O by file
-- One row per file and call: count, result, duration, bytes transferred.
-- Calls without a file, or on a file that the log does not name, are left out. A copy call (sendfile, splice,
-- copy_file_range, tee) counts in full for both of its files: sums over files include it twice.
-- needs:  calls, object_use, paths
-- param:  call VARCHAR = ''         Only this call; empty for all.
-- param:  per_call BOOLEAN = true   One row per file and call; false: one row per file, for all its calls together.
-- column: path VARCHAR        File or other object; for a copy call, both the one that is read and the one that is written.
-- column: call VARCHAR        Name of the system call; `all` if the calls are combined.
-- column: calls BIGINT        Number of calls.
-- column: ok BIGINT           Calls that returned without an error.
-- column: errors BIGINT       Calls that returned an error.
-- column: time_ns BIGINT      Time in the calls [ns].
-- column: avg_ns BIGINT       Average time of a call [ns].
-- column: min_ns BIGINT       Shortest call [ns].
-- column: max_ns BIGINT       Longest call [ns].
-- column: bytes BIGINT        Bytes transferred [B].
-- column: avg_bytes DOUBLE    Average bytes of a call that transferred or could have transferred data [B].
-- column: min_bytes BIGINT    Fewest bytes of a call [B].
-- column: max_bytes BIGINT    Most bytes of a call [B].
-- sums:   calls, ok, errors, time_ns, bytes
-- match:  path, call
-- chart:  stacked_bars x=path y=ok,errors title="Calls" title_ja="回数"
-- chart:  bars x=path y=time_ns title="Time in calls" title_ja="所要時間"
-- chart:  bars x=path y=bytes title="Bytes transferred" title_ja="バイト数"
-- tags:   files, calls, time, bytes, errors
WITH chosen AS (
    SELECT path_id, call, errno, calls, returned, timed_calls, time_ns, shortest_ns, longest_ns,
        sized_calls, transferred_bytes, smallest_bytes, largest_bytes
    FROM object_use
    WHERE path_id IS NOT NULL
    UNION ALL
    -- The writing side of copies. One within a file counts once.
    SELECT to_path_id, call, errno, 1, CAST(result IS NOT NULL AS BIGINT), CAST(dur_ns IS NOT NULL AS BIGINT), dur_ns, dur_ns, dur_ns,
        CAST(transferred_bytes IS NOT NULL AS BIGINT), transferred_bytes, transferred_bytes, transferred_bytes
    FROM calls
    WHERE to_path_id IS NOT NULL AND coalesce(path_id, -1) <> to_path_id
),
summed AS (
    -- By number first: names are looked up once for each file, not once for each call.
    SELECT
        path_id,
        CASE WHEN $per_call THEN call ELSE 'all' END AS call,
        CAST(sum(calls) AS BIGINT) AS calls,
        CAST(coalesce(sum(returned) FILTER (WHERE errno IS NULL), 0) AS BIGINT) AS ok,
        CAST(coalesce(sum(calls) FILTER (WHERE errno IS NOT NULL), 0) AS BIGINT) AS errors,
        CAST(sum(time_ns) AS BIGINT) AS time_ns,
        CAST(round(sum(time_ns) / sum(timed_calls)) AS BIGINT) AS avg_ns,
        min(shortest_ns) AS min_ns,
        max(longest_ns) AS max_ns,
        CAST(sum(transferred_bytes) AS BIGINT) AS bytes,
        round(sum(transferred_bytes) / sum(sized_calls), 1) AS avg_bytes,
        min(smallest_bytes) AS min_bytes,
        max(largest_bytes) AS max_bytes
    FROM chosen
    WHERE $call = '' OR call = $call
    GROUP BY path_id, CASE WHEN $per_call THEN call ELSE 'all' END
)
SELECT p.path, s.call, s.calls, s.ok, s.errors, s.time_ns, s.avg_ns, s.min_ns, s.max_ns, s.bytes, s.avg_bytes, s.min_bytes, s.max_bytes
FROM summed AS s
JOIN paths AS p ON p.path_id = s.path_id
ORDER BY coalesce(s.time_ns, 0) DESC, s.calls DESC, p.path, s.call
