-- Critical path
-- How the time along the critical path of the command was spent: functions, system calls, page faults, locks, other waits. The rows add up to it.
-- needs:  critical_path, calls, processes, paths
-- uses:   file_faults, samples, stacks, stack_places, kernel_activities, locks
-- column: kind VARCHAR    function (code of the program), call or fault (the kernel on a CPU), kernel (the same without a call), lock, wait.
-- column: name VARCHAR    The function, call, activity, or cause and call.
-- column: place VARCHAR   Function of the application's own code that was executing; empty if unknown.
-- column: time_ns BIGINT  Time on the critical path [ns].
-- column: share DOUBLE    Share of the whole path.
-- sums:   time_ns
-- match:  kind, name, place
-- chart:  bars x=name y=time_ns color=kind title="Time along the critical path" title_ja="クリティカルパス上の時間"
-- tags:   time, processes
WITH work AS (
    -- A call that never returned lasted until the end of its thread.
    SELECT c.task_id, c.ts_ns, coalesce(c.ts_ns + c.dur_ns, t.end_ts_ns) AS until_ns, 'call' AS kind, c.call AS name
    FROM calls AS c
    INNER JOIN processes AS t ON t.task_id = c.task_id
    WHERE c.via IS NULL
    UNION ALL
    SELECT f.task_id, f.ts_ns, f.ts_ns + f.dur_ns, 'fault', coalesce(o.path, '?')
    FROM file_faults AS f
    LEFT JOIN paths AS o ON o.path_id = f.path_id
    WHERE NOT f.in_call
), running AS (
    SELECT p.task_id, p.ts_ns, p.ts_ns + p.dur_ns AS until_ns, p.dur_ns FROM critical_path AS p WHERE p.part = 'running'
), marks AS (
    -- Where a piece of the path that ran on a CPU begins and ends, and where a call does.
    SELECT r.task_id, r.ts_ns AS at_ns, 1 AS step, 0 AS sign, NULL AS kind, NULL AS name FROM running AS r
    UNION ALL
    SELECT r.task_id, r.until_ns, -1, 0, NULL, NULL FROM running AS r
    UNION ALL
    SELECT w.task_id, w.ts_ns, 0, -1, w.kind, w.name FROM work AS w
    UNION ALL
    SELECT w.task_id, w.until_ns, 0, 1, w.kind, w.name FROM work AS w
), before AS (
    -- How much of the path had run until then; time/where explains the sum.
    SELECT m.kind, m.name,
        m.sign * (sum(-m.step * m.at_ns) OVER (ORDER BY m.task_id, m.at_ns) + m.at_ns * sum(m.step) OVER (ORDER BY m.task_id, m.at_ns)) AS time_ns
    FROM marks AS m
), in_kernel AS (
    SELECT b.kind, b.name, sum(b.time_ns) AS time_ns FROM before AS b WHERE b.kind IS NOT NULL GROUP BY b.kind, b.name
), waits AS (
    SELECT
        CASE WHEN l.lock_id IS NOT NULL THEN 'lock' ELSE 'wait' END AS kind,
        concat(CASE WHEN p.part = 'runnable' THEN 'for a CPU' ELSE coalesce(l.name, p.cause, 'not known') END,
            CASE WHEN p.call IS NULL THEN '' ELSE concat(', in ', p.call) END) AS name,
        CASE WHEN a.own THEN a.function END AS place,
        p.dur_ns
    FROM critical_path AS p
    LEFT JOIN locks AS l ON l.lock_id = p.lock_id AND p.cause IS NOT NULL
    LEFT JOIN stack_places AS a ON a.stack_id = p.stack_id
    WHERE p.part <> 'running'
), rest AS (
    -- On a CPU and in no call; at least nothing, as a call may overlap an interrupted one.
    SELECT greatest(0, coalesce((SELECT sum(r.dur_ns) FROM running AS r), 0) - coalesce((SELECT sum(k.time_ns) FROM in_kernel AS k), 0)) AS time_ns
), sample_marks AS (
    SELECT s.task_id, s.ts_ns AS at_ns, 0 AS step, 1 AS is_sample, s.in_kernel, s.stack_id, s.kernel_stack_id
    FROM samples AS s
    WHERE s.call IS NULL
    UNION ALL
    SELECT r.task_id, r.ts_ns, 1, 0, false, NULL, NULL FROM running AS r
    UNION ALL
    SELECT r.task_id, r.until_ns, -1, 0, false, NULL, NULL FROM running AS r
), met AS (
    -- A sample lies on the path where a piece of it is under way.
    SELECT m.is_sample, m.in_kernel, m.stack_id, m.kernel_stack_id, sum(m.step) OVER (ORDER BY m.task_id, m.at_ns) AS under_way
    FROM sample_marks AS m
), innermost AS (
    SELECT f.stack_id, f.function, f.object FROM stacks AS f WHERE f.frame = 0
), sampled AS (
    SELECT
        CASE WHEN m.in_kernel THEN 'kernel' ELSE 'function' END AS kind,
        CASE
            WHEN m.in_kernel AND k.entry IN ('page fault', 'interrupt') THEN k.entry
            WHEN m.in_kernel THEN coalesce(k.function, 'other')
            ELSE coalesce(f.function, regexp_extract(f.object, '[^/]*$'), '?')
        END AS name,
        CASE WHEN a.own THEN a.function END AS place,
        count(*) AS number
    FROM met AS m
    LEFT JOIN innermost AS f ON f.stack_id = m.stack_id
    LEFT JOIN stack_places AS a ON a.stack_id = m.stack_id
    LEFT JOIN kernel_activities AS k ON k.stack_id = m.kernel_stack_id
    WHERE m.is_sample = 1 AND m.under_way > 0
    GROUP BY 1, 2, 3
), all_samples AS (
    SELECT sum(s.number) AS number FROM sampled AS s
), parts AS (
    SELECT k.kind, k.name, NULL AS place, k.time_ns FROM in_kernel AS k
    UNION ALL
    SELECT w.kind, w.name, w.place, sum(w.dur_ns) FROM waits AS w GROUP BY w.kind, w.name, w.place
    UNION ALL
    SELECT s.kind, s.name, s.place, 1e0 * r.time_ns * s.number / a.number FROM sampled AS s CROSS JOIN all_samples AS a CROSS JOIN rest AS r
    UNION ALL
    SELECT 'function', 'not sampled', NULL, r.time_ns FROM rest AS r CROSS JOIN all_samples AS a WHERE a.number IS NULL
), whole AS (
    SELECT sum(p.dur_ns) AS time_ns FROM critical_path AS p
)
SELECT p.kind, p.name, p.place, CAST(round(p.time_ns) AS BIGINT) AS time_ns, round(1e0 * p.time_ns / w.time_ns, 4) AS share
FROM parts AS p
CROSS JOIN whole AS w
WHERE p.time_ns > 0
ORDER BY p.time_ns DESC, p.kind, p.name, p.place
