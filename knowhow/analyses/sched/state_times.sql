-- Thread states
-- How long each thread ran, was runnable and waited, and how often it left its CPU.
-- needs:  run_states, processes, recording
-- column: process VARCHAR          Program and process id.
-- column: tid INTEGER              Thread id.
-- column: lived_ns BIGINT          Time from its creation, or the start of the recording, to its end or that of the recording [ns].
-- column: running_ns BIGINT        Time on a CPU [ns].
-- column: runnable_ns BIGINT       Time ready to run without a CPU [ns].
-- column: sleeping_ns BIGINT       Time waiting, interruptible by signals [ns].
-- column: uninterruptible_ns BIGINT Time waiting, not interruptible by signals: usually for a disk or a kernel lock [ns].
-- column: stopped_ns BIGINT        Time stopped by a signal or a debugger [ns].
-- column: unknown_ns BIGINT        Time off CPU that had begun before the recording [ns].
-- column: running_share DOUBLE     Share of its lifetime in which it ran.
-- column: waits BIGINT             How often it left its CPU to wait.
-- column: preemptions BIGINT       How often it was preempted.
-- column: cpus BIGINT              Number of CPUs on which it ran.
-- column: migrations BIGINT        How often it continued on another CPU.
-- sums:   running_ns, runnable_ns, sleeping_ns, uninterruptible_ns, stopped_ns, unknown_ns, waits, preemptions, migrations
-- match:  process
-- chart:  bars x=process y=running_ns,runnable_ns,sleeping_ns,uninterruptible_ns title="Thread states" title_ja="スレッドの状態"
-- tags:   time, processes, cpu
WITH away AS (
    SELECT r.task_id, r.state, r.dur_ns, r.wait_ns, r.runnable_ns, r.cpu,
        lag(r.cpu, 1, r.cpu) OVER (PARTITION BY r.task_id ORDER BY r.ts_ns) AS before
    FROM run_states AS r
), summed AS (
    SELECT a.task_id,
        sum(a.dur_ns) AS away_ns,
        sum(a.runnable_ns) AS runnable_ns,
        sum(CASE WHEN a.state = 'sleeping' THEN a.wait_ns ELSE 0 END) AS sleeping_ns,
        sum(CASE WHEN a.state = 'uninterruptible' THEN a.wait_ns ELSE 0 END) AS uninterruptible_ns,
        sum(CASE WHEN a.state IN ('stopped', 'traced') THEN a.wait_ns ELSE 0 END) AS stopped_ns,
        sum(CASE WHEN a.state = 'unknown' THEN a.wait_ns ELSE 0 END) AS unknown_ns,
        count(CASE WHEN a.wait_ns > 0 AND a.state <> 'unknown' THEN 1 END) AS waits,
        count(CASE WHEN a.state = 'preempted' THEN 1 END) AS preemptions,
        count(DISTINCT a.cpu) AS cpus,
        count(CASE WHEN a.cpu <> a.before THEN 1 END) AS migrations
    FROM away AS a
    GROUP BY a.task_id
), lives AS (
    SELECT p.task_id, p.comm, p.pid, p.tid,
        coalesce(p.end_ts_ns, r.started_ns + r.duration_ns) - greatest(p.start_ts_ns, r.started_ns) AS lived_ns
    FROM processes AS p CROSS JOIN recording AS r
)
SELECT
    concat(coalesce(l.comm, '?'), ' ', CAST(l.pid AS VARCHAR)) AS process,
    l.tid,
    CAST(l.lived_ns AS BIGINT) AS lived_ns,
    CAST(greatest(l.lived_ns - s.away_ns, 0) AS BIGINT) AS running_ns,
    CAST(s.runnable_ns AS BIGINT) AS runnable_ns,
    CAST(s.sleeping_ns AS BIGINT) AS sleeping_ns,
    CAST(s.uninterruptible_ns AS BIGINT) AS uninterruptible_ns,
    CAST(s.stopped_ns AS BIGINT) AS stopped_ns,
    CAST(s.unknown_ns AS BIGINT) AS unknown_ns,
    CASE WHEN l.lived_ns > 0 THEN round(1e0 * greatest(l.lived_ns - s.away_ns, 0) / l.lived_ns, 4) END AS running_share,
    s.waits,
    s.preemptions,
    s.cpus,
    s.migrations
FROM summed AS s
INNER JOIN lives AS l ON l.task_id = s.task_id
ORDER BY running_ns DESC, lived_ns DESC, l.task_id
