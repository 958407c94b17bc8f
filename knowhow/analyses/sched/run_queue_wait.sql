-- Run queue latency by CPU
-- How long runnable threads waited for each CPU: after they were woken, after they were created, and after they were preempted.
-- needs:  run_states
-- column: cpu INTEGER          Number of the CPU on which they then ran.
-- column: after VARCHAR        woken, new (just created), or preempted (another thread took the CPU).
-- column: waits BIGINT         Number of times.
-- column: time_ns BIGINT       Time that threads waited; several at the same time count separately [ns].
-- column: avg_ns BIGINT        Mean [ns].
-- column: p50_ns BIGINT        Half of the waits took at most this [ns].
-- column: p90_ns BIGINT        90 % took at most this [ns].
-- column: p99_ns BIGINT        99 % took at most this [ns].
-- column: p999_ns BIGINT       99.9 % took at most this [ns].
-- column: longest_ns BIGINT    The longest [ns].
-- heads_ja:  after=待ちの理由
-- sums:   waits, time_ns
-- match:  cpu, after
-- chart:  ranges x=after y=avg_ns,p50_ns,p90_ns,p99_ns,p999_ns,longest_ns y_scale=log title="Run queue latency" title_ja="CPU 待ち"
-- tags:   time, cpu
WITH waits AS (
    SELECT r.cpu, r.runnable_ns AS ns,
        CASE WHEN r.state = 'preempted' THEN 'preempted' WHEN r.state = 'new' THEN 'new' ELSE 'woken' END AS after
    FROM run_states AS r
    WHERE r.cpu IS NOT NULL AND (r.runnable_ns > 0 OR r.state IN ('preempted', 'new'))
), placed AS (
    SELECT w.cpu, w.after, w.ns,
        row_number() OVER (PARTITION BY w.cpu, w.after ORDER BY w.ns) AS place,
        count(*) OVER (PARTITION BY w.cpu, w.after) AS number
    FROM waits AS w
)
SELECT
    p.cpu,
    p.after,
    count(*) AS waits,
    CAST(sum(p.ns) AS BIGINT) AS time_ns,
    CAST(round(avg(p.ns)) AS BIGINT) AS avg_ns,
    min(CASE WHEN p.place * 2 >= p.number THEN p.ns END) AS p50_ns,
    min(CASE WHEN p.place * 10 >= p.number * 9 THEN p.ns END) AS p90_ns,
    min(CASE WHEN p.place * 100 >= p.number * 99 THEN p.ns END) AS p99_ns,
    min(CASE WHEN p.place * 1000 >= p.number * 999 THEN p.ns END) AS p999_ns,
    max(p.ns) AS longest_ns
FROM placed AS p
GROUP BY p.cpu, p.after
ORDER BY time_ns DESC, p.cpu, p.after
