-- Where the time went, by thread states
-- The time of the command and of each thread: on a CPU, runnable without a CPU, and waiting, by cause. For recordings without
-- system calls.
-- needs:  run_states, processes, recording
-- uses:   critical_path, locks
-- column: process VARCHAR   Program and process id; empty: the command as a whole.
-- column: tid INTEGER       Thread id.
-- column: part VARCHAR      Where the time went.
-- column: detail VARCHAR    The call in which most of this time was spent, the lock, and its share of the part.
-- column: time_ns BIGINT    Time of the part [ns].
-- column: share DOUBLE      Share of the time of the command, or of the thread.
-- column: evidence VARCHAR  The analysis that shows the details.
-- sums:   time_ns
-- match:  process, part
-- chart:  bars x=part y=time_ns title="Where the time went" title_ja="時間の内訳"
-- tags:   time, processes
WITH lives AS (
    SELECT p.task_id, coalesce(p.end_ts_ns, r.started_ns + r.duration_ns) - greatest(p.start_ts_ns, r.started_ns) AS time_ns
    FROM processes AS p CROSS JOIN recording AS r
), away AS (
    SELECT s.task_id, sum(s.dur_ns) AS time_ns FROM run_states AS s GROUP BY s.task_id
), uses AS (
    SELECT NULL AS task_id, CASE WHEN p.part = 'running' THEN 'running' ELSE coalesce(p.cause, 'CPU') END AS cause,
        p.call, p.lock_id, p.dur_ns AS time_ns
    FROM critical_path AS p
    UNION ALL
    SELECT s.task_id, coalesce(s.cause, 'unknown'), s.call, s.lock_id, s.wait_ns FROM run_states AS s WHERE s.wait_ns > 0
    UNION ALL
    SELECT s.task_id, 'CPU', s.call, NULL, s.runnable_ns FROM run_states AS s WHERE s.runnable_ns > 0
    UNION ALL
    SELECT l.task_id, 'running', NULL, NULL, l.time_ns - a.time_ns FROM lives AS l INNER JOIN away AS a ON a.task_id = l.task_id
    WHERE l.time_ns > a.time_ns
), whats AS (
    SELECT u.task_id, u.cause, CASE WHEN u.cause = 'running' THEN NULL WHEN k.name IS NULL THEN u.call ELSE concat(coalesce(u.call, 'page fault'), ' ', k.name) END AS what,
        CAST(sum(u.time_ns) AS BIGINT) AS time_ns
    FROM uses AS u LEFT JOIN locks AS k ON k.lock_id = u.lock_id
    GROUP BY u.task_id, u.cause, CASE WHEN u.cause = 'running' THEN NULL WHEN k.name IS NULL THEN u.call ELSE concat(coalesce(u.call, 'page fault'), ' ', k.name) END
), parts AS (
    -- Of several that took equally long the first by name.
    SELECT w.task_id, w.cause, CAST(sum(w.time_ns) AS BIGINT) AS time_ns, min(CASE WHEN w.time_ns = w.what_ns THEN w.what END) AS what, max(w.what_ns) AS what_ns
    FROM (
        SELECT n.task_id, n.cause, n.what, n.time_ns,
            max(CASE WHEN n.what IS NOT NULL THEN n.time_ns END) OVER (PARTITION BY n.task_id, n.cause) AS what_ns
        FROM whats AS n
    ) AS w
    GROUP BY w.task_id, w.cause
), spans AS (
    SELECT p.task_id, sum(p.time_ns) AS time_ns FROM parts AS p GROUP BY p.task_id
)
SELECT
    CASE WHEN r.task_id IS NOT NULL THEN concat(coalesce(t.comm, '?'), ' ', CAST(t.pid AS VARCHAR)) END AS process,
    t.tid,
    CASE r.cause WHEN 'running' THEN 'on a CPU' WHEN 'CPU' THEN 'waiting for a CPU' WHEN 'unknown' THEN 'unexplained' ELSE concat('waiting: ', r.cause) END AS part,
    CASE WHEN r.what_ns > 0 THEN concat(r.what, ' (', CAST(CAST(round(1e2 * r.what_ns / r.time_ns) AS BIGINT) AS VARCHAR), ' %)') END AS detail,
    r.time_ns,
    CASE WHEN s.time_ns > 0 THEN round(1e0 * r.time_ns / s.time_ns, 4) END AS share,
    CASE r.cause WHEN 'running' THEN NULL WHEN 'unknown' THEN NULL WHEN 'CPU' THEN 'sched/run_queue_wait' WHEN 'kernel lock' THEN 'locks/share_by_lock'
        ELSE 'time/waits' END AS evidence
FROM parts AS r
INNER JOIN spans AS s ON coalesce(s.task_id, -1) = coalesce(r.task_id, -1)
LEFT JOIN processes AS t ON t.task_id = r.task_id
WHERE r.time_ns > 0
ORDER BY coalesce(t.tree_order, -1), r.time_ns DESC, part
