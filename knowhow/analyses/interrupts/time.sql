-- Interrupts
-- How often and how long each interrupt handler, softirq and timer ran, and how late softirqs and timers were. The p99 is the
-- shortest time that 99 % of the runs do not exceed, and so on.
-- needs:  interrupts, recording
-- column: kind VARCHAR          hard, vector (the CPU's own timer, other CPUs), soft, or timer.
-- column: name VARCHAR          Handler, softirq, vector, or the kernel function that a timer calls.
-- column: line INTEGER          Number of the interrupt line; empty: it has none.
-- column: runs BIGINT           How often it ran.
-- column: self_ns BIGINT        Time that it took, excluding what interrupted it [ns].
-- column: share DOUBLE          That time as a share of the recording, for one CPU [%].
-- column: min_ns BIGINT         Shortest run [ns].
-- column: avg_ns DOUBLE         Mean run [ns].
-- column: p50_ns BIGINT         Half of the runs took at most this [ns].
-- column: p99_ns BIGINT         99 % of the runs took at most this [ns].
-- column: max_ns BIGINT         Longest run [ns].
-- column: delay_p50_ns BIGINT   Half of them were at most this late: softirqs after they were raised, timers after the time for which they were set [ns].
-- column: delay_p99_ns BIGINT   99 % were at most this late [ns].
-- column: delay_max_ns BIGINT   The latest [ns].
-- column: woke BIGINT           Runs that woke a recorded thread.
-- heads_ja:  line=割り込み線
-- sums:   runs, self_ns, woke
-- match:  kind, name, line
-- chart:  bars x=name y=self_ns color=kind title="Time in interrupts" title_ja="割り込みの時間"
-- tags:   time, cpu
WITH taken AS (
    SELECT i.kind, coalesce(i.name, '?') AS name, i.line, i.dur_ns, i.self_ns, i.delay_ns, i.woken_task_id
    FROM interrupts AS i
), ranked AS (
    SELECT kind, name, line, dur_ns, self_ns, delay_ns, woken_task_id,
        row_number() OVER (PARTITION BY kind, name, line ORDER BY dur_ns) AS upto,
        count(*) OVER (PARTITION BY kind, name, line) AS total,
        row_number() OVER (PARTITION BY kind, name, line ORDER BY delay_ns NULLS LAST) AS delay_upto,
        count(delay_ns) OVER (PARTITION BY kind, name, line) AS delay_total
    FROM taken
), whole AS (
    SELECT greatest(r.duration_ns, 1) AS ns FROM recording AS r
)
SELECT
    t.kind,
    t.name,
    t.line,
    count(*) AS runs,
    CAST(sum(t.self_ns) AS BIGINT) AS self_ns,
    round(1e2 * sum(t.self_ns) / max(w.ns), 4) AS share,
    min(t.dur_ns) AS min_ns,
    round(avg(t.dur_ns), 1) AS avg_ns,
    min(t.dur_ns) FILTER (WHERE t.upto * 2 >= t.total) AS p50_ns,
    min(t.dur_ns) FILTER (WHERE t.upto * 100 >= t.total * 99) AS p99_ns,
    max(t.dur_ns) AS max_ns,
    min(t.delay_ns) FILTER (WHERE t.delay_upto * 2 >= t.delay_total) AS delay_p50_ns,
    min(t.delay_ns) FILTER (WHERE t.delay_upto * 100 >= t.delay_total * 99) AS delay_p99_ns,
    max(t.delay_ns) AS delay_max_ns,
    count(t.woken_task_id) AS woke
FROM ranked AS t
CROSS JOIN whole AS w
GROUP BY t.kind, t.name, t.line
ORDER BY self_ns DESC, t.kind, t.name, t.line
