-- I/O by file
-- One row per file and call: how often, how it ended, how long it took, what it moved.
-- Calls that work on no file, or on one that the log does not name, are left out. A copy call (sendfile, splice,
-- copy_file_range, tee) is charged to both of its files, in full: sums over files hold it twice.
-- needs:  calls, paths
-- param:  call VARCHAR = ''         Only this call; empty for all.
-- param:  per_call BOOLEAN = true   One row per file and call; false: one row per file, its calls together.
-- column: path VARCHAR        File or other object worked on; of a copy call, the one read from and the one written to.
-- column: call VARCHAR        Name of the system call; `all` where the calls are taken together.
-- column: calls BIGINT        Number of calls.
-- column: ok BIGINT           Calls that returned without an error.
-- column: errors BIGINT       Calls that returned an error.
-- column: time_ns BIGINT      Time in the calls [ns].
-- column: avg_ns BIGINT       Average time of a call [ns].
-- column: min_ns BIGINT       Shortest call [ns].
-- column: max_ns BIGINT       Longest call [ns].
-- column: bytes BIGINT        Bytes moved [B].
-- column: avg_bytes DOUBLE    Average bytes of a call that moved or could have moved any [B].
-- column: min_bytes BIGINT    Fewest bytes of a call [B].
-- column: max_bytes BIGINT    Most bytes of a call [B].
-- chart:  stacked_bars x=path y=ok,errors title="Calls" title_ja="回数"
-- chart:  bars x=path y=time_ns title="Time in the calls" title_ja="所要時間"
-- chart:  bars x=path y=bytes title="Bytes moved" title_ja="バイト数"
-- tags:   files, calls, time, bytes, errors
WITH chosen AS (
    SELECT path_id, CASE WHEN $per_call THEN call ELSE 'all' END AS call, result, errno, dur_ns, transferred_bytes
    FROM calls
    WHERE path_id IS NOT NULL AND ($call = '' OR call = $call)
    UNION ALL
    -- The writing side of copies. One within a file counts once.
    SELECT to_path_id AS path_id, CASE WHEN $per_call THEN call ELSE 'all' END AS call, result, errno, dur_ns, transferred_bytes
    FROM calls
    WHERE to_path_id IS NOT NULL AND coalesce(path_id, -1) <> to_path_id AND ($call = '' OR call = $call)
),
summed AS (
    -- By number first: names are looked up once for each file, not once for each call.
    SELECT
        path_id,
        call,
        count(*) AS calls,
        count(*) FILTER (WHERE errno IS NULL AND result IS NOT NULL) AS ok,
        count(errno) AS errors,
        CAST(sum(dur_ns) AS BIGINT) AS time_ns,
        CAST(round(avg(dur_ns)) AS BIGINT) AS avg_ns,
        min(dur_ns) AS min_ns,
        max(dur_ns) AS max_ns,
        CAST(sum(transferred_bytes) AS BIGINT) AS bytes,
        round(avg(transferred_bytes), 1) AS avg_bytes,
        min(transferred_bytes) AS min_bytes,
        max(transferred_bytes) AS max_bytes
    FROM chosen
    GROUP BY path_id, call
)
SELECT p.path, s.call, s.calls, s.ok, s.errors, s.time_ns, s.avg_ns, s.min_ns, s.max_ns, s.bytes, s.avg_bytes, s.min_bytes, s.max_bytes
FROM summed AS s
JOIN paths AS p ON p.path_id = s.path_id
ORDER BY coalesce(s.time_ns, 0) DESC, s.calls DESC, p.path, s.call
