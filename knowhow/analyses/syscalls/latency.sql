-- System call latency by process
-- How long the system calls of each process took: count, mean, percentiles, maximum.
-- needs:  calls, processes
-- else:   syscalls/times
-- column: process VARCHAR    Program and process id.
-- column: call VARCHAR       Name of the system call.
-- column: class VARCHAR      What the call does.
-- column: calls BIGINT       Number of calls with a duration.
-- column: failed BIGINT      Failed calls.
-- column: time_ns BIGINT     Time in the calls [ns].
-- column: avg_ns BIGINT      Mean [ns].
-- column: min_ns BIGINT      The shortest [ns].
-- column: p50_ns BIGINT      Half of them took at most this [ns].
-- column: p90_ns BIGINT      90 % took at most this [ns].
-- column: p99_ns BIGINT      99 % took at most this [ns].
-- column: p999_ns BIGINT     99.9 % took at most this [ns].
-- column: longest_ns BIGINT  The longest [ns].
-- sums:   calls, failed, time_ns
-- match:  process, call
-- chart:  ranges x=call y=min_ns,p50_ns,p90_ns,p99_ns,p999_ns,longest_ns y_scale=log title="System call latency" title_ja="システムコールの所要時間"
-- tags:   time, calls, processes
WITH counted AS (
    -- Calls of a process often take the same time, to the nanosecond: there are fewer times than calls.
    SELECT c.process_id, c.call, c.class, c.dur_ns, count(*) AS number, count(c.errno) AS failed
    FROM calls AS c
    WHERE c.dur_ns IS NOT NULL AND c.via IS NULL
    GROUP BY c.process_id, c.call, c.class, c.dur_ns
), ranked AS (
    SELECT c.process_id, c.call, c.class, c.dur_ns, c.number, c.failed,
        sum(c.number) OVER (PARTITION BY c.process_id, c.call ORDER BY c.dur_ns) AS upto,
        sum(c.number) OVER (PARTITION BY c.process_id, c.call) AS total
    FROM counted AS c
)
SELECT
    concat(coalesce(p.comm, '?'), ' ', CAST(p.pid AS VARCHAR)) AS process,
    r.call,
    r.class,
    CAST(sum(r.number) AS BIGINT) AS calls,
    CAST(sum(r.failed) AS BIGINT) AS failed,
    CAST(sum(r.dur_ns * r.number) AS BIGINT) AS time_ns,
    CAST(round(1e0 * sum(r.dur_ns * r.number) / sum(r.number)) AS BIGINT) AS avg_ns,
    min(r.dur_ns) AS min_ns,
    min(CASE WHEN r.upto * 2 >= r.total THEN r.dur_ns END) AS p50_ns,
    min(CASE WHEN r.upto * 10 >= r.total * 9 THEN r.dur_ns END) AS p90_ns,
    min(CASE WHEN r.upto * 100 >= r.total * 99 THEN r.dur_ns END) AS p99_ns,
    min(CASE WHEN r.upto * 1000 >= r.total * 999 THEN r.dur_ns END) AS p999_ns,
    max(r.dur_ns) AS longest_ns
FROM ranked AS r
INNER JOIN processes AS p ON p.task_id = r.process_id
GROUP BY p.task_id, p.comm, p.pid, r.call, r.class
ORDER BY time_ns DESC, p.task_id, r.call
