-- Timeline of the run
-- What each process did in each time step: system calls, bytes transferred, time in calls, and time off CPU.
-- needs:  calls, processes, recording
-- uses:   run_states
-- param:  steps INTEGER = 120 > 0       Number of steps into which the recording is divided.
-- param:  most INTEGER = 7 > 0          Number of processes shown by name: those with the largest share of calls, bytes and time; the others are combined.
-- column: from_s DOUBLE       Start of the step, since the start of the recording [s].
-- column: until_s DOUBLE      End of the step [s].
-- column: process VARCHAR     Program and process id; `others`: all processes that are not shown by name.
-- column: calls BIGINT        System calls that began in the step.
-- column: bytes BIGINT        Bytes that these calls transferred [B].
-- column: call_ns BIGINT      Time of the step that its threads spent in system calls [ns].
-- column: off_cpu_ns BIGINT   Time of the step that its threads spent off CPU; empty: not recorded [ns].
-- chart:  lines x=from_s x2=until_s y=calls color=process title="System calls by process" title_ja="プロセスごとのシステムコール"
-- chart:  lines x=from_s x2=until_s y=bytes color=process title="Bytes transferred by process" title_ja="プロセスごとの転送バイト数"
-- chart:  lines x=from_s x2=until_s y=off_cpu_ns color=process title="Time waited by process" title_ja="プロセスごとの待ち時間"
-- chart:  lines x=from_s x2=until_s y=call_ns color=process title="Time in calls by process" title_ja="プロセスごとの呼び出し時間"
-- tags:   time, processes, calls
-- portable: false
WITH grid AS (
    SELECT r.started_ns AS low, r.started_ns + r.duration_ns AS high, greatest((r.duration_ns + $steps - 1) // $steps, 1) AS width
    FROM recording AS r
), begun AS (
    SELECT c.process_id, least((c.ts_ns - g.low) // g.width, $steps - 1) AS step, count(*) FILTER (WHERE c.via IS NULL) AS calls, sum(c.transferred_bytes) AS bytes
    FROM calls AS c
    CROSS JOIN grid AS g
    GROUP BY c.process_id, least((c.ts_ns - g.low) // g.width, $steps - 1)
), pieces AS (
    SELECT c.process_id, 'call' AS kind, c.ts_ns - g.low AS since, least(c.ts_ns + c.dur_ns, g.high) - g.low AS until, g.width
    FROM calls AS c
    CROSS JOIN grid AS g
    WHERE c.via IS NULL AND c.dur_ns > 0 AND c.ts_ns < g.high
    UNION ALL
    SELECT p.process_id, 'off', greatest(r.ts_ns, g.low) - g.low, least(r.ts_ns + r.dur_ns, g.high) - g.low, g.width
    FROM run_states AS r
    INNER JOIN processes AS p ON p.task_id = r.task_id
    CROSS JOIN grid AS g
    WHERE r.ts_ns < g.high AND r.ts_ns + r.dur_ns > g.low
), cut AS (
    -- Not portable: what reaches over several steps is cut into them.
    SELECT p.process_id, p.kind, p.since, p.until, p.width, unnest(range(p.since // p.width, (p.until - 1) // p.width + 1)) AS step
    FROM pieces AS p
    WHERE p.until > p.since
), timed AS (
    SELECT c.process_id, c.step,
        sum(least(c.until, (c.step + 1) * c.width) - greatest(c.since, c.step * c.width)) FILTER (WHERE c.kind = 'call') AS call_ns,
        sum(least(c.until, (c.step + 1) * c.width) - greatest(c.since, c.step * c.width)) FILTER (WHERE c.kind = 'off') AS off_cpu_ns
    FROM cut AS c
    GROUP BY c.process_id, c.step
), cells AS (
    SELECT coalesce(b.process_id, t.process_id) AS process_id, coalesce(b.step, t.step) AS step, coalesce(b.calls, 0) AS calls, coalesce(b.bytes, 0) AS bytes,
        t.call_ns, t.off_cpu_ns
    FROM begun AS b
    FULL JOIN timed AS t ON t.process_id = b.process_id AND t.step = b.step
), totals_by_process AS (
    SELECT c.process_id, sum(c.calls) AS calls, sum(c.bytes) AS bytes, sum(c.call_ns) AS call_ns, sum(c.off_cpu_ns) AS off_cpu_ns
    FROM cells AS c
    GROUP BY c.process_id
), parts AS (
    -- Its parts of all calls, bytes and times together.
    SELECT t.process_id,
        t.calls / greatest(sum(t.calls) OVER (), 1) + t.bytes / greatest(sum(t.bytes) OVER (), 1)
            + coalesce(t.call_ns / greatest(sum(t.call_ns) OVER (), 1), 0) + coalesce(t.off_cpu_ns / greatest(sum(t.off_cpu_ns) OVER (), 1), 0) AS part
    FROM totals_by_process AS t
), ranked AS (
    SELECT t.process_id, row_number() OVER (ORDER BY t.part DESC, t.process_id) AS rank
    FROM parts AS t
), named AS (
    SELECT k.process_id, k.rank, CASE WHEN k.rank <= $most THEN concat(coalesce(p.comm, '?'), ' ', CAST(p.pid AS VARCHAR)) ELSE 'others' END AS process
    FROM ranked AS k
    INNER JOIN processes AS p ON p.task_id = k.process_id
)
SELECT
    round(c.step * g.width / 1e9, 9) AS from_s,
    round((c.step + 1) * g.width / 1e9, 9) AS until_s,
    n.process,
    CAST(sum(c.calls) AS BIGINT) AS calls,
    CAST(sum(c.bytes) AS BIGINT) AS bytes,
    CAST(sum(c.call_ns) AS BIGINT) AS call_ns,
    CAST(sum(c.off_cpu_ns) AS BIGINT) AS off_cpu_ns
FROM cells AS c
INNER JOIN named AS n ON n.process_id = c.process_id
CROSS JOIN grid AS g
GROUP BY c.step, g.width, n.process
ORDER BY c.step, min(n.rank), n.process
