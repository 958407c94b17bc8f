-- Run queue length over time
-- How many threads waited for each CPU on average, for each interval, and the longest of these waits.
-- needs:  run_states, recording
-- param:  interval_s DOUBLE = 1 > 0    Length of an interval [s].
-- column: from_s DOUBLE        Start of the interval, since the start of the recording [s].
-- column: until_s DOUBLE       End of the interval [s].
-- column: cpu INTEGER          Number of the CPU.
-- column: waiting DOUBLE       Average number of threads that waited for it.
-- column: waits BIGINT         Number of their waits that ended in the interval.
-- column: p50_ns BIGINT        Half of those took at most this [ns].
-- column: longest_ns BIGINT    The longest of those [ns].
-- chart:  lines x=from_s x2=until_s y=waiting color=cpu title="Threads waiting for a CPU" title_ja="CPU を待つスレッド"
-- tags:   time, cpu
WITH waits AS (
    SELECT r.cpu, r.runnable_ns AS ns, floor((r.end_ts_ns - g.started_ns) / (1e9 * $interval_s)) AS place
    FROM run_states AS r CROSS JOIN recording AS g
    WHERE r.cpu IS NOT NULL AND r.runnable_ns > 0
), placed AS (
    SELECT w.cpu, w.place, w.ns,
        row_number() OVER (PARTITION BY w.cpu, w.place ORDER BY w.ns) AS number,
        count(*) OVER (PARTITION BY w.cpu, w.place) AS total
    FROM waits AS w
)
SELECT
    round(p.place * $interval_s, 6) AS from_s,
    round((p.place + 1) * $interval_s, 6) AS until_s,
    p.cpu,
    round(sum(p.ns) / (1e9 * $interval_s), 4) AS waiting,
    count(*) AS waits,
    min(CASE WHEN p.number * 2 >= p.total THEN p.ns END) AS p50_ns,
    max(p.ns) AS longest_ns
FROM placed AS p
GROUP BY p.place, p.cpu
ORDER BY from_s, p.cpu
