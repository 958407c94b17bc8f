-- Off-CPU waits
-- What threads waited for: by thread, call, object and waker. Waiting for a CPU is listed separately.
-- needs:  run_states, processes
-- uses:   stack_places
-- else:   time/call_waits
-- column: process VARCHAR    Program and process id.
-- column: tid INTEGER        Thread id.
-- column: cause VARCHAR      What it waited for; CPU: it was runnable.
-- column: call VARCHAR       The system call that it was in; empty: none.
-- column: path VARCHAR       Object of the call; empty: none, or unknown.
-- column: place VARCHAR      Place of the call in the program, for calls of 1 ms or more: function and source line.
-- column: woken_by VARCHAR   Program and process id of the thread that woke it, or the name of one that is not recorded; `interrupt`: a device or a timer.
-- column: waits BIGINT       Number of times.
-- column: time_ns BIGINT     Time that it waited [ns].
-- column: longest_ns BIGINT  The longest wait [ns].
-- sums:   waits, time_ns
-- match:  process, cause, call, path, place, woken_by
-- chart:  bars x=cause y=time_ns title="Wait time by cause" title_ja="待ち時間の原因別内訳"
-- tags:   time, processes
WITH waits AS (
    SELECT r.task_id, r.cause, r.call, r.path, r.stack_id, r.waker_task_id, r.waker, r.wait_ns
    FROM run_states AS r
    WHERE r.wait_ns > 0
    UNION ALL
    SELECT r.task_id, 'CPU', r.call, r.path, r.stack_id, NULL, NULL, r.runnable_ns
    FROM run_states AS r
    WHERE r.runnable_ns > 0
)
SELECT
    concat(coalesce(p.comm, '?'), ' ', CAST(p.pid AS VARCHAR)) AS process,
    p.tid,
    w.cause,
    w.call,
    w.path,
    CASE WHEN s.source IS NULL THEN s.function ELSE concat(coalesce(s.function, '?'), ' ', regexp_extract(s.source, '[^/]*$')) END AS place,
    CASE WHEN o.task_id IS NULL THEN w.waker ELSE concat(coalesce(o.comm, '?'), ' ', CAST(o.pid AS VARCHAR)) END AS woken_by,
    count(*) AS waits,
    CAST(sum(w.wait_ns) AS BIGINT) AS time_ns,
    max(w.wait_ns) AS longest_ns
FROM waits AS w
INNER JOIN processes AS p ON p.task_id = w.task_id
LEFT JOIN processes AS o ON o.task_id = w.waker_task_id
LEFT JOIN stack_places AS s ON s.stack_id = w.stack_id
GROUP BY p.task_id, p.comm, p.pid, p.tid, w.cause, w.call, w.path, s.function, s.source, o.task_id, o.comm, o.pid, w.waker
ORDER BY time_ns DESC, p.task_id, w.cause
