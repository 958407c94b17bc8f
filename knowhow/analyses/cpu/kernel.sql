-- CPU time in the kernel
-- What the kernel did with its CPU time: by system call or other entry point, and by the purpose of its functions. Based on samples.
-- needs:  samples, kernel_activities
-- column: entry VARCHAR       System call, or page fault, interrupt, exception, start of a thread, other.
-- column: activity VARCHAR    What the kernel did there.
-- column: function VARCHAR    The function that was sampled most often.
-- column: time_ns BIGINT      CPU time [ns].
-- column: share DOUBLE        Share of the CPU time in the kernel.
-- column: samples BIGINT      Samples.
-- sums:   time_ns, samples
-- match:  entry, activity, function
-- chart:  bars x=activity y=time_ns color=entry title="CPU time in the kernel" title_ja="カーネルの CPU 時間"
-- tags:   cpu, time
WITH used AS (
    -- An interrupt in a system call is no part of it.
    SELECT CASE WHEN k.entry = 'system call' THEN coalesce(s.call, k.entry) WHEN k.entry = 'page fault' AND s.call IS NOT NULL
            THEN concat('page fault in ', s.call) ELSE k.entry END AS entry,
        k.activity, k.function, sum(s.period_ns) AS ns, count(*) AS number
    FROM samples AS s
    INNER JOIN kernel_activities AS k ON k.stack_id = s.kernel_stack_id
    WHERE s.in_kernel
    GROUP BY s.call, k.entry, k.activity, k.function
), whole AS (
    SELECT sum(u.ns) AS ns FROM used AS u
), ordered AS (
    SELECT u.*, row_number() OVER (PARTITION BY u.entry, u.activity ORDER BY u.number DESC, u.function) AS place
    FROM used AS u
)
SELECT
    u.entry,
    u.activity,
    min(u.function) FILTER (WHERE u.place = 1) AS function,
    CAST(sum(u.ns) AS BIGINT) AS time_ns,
    round(1e0 * sum(u.ns) / max(w.ns), 4) AS share,
    CAST(sum(u.number) AS BIGINT) AS samples
FROM ordered AS u
CROSS JOIN whole AS w
GROUP BY u.entry, u.activity
ORDER BY time_ns DESC, u.entry, u.activity
