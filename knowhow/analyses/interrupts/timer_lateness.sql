-- Timer lateness
-- How late timers expired, by the function they call and the program they woke. The kernel may delay a timer by its
-- slack; lateness beyond the slack is time that something had to wait.
-- needs:  interrupts, processes
-- column: name VARCHAR         The kernel function that the timer calls.
-- column: woken VARCHAR        Program and process id of the thread that it woke; empty: none that is recorded.
-- column: runs BIGINT          How often it ran.
-- column: slack_ns BIGINT      Smallest slack: how much later than its time it was allowed to run [ns].
-- column: min_ns BIGINT        Smallest lateness [ns].
-- column: p50_ns BIGINT        Half of them were late by at most this [ns].
-- column: p90_ns BIGINT        90 % of them were late by at most this [ns].
-- column: p99_ns BIGINT        99 % of them were late by at most this [ns].
-- column: max_ns BIGINT        Largest lateness [ns].
-- column: beyond_ns BIGINT     Largest lateness beyond its slack [ns].
-- sums:   runs
-- match:  name, woken
-- chart:  bars x=name y=p99_ns title="Timer lateness" title_ja="タイマーの遅れ"
-- tags:   time, processes
WITH ranked AS (
    SELECT coalesce(i.name, '?') AS name, i.woken_task_id, p.process_id, p.comm, p.pid, i.delay_ns, i.slack_ns,
        row_number() OVER (PARTITION BY coalesce(i.name, '?'), p.process_id ORDER BY i.delay_ns) AS upto,
        count(*) OVER (PARTITION BY coalesce(i.name, '?'), p.process_id) AS total
    FROM interrupts AS i
    LEFT JOIN processes AS p ON p.task_id = i.woken_task_id
    WHERE i.kind = 'timer'
)
SELECT
    r.name,
    CASE WHEN r.process_id IS NULL THEN NULL ELSE concat(coalesce(max(r.comm), '?'), ' ', CAST(max(r.pid) AS VARCHAR)) END AS woken,
    count(*) AS runs,
    min(r.slack_ns) AS slack_ns,
    min(r.delay_ns) AS min_ns,
    min(r.delay_ns) FILTER (WHERE r.upto * 2 >= r.total) AS p50_ns,
    min(r.delay_ns) FILTER (WHERE r.upto * 10 >= r.total * 9) AS p90_ns,
    min(r.delay_ns) FILTER (WHERE r.upto * 100 >= r.total * 99) AS p99_ns,
    max(r.delay_ns) AS max_ns,
    max(greatest(r.delay_ns - r.slack_ns, 0)) AS beyond_ns
FROM ranked AS r
GROUP BY r.name, r.process_id
ORDER BY runs DESC, r.name, r.process_id
