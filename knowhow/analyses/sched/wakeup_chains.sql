-- Chains of wake-ups
-- Who woke whom, and what the waker itself had waited for just before: chains of three threads.
-- needs:  run_states, processes
-- column: woken VARCHAR        Program of the thread that waited.
-- column: cause VARCHAR        What it waited for.
-- column: call VARCHAR         The system call in which it waited; empty: none.
-- column: woken_by VARCHAR     Program of the thread that woke it, or the name of one that is not recorded; `interrupt`: a device or a timer.
-- column: which_waited_for VARCHAR  What that thread had waited for, where its last wait ended within this one; empty: it had been running.
-- column: which_was_woken_by VARCHAR  Who had woken it.
-- column: wakeups BIGINT       How often.
-- column: time_ns BIGINT       Time that the first one waited [ns].
-- column: longest_ns BIGINT    The longest wait [ns].
-- column: to_run_ns BIGINT     Mean time from the wake-up until it ran [ns].
-- sums:   wakeups, time_ns
-- match:  woken, cause, call, woken_by, which_waited_for, which_was_woken_by
-- tags:   time, processes
WITH waits AS (
    SELECT r.task_id, r.cause, r.call, r.waker_task_id, r.waker, r.ts_ns, r.wait_ns, r.runnable_ns, r.ts_ns + r.wait_ns AS woken_ns
    FROM run_states AS r
    WHERE r.wait_ns > 0 AND (r.waker_task_id IS NOT NULL OR r.waker IS NOT NULL)
), moments AS (
    -- When each thread was last woken itself, before it woke another one.
    SELECT w.task_id, w.woken_ns, w.woken_ns AS own_ns, NULL AS other_id FROM waits AS w
    UNION ALL
    SELECT w.waker_task_id, w.woken_ns, NULL, w.task_id FROM waits AS w WHERE w.waker_task_id IS NOT NULL
), lasts AS (
    SELECT m.task_id, m.woken_ns, m.other_id, max(m.own_ns) OVER (PARTITION BY m.task_id ORDER BY m.woken_ns) AS before_ns
    FROM moments AS m
), befores AS (
    SELECT l.task_id, l.woken_ns, l.other_id, l.before_ns FROM lasts AS l WHERE l.other_id IS NOT NULL
), chained AS (
    SELECT w.task_id, w.cause, w.call, w.waker_task_id, w.waker, w.wait_ns, w.runnable_ns,
        b.cause AS before_cause, b.waker_task_id AS before_task_id, b.waker AS before_waker
    FROM waits AS w
    LEFT JOIN befores AS l ON l.task_id = w.waker_task_id AND l.other_id = w.task_id AND l.woken_ns = w.woken_ns
    LEFT JOIN waits AS b ON b.task_id = l.task_id AND b.woken_ns = l.before_ns AND b.woken_ns >= w.ts_ns
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
