-- Process tree
-- Every process and thread of the recording, parents before children: command, start, duration, exit status,
-- and the time and bytes of its calls.
-- needs:  processes, calls, recording
-- column: process VARCHAR       Program and thread id, a dot for each step down from the top.
-- column: pid INTEGER           Process id.
-- column: tid INTEGER           Thread id; equal to pid for the first thread.
-- column: ppid INTEGER          Process id of the parent; empty if its creation is not in the log.
-- column: depth INTEGER         Depth in the tree, 0 at the top.
-- column: command VARCHAR       Arguments of its last exec, or of its parent's.
-- column: start_s DOUBLE        Start, since the start of the recording [s].
-- column: end_s DOUBLE          End, since the start of the recording; empty if no end was recorded [s].
-- column: duration_ns BIGINT    Time from start to end [ns].
-- column: exit VARCHAR          Exit status, or the signal that killed it; empty if no end was recorded.
-- column: calls BIGINT          Number of its calls.
-- column: time_ns BIGINT        Time in its calls, including waits [ns].
-- column: bytes BIGINT          Bytes its calls transferred [B].
-- sums:   calls, time_ns, bytes
-- chart:  spans x=start_s x2=end_s y=process title="Lifetimes" title_ja="生存期間"
-- tags:   processes, calls, time, bytes
WITH used AS (
    -- Thread ids are used again, lives are not. Operations of libaio are no calls of their own, but move bytes.
    SELECT c.task_id, count(*) FILTER (WHERE c.via IS NULL) AS calls,
        CAST(sum(c.dur_ns) FILTER (WHERE c.via IS NULL) AS BIGINT) AS time_ns, CAST(sum(c.transferred_bytes) AS BIGINT) AS bytes
    FROM calls AS c
    GROUP BY c.task_id
)
SELECT
    concat(substr('. . . . . . . . . . . . . . . . . . . . ', 1, 2 * least(p.depth, 20)), coalesce(p.comm, '?'), ' ',
        CAST(p.tid AS VARCHAR)) AS process,
    p.pid,
    p.tid,
    p.ppid,
    p.depth,
    p.command,
    round((p.start_ts_ns - r.started_ns) / 1e9, 9) AS start_s,
    round((p.end_ts_ns - r.started_ns) / 1e9, 9) AS end_s,
    p.end_ts_ns - p.start_ts_ns AS duration_ns,
    coalesce(p.exit_signal, CAST(p.exit_code AS VARCHAR)) AS exit,
    coalesce(u.calls, 0) AS calls,
    u.time_ns,
    u.bytes
FROM processes AS p
CROSS JOIN recording AS r
LEFT JOIN used AS u ON u.task_id = p.task_id
ORDER BY p.tree_order
