-- Thread timeline
-- What each thread did over time: running, waiting for a CPU or for something else; and the critical path.
-- needs:  run_states, processes, recording
-- uses:   critical_path
-- param:  columns INTEGER = 1920 > 0   Number of steps into which the time is divided.
-- param:  threads INTEGER = 40 > 0     Number of threads shown: those with the most time on the critical path, then those that ran the most.
-- column: thread VARCHAR     Program and thread id.
-- column: rank INTEGER       Position of the thread, from 1.
-- column: from_s DOUBLE      Start of the step, since the start of the recording [s].
-- column: until_s DOUBLE     End of the interval [s].
-- column: state VARCHAR      running, CPU (runnable without a CPU), or what it waited for.
-- column: time_ns BIGINT     Time of the step in that state [ns].
-- column: path_ns BIGINT     Time of the step in which the critical path was in this thread, in whatever state [ns].
-- column: threads INTEGER    Total number of threads.
-- heads_ja:  rank=順位
-- chart:  states x=from_s x2=until_s y=thread,time_ns,path_ns,threads color=state title="Thread states" title_ja="スレッドの状態"
-- tags:   time, processes, cpu
-- portable: false
WITH extent AS (
    SELECT min(e.ts_ns) AS low, max(e.end_ts_ns) AS high
    FROM (SELECT ts_ns, end_ts_ns FROM run_states UNION ALL SELECT ts_ns, end_ts_ns FROM critical_path) AS e
), grid AS (
    SELECT e.low, e.high, greatest((e.high - e.low + $columns - 1) // $columns, 1) AS width FROM extent AS e
), away AS (
    SELECT r.task_id, sum(r.dur_ns) AS ns, min(r.ts_ns) AS first_ns FROM run_states AS r GROUP BY r.task_id
), on_path AS (
    SELECT c.task_id, sum(c.dur_ns) AS ns FROM critical_path AS c GROUP BY c.task_id
), lives AS (
    SELECT p.task_id, concat(coalesce(p.comm, '?'), ' ', CAST(p.tid AS VARCHAR)) AS thread,
        greatest(least(p.start_ts_ns, a.first_ns), g.low) AS ts_ns, least(coalesce(p.end_ts_ns, g.high), g.high) AS end_ts_ns,
        coalesce(o.ns, 0) AS path_ns, a.ns AS away_ns
    FROM processes AS p
    INNER JOIN away AS a ON a.task_id = p.task_id
    LEFT JOIN on_path AS o ON o.task_id = p.task_id
    CROSS JOIN grid AS g
), shown AS (
    SELECT l.task_id, l.thread, l.ts_ns, l.end_ts_ns, count(*) OVER () AS threads,
        row_number() OVER (ORDER BY l.path_ns DESC, l.end_ts_ns - l.ts_ns - l.away_ns DESC, l.task_id) AS rank
    FROM lives AS l
), pieces AS (
    SELECT s.task_id, 'alive' AS state, s.ts_ns, s.end_ts_ns FROM shown AS s
    UNION ALL
    SELECT r.task_id, coalesce(r.cause, 'unknown'), r.ts_ns, r.ts_ns + r.wait_ns FROM run_states AS r
    UNION ALL
    SELECT r.task_id, 'CPU', r.ts_ns + r.wait_ns, r.end_ts_ns FROM run_states AS r
    UNION ALL
    SELECT c.task_id, 'path', c.ts_ns, c.end_ts_ns FROM critical_path AS c
), cut AS (
    -- Not portable: a wait is cut into the steps that it reaches over.
    SELECT p.task_id, p.state, p.ts_ns - g.low AS since, p.end_ts_ns - g.low AS until, g.width,
        unnest(range((p.ts_ns - g.low) // g.width, (p.end_ts_ns - g.low - 1) // g.width + 1)) AS step
    FROM pieces AS p
    INNER JOIN shown AS s ON s.task_id = p.task_id AND s.rank <= $threads
    CROSS JOIN grid AS g
    WHERE p.end_ts_ns > p.ts_ns
), cells AS (
    SELECT c.task_id, c.step, c.state, sum(least(c.until, (c.step + 1) * c.width) - greatest(c.since, c.step * c.width)) AS ns
    FROM cut AS c
    GROUP BY c.task_id, c.step, c.state
), all_cells AS (
    SELECT c.task_id, c.step, c.state, c.ns FROM cells AS c WHERE c.state NOT IN ('alive', 'path')
    UNION ALL
    -- It ran in all the time for which there is no row.
    SELECT c.task_id, c.step, 'running', sum(CASE c.state WHEN 'alive' THEN c.ns ELSE -c.ns END)
    FROM cells AS c
    WHERE c.state <> 'path'
    GROUP BY c.task_id, c.step
)
SELECT
    s.thread,
    CAST(s.rank AS INTEGER) AS rank,
    round((g.low - r.started_ns + c.step * g.width) / 1e9, 9) AS from_s,
    round((g.low - r.started_ns + (c.step + 1) * g.width) / 1e9, 9) AS until_s,
    c.state,
    CAST(c.ns AS BIGINT) AS time_ns,
    CAST(coalesce(p.ns, 0) AS BIGINT) AS path_ns,
    CAST(s.threads AS INTEGER) AS threads
FROM all_cells AS c
INNER JOIN shown AS s ON s.task_id = c.task_id
CROSS JOIN grid AS g
CROSS JOIN recording AS r
LEFT JOIN cells AS p ON p.task_id = c.task_id AND p.step = c.step AND p.state = 'path'
WHERE c.ns > 0
ORDER BY s.rank, c.step, time_ns DESC, c.state
