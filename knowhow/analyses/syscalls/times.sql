-- System call latency from kernel histograms
-- How long the system calls of each process took, from histograms (`--what syscalls`) instead of single calls: count, mean, percentiles, maximum.
-- needs:  syscall_times, processes
-- column: process VARCHAR    Program and process id; `?`: an unknown process.
-- column: call VARCHAR       Name of the system call.
-- column: class VARCHAR      What the call does.
-- column: calls BIGINT       Number of calls.
-- column: failed BIGINT      Failed calls.
-- column: time_ns BIGINT     Time in the calls [ns].
-- column: avg_ns BIGINT      Mean [ns].
-- column: min_ns BIGINT      Mean of the class of the shortest call [ns].
-- column: p50_ns BIGINT      Mean of the class that contains the median [ns].
-- column: p90_ns BIGINT      The same for 90 % [ns].
-- column: p99_ns BIGINT      The same for 99 % [ns].
-- column: p999_ns BIGINT     The same for 99.9 % [ns].
-- column: longest_ns BIGINT  Mean of the class of the longest call [ns].
-- sums:   calls, failed, time_ns
-- match:  process, call
-- chart:  ranges x=call y=min_ns,p50_ns,p90_ns,p99_ns,p999_ns,longest_ns y_scale=log title="System call latency" title_ja="システムコールの所要時間"
-- tags:   time, calls, processes
WITH classes AS (
    SELECT t.task_id, t.call, t.class, t.lower_ns, sum(t.number) AS number, sum(t.failed) AS failed, sum(t.time_ns) AS time_ns,
        CAST(round(1e0 * sum(t.time_ns) / sum(t.number)) AS BIGINT) AS mean_ns
    FROM syscall_times AS t
    GROUP BY t.task_id, t.call, t.class, t.lower_ns
), ranked AS (
    SELECT c.task_id, c.call, c.class, c.number, c.failed, c.time_ns, c.mean_ns,
        sum(c.number) OVER (PARTITION BY c.task_id, c.call ORDER BY c.lower_ns) AS upto,
        sum(c.number) OVER (PARTITION BY c.task_id, c.call) AS total
    FROM classes AS c
)
SELECT
    CASE WHEN p.task_id IS NULL THEN '?' ELSE concat(coalesce(p.comm, '?'), ' ', CAST(p.pid AS VARCHAR)) END AS process,
    r.call,
    r.class,
    CAST(sum(r.number) AS BIGINT) AS calls,
    CAST(sum(r.failed) AS BIGINT) AS failed,
    CAST(sum(r.time_ns) AS BIGINT) AS time_ns,
    CAST(round(1e0 * sum(r.time_ns) / sum(r.number)) AS BIGINT) AS avg_ns,
    min(r.mean_ns) AS min_ns,
    min(CASE WHEN r.upto * 2 >= r.total THEN r.mean_ns END) AS p50_ns,
    min(CASE WHEN r.upto * 10 >= r.total * 9 THEN r.mean_ns END) AS p90_ns,
    min(CASE WHEN r.upto * 100 >= r.total * 99 THEN r.mean_ns END) AS p99_ns,
    min(CASE WHEN r.upto * 1000 >= r.total * 999 THEN r.mean_ns END) AS p999_ns,
    max(r.mean_ns) AS longest_ns
FROM ranked AS r
LEFT JOIN processes AS p ON p.task_id = r.task_id
GROUP BY p.task_id, p.comm, p.pid, r.call, r.class
ORDER BY time_ns DESC, p.task_id, r.call
