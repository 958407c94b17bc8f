-- Wake-up chains
-- Which thread woke which, and what the waker itself had waited for just before: chains of three threads.
-- needs:  run_states, processes
-- column: woken VARCHAR        Program of the thread that waited.
-- column: cause VARCHAR        What it waited for.
-- column: call VARCHAR         The system call in which it waited; empty: none.
-- column: woken_by VARCHAR     Program of the thread that woke it, or the name of one that is not recorded; `interrupt`: a device or a timer.
-- column: which_waited_for VARCHAR  What that thread had waited for, if its last wait ended within this one; empty: it had been running.
-- column: which_was_woken_by VARCHAR  The thread that had woken it.
-- column: wakeups BIGINT       Number of times.
-- column: time_ns BIGINT       Time that the first one waited [ns].
-- column: longest_ns BIGINT    The longest wait [ns].
-- column: to_run_ns BIGINT     Mean time from the wake-up until it ran [ns].
-- sums:   wakeups, time_ns
-- match:  woken, cause, call, woken_by, which_waited_for, which_was_woken_by
-- tags:   time, processes
WITH waits AS (
    -- Numbered by thread and time, so that the last one before a moment is the highest number so far: the engine keeps a running
    -- maximum over all rows much faster than one for each thread.
    SELECT r.task_id, r.cause, r.call, r.waker_task_id, r.waker, r.ts_ns, r.wait_ns, r.runnable_ns, r.ts_ns + r.wait_ns AS woken_ns,
        row_number() OVER (ORDER BY r.task_id, r.ts_ns + r.wait_ns, r.ts_ns) AS number
    FROM run_states AS r
    WHERE r.wait_ns > 0 AND (r.waker_task_id IS NOT NULL OR r.waker IS NOT NULL)
), moments AS (
    -- When each thread was woken itself, and when it woke another one.
    SELECT w.task_id, w.woken_ns, w.number AS own, NULL AS other FROM waits AS w
    UNION ALL
    SELECT w.waker_task_id, w.woken_ns, NULL, w.number FROM waits AS w WHERE w.waker_task_id IS NOT NULL
), lasts AS (
    SELECT m.task_id, m.other, max(m.own) OVER (ORDER BY m.task_id, m.woken_ns) AS before FROM moments AS m
), befores AS (
    SELECT l.task_id, l.other, l.before FROM lasts AS l WHERE l.other IS NOT NULL
), chained AS (
    -- Of a thread that was never woken before, the number is one of another thread.
    SELECT w.task_id, w.cause, w.call, w.waker_task_id, w.waker, w.wait_ns, w.runnable_ns,
        b.cause AS before_cause, b.waker_task_id AS before_task_id, b.waker AS before_waker
    FROM waits AS w
    LEFT JOIN befores AS l ON l.other = w.number
    LEFT JOIN waits AS b ON b.number = l.before AND b.task_id = l.task_id AND b.woken_ns >= w.ts_ns
)
SELECT
    p.comm AS woken,
    c.cause,
    c.call,
    coalesce(k.comm, c.waker) AS woken_by,
    c.before_cause AS which_waited_for,
    coalesce(b.comm, c.before_waker) AS which_was_woken_by,
    count(*) AS wakeups,
    CAST(sum(c.wait_ns) AS BIGINT) AS time_ns,
    max(c.wait_ns) AS longest_ns,
    CAST(round(avg(c.runnable_ns)) AS BIGINT) AS to_run_ns
FROM chained AS c
INNER JOIN processes AS p ON p.task_id = c.task_id
LEFT JOIN processes AS k ON k.task_id = c.waker_task_id
LEFT JOIN processes AS b ON b.task_id = c.before_task_id
GROUP BY p.comm, c.cause, c.call, coalesce(k.comm, c.waker), c.before_cause, coalesce(b.comm, c.before_waker)
ORDER BY time_ns DESC, woken, c.cause, c.call, woken_by, which_waited_for, which_was_woken_by
