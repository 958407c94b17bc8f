-- Callers of kernel locks
-- What threads were doing when they had to wait for a kernel lock: the system call, and the kernel function that requested the lock.
-- needs:  lock_waits, stacks, processes
-- column: lock VARCHAR        Name of the lock.
-- column: mode VARCHAR        read or write; empty: the lock makes no distinction.
-- column: process VARCHAR     Name of the program.
-- column: call VARCHAR        The system call; empty: a page fault, an interrupt or a kernel thread.
-- column: caller VARCHAR      The kernel function that requested the lock; empty: unknown.
-- column: above VARCHAR       The function that called it.
-- column: waits BIGINT        How often it had to wait.
-- column: time_ns BIGINT      Time that it waited [ns].
-- column: share DOUBLE        Share of the time that threads waited for any lock.
-- column: longest_ns BIGINT   The longest wait [ns].
-- sums:   waits, time_ns
-- match:  lock, mode, process, call, caller, above
-- tags:   locks, time
WITH asking AS (
    -- Functions that take any lock say nothing; what called them does.
    SELECT s.stack_id, s.frame, s.function
    FROM stacks AS s
    WHERE s.object LIKE '[%' AND s.function IS NOT NULL
        AND regexp_extract(s.function, '(spin|read|write|mutex)_?(try)?lock|rwsem|^_*(down|percpu_down|rt_mutex|ww_mutex|osq)|'
            '^__traceiter|^trace_|^bpf_|lock_slowpath') = ''
), callers AS (
    SELECT a.stack_id, arg_min(a.function, a.frame) AS caller, min(a.frame) AS frame FROM asking AS a GROUP BY a.stack_id
), named AS (
    SELECT c.stack_id, c.caller, arg_min(a.function, a.frame) AS above
    FROM callers AS c
    LEFT JOIN asking AS a ON a.stack_id = c.stack_id AND a.frame > c.frame
    GROUP BY c.stack_id, c.caller
), whole AS (
    SELECT sum(w.dur_ns) AS ns FROM lock_waits AS w WHERE NOT w.nested
)
SELECT
    w.lock,
    w.mode,
    p.comm AS process,
    w.call,
    n.caller,
    n.above,
    count(*) AS waits,
    CAST(sum(w.dur_ns) AS BIGINT) AS time_ns,
    round(1e0 * sum(w.dur_ns) / greatest(max(t.ns), 1), 4) AS share,
    max(w.dur_ns) AS longest_ns
FROM lock_waits AS w
LEFT JOIN processes AS p ON p.task_id = w.task_id
LEFT JOIN named AS n ON n.stack_id = w.kernel_stack_id
CROSS JOIN whole AS t
WHERE NOT w.nested
GROUP BY w.lock, w.mode, p.comm, w.call, n.caller, n.above
ORDER BY time_ns DESC, w.lock, w.mode, process, w.call, n.caller, n.above
