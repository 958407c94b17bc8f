-- Where the time went
-- The time of the command along its critical path: at each moment, the thread that determined when the command ended. Below it, every thread
-- from its start to its end. The parts add up to the time of the command, and of each thread.
-- needs:  critical_path, run_states, calls, processes, paths, recording
-- uses:   file_faults, samples, stack_places, kernel_activities, locks, sockets
-- else:   time/calls
-- param:  least_samples BIGINT = 10   With fewer samples, the rest of the CPU time is not split.
-- column: process VARCHAR   Program and process id; empty: the command as a whole.
-- column: tid INTEGER       Thread id.
-- column: part VARCHAR      Where the time went.
-- column: detail VARCHAR    What took most of this time, and its share of the part.
-- column: time_ns BIGINT    Time of the part [ns].
-- column: share DOUBLE      Share of the time of the command, or of the thread.
-- column: evidence VARCHAR  The analysis that shows the details.
-- sums:   time_ns
-- match:  process, part
-- chart:  bars x=part y=time_ns title="Where the time went" title_ja="時間の内訳"
-- tags:   time, processes
WITH lives AS (
    -- A thread that lives on has its time until the recording ends.
    SELECT p.task_id, p.start_ts_ns, coalesce(p.end_ts_ns, r.started_ns + r.duration_ns) AS end_ts_ns
    FROM processes AS p CROSS JOIN recording AS r
), calls_and_faults AS (
    -- What the kernel did for a thread. A call that never returned lasted until the end of its thread.
    SELECT c.task_id, c.ts_ns, coalesce(c.dur_ns, p.end_ts_ns - c.ts_ns) AS dur_ns, c.call, c.class, c.path_id
    FROM calls AS c INNER JOIN lives AS p ON p.task_id = c.task_id
    WHERE c.via IS NULL
    UNION ALL
    SELECT f.task_id, f.ts_ns, f.dur_ns, 'page fault', 'fault', f.path_id
    FROM file_faults AS f
    WHERE NOT f.in_call
), call_bounds AS (
    SELECT c.task_id, min(c.ts_ns) AS first_ns, max(c.ts_ns + c.dur_ns) AS last_ns FROM calls_and_faults AS c WHERE c.class <> 'fault' GROUP BY c.task_id
), in_calls AS (
    -- A call that was in progress when the recording began or ended has no row: nothing can be taken off it.
    SELECT r.task_id, r.call, r.class, r.path_id, r.ts_ns, r.dur_ns
    FROM run_states AS r
    INNER JOIN call_bounds AS b ON b.task_id = r.task_id
    WHERE r.call IS NOT NULL AND r.ts_ns >= b.first_ns AND r.ts_ns < b.last_ns
), path_steps AS (
    -- Each row of the critical path, and whether it is the first one of its thread there.
    SELECT p.task_id, p.ts_ns, p.ts_ns + p.dur_ns AS until_ns,
        CASE WHEN lag(p.task_id, 1, -1) OVER (ORDER BY p.ts_ns) = p.task_id THEN 0 ELSE 1 END AS is_first
    FROM critical_path AS p
), path_stays AS (
    -- From when until when it stays with one thread.
    SELECT n.task_id, min(n.ts_ns) AS ts_ns, max(n.until_ns) AS until_ns
    FROM (SELECT s.task_id, s.ts_ns, s.until_ns, sum(s.is_first) OVER (ORDER BY s.ts_ns) AS stay FROM path_steps AS s) AS n
    GROUP BY n.task_id, n.stay
), path_tasks AS (
    -- Where there are few such times, calls are compared with each of them; else all is sorted, which takes longer.
    SELECT s.task_id, CASE WHEN count(*) <= 8 THEN 1 ELSE 0 END AS has_few FROM path_stays AS s GROUP BY s.task_id
), sorted_work AS (
    SELECT w.task_id, w.ts_ns, w.dur_ns, w.call, w.class, w.path_id
    FROM calls_and_faults AS w
    INNER JOIN path_tasks AS k ON k.task_id = w.task_id
    WHERE k.has_few = 0 OR w.class = 'fault'
), few_stays AS (
    SELECT s.task_id, s.ts_ns, s.until_ns
    FROM path_stays AS s
    INNER JOIN path_tasks AS k ON k.task_id = s.task_id
    WHERE k.has_few = 1
), path_marks AS (
    -- Moments of the threads on the critical path: where a piece of it that ran on a CPU begins and ends, and where a call does.
    SELECT p.task_id, p.ts_ns AS at_ns, 1 AS step, 0 AS sign, NULL AS call, NULL AS class, NULL AS path_id
    FROM critical_path AS p
    WHERE p.part = 'running'
    UNION ALL
    SELECT p.task_id, p.ts_ns + p.dur_ns, -1, 0, NULL, NULL, NULL
    FROM critical_path AS p
    WHERE p.part = 'running'
    UNION ALL
    SELECT w.task_id, w.ts_ns, 0, -1, w.call, w.class, w.path_id
    FROM sorted_work AS w
    UNION ALL
    SELECT w.task_id, w.ts_ns + w.dur_ns, 0, 1, w.call, w.class, w.path_id
    FROM sorted_work AS w
), path_before AS (
    -- How much of the path had run until then: ends less beginnings, and of a piece under way what of it is over. What threads sorted before
    -- this one ran is in it, too, and cancels out between the two moments of a call: sums for each thread would take the engine five times as long.
    SELECT m.call, m.class, m.path_id, m.sign,
        m.sign * (sum(-m.step * m.at_ns) OVER (ORDER BY m.task_id, m.at_ns) + m.at_ns * sum(m.step) OVER (ORDER BY m.task_id, m.at_ns)) AS time_ns
    FROM path_marks AS m
), fault_marks AS (
    -- Moments of faults outside of calls, and of times on no CPU that lie in no call either.
    SELECT r.task_id, r.ts_ns AS at_ns, 1 AS step, 0 AS sign, NULL AS path_id FROM run_states AS r WHERE r.call IS NULL
    UNION ALL
    SELECT r.task_id, r.ts_ns + r.dur_ns, -1, 0, NULL FROM run_states AS r WHERE r.call IS NULL
    UNION ALL
    SELECT f.task_id, f.ts_ns, 0, -1, f.path_id FROM file_faults AS f WHERE NOT f.in_call
    UNION ALL
    SELECT f.task_id, f.ts_ns + f.dur_ns, 0, 1, f.path_id FROM file_faults AS f WHERE NOT f.in_call
), fault_before AS (
    -- How long its thread had been on no CPU until then, counted as in path_before.
    SELECT m.task_id, m.path_id,
        m.sign * (sum(-m.step * m.at_ns) OVER (ORDER BY m.task_id, m.at_ns) + m.at_ns * sum(m.step) OVER (ORDER BY m.task_id, m.at_ns)) AS time_ns
    FROM fault_marks AS m
), uses AS (
    -- Time by call, and time on no CPU: of the path (no thread), and of each thread. What a thread does not run is taken off its calls.
    SELECT NULL AS task_id, b.call, b.class, b.path_id, NULL AS stack_id, NULL AS lock_id, NULL AS cause, sum(b.time_ns) AS time_ns
    FROM path_before AS b
    WHERE b.sign <> 0
    GROUP BY b.call, b.class, b.path_id
    UNION ALL
    SELECT NULL, w.call, w.class, w.path_id, NULL, NULL, NULL, sum(w.sign * (least(w.until_ns, s.until_ns) - greatest(w.ts_ns, s.ts_ns)))
    FROM (
        SELECT c.task_id, c.call, c.class, c.path_id, c.ts_ns, c.ts_ns + c.dur_ns AS until_ns, 1 AS sign
        FROM calls_and_faults AS c WHERE c.class <> 'fault'
        UNION ALL
        SELECT r.task_id, r.call, r.class, r.path_id, r.ts_ns, r.ts_ns + r.dur_ns, -1 FROM in_calls AS r
    ) AS w
    INNER JOIN few_stays AS s ON s.task_id = w.task_id
    WHERE w.ts_ns < s.until_ns AND w.until_ns > s.ts_ns
    GROUP BY w.call, w.class, w.path_id
    UNION ALL
    SELECT NULL, p.call, p.class, p.path_id, p.stack_id, CASE WHEN p.cause IS NOT NULL THEN p.lock_id END, coalesce(p.cause, 'CPU'), sum(p.dur_ns)
    FROM critical_path AS p
    WHERE p.part <> 'running'
    GROUP BY p.call, p.class, p.path_id, p.stack_id, CASE WHEN p.cause IS NOT NULL THEN p.lock_id END, coalesce(p.cause, 'CPU')
    UNION ALL
    SELECT w.task_id, w.call, w.class, w.path_id, NULL, NULL, NULL, sum(w.dur_ns)
    FROM (
        SELECT c.task_id, c.call, c.class, c.path_id, c.dur_ns FROM calls_and_faults AS c
        UNION ALL
        SELECT r.task_id, r.call, r.class, r.path_id, -r.dur_ns FROM in_calls AS r
        UNION ALL
        SELECT b.task_id, 'page fault', 'fault', b.path_id, -b.time_ns FROM fault_before AS b
    ) AS w
    GROUP BY w.task_id, w.call, w.class, w.path_id
    UNION ALL
    SELECT r.task_id, r.call, r.class, r.path_id, r.stack_id, r.lock_id, r.cause, sum(r.wait_ns)
    FROM run_states AS r
    WHERE r.wait_ns > 0
    GROUP BY r.task_id, r.call, r.class, r.path_id, r.stack_id, r.lock_id, r.cause
    UNION ALL
    SELECT r.task_id, r.call, r.class, r.path_id, NULL, NULL, 'CPU', sum(r.runnable_ns)
    FROM run_states AS r
    WHERE r.runnable_ns > 0
    GROUP BY r.task_id, r.call, r.class, r.path_id
), named AS (
    SELECT u.task_id, u.time_ns,
        CASE
            WHEN u.cause = 'CPU' THEN 'waiting for a CPU'
            WHEN u.cause = 'unknown' THEN 'unexplained'
            WHEN u.cause IS NOT NULL THEN concat('waiting: ', u.cause)
            WHEN u.class = 'fault' THEN 'kernel: page faults of files'
            WHEN o.kind = 'socket' OR u.class = 'socket' THEN 'kernel: network'
            WHEN o.kind = 'pipe' THEN 'kernel: pipes'
            WHEN u.class IN ('read', 'write', 'copy') THEN 'kernel: file data'
            WHEN u.class IN ('open', 'close', 'seek', 'stat', 'dir', 'name', 'attr', 'sync', 'control') THEN 'kernel: file system'
            WHEN u.class IN ('map', 'memory') THEN 'kernel: memory'
            WHEN u.class = 'process' THEN 'kernel: processes'
            ELSE 'kernel: other calls'
        END AS part,
        CASE
            WHEN l.name IS NOT NULL THEN concat(coalesce(u.call, 'page fault'), ' ', l.name)
            WHEN u.cause IS NOT NULL AND o.path IS NOT NULL THEN concat(coalesce(u.call, 'page fault'), ' ', coalesce(e.remote, e.local, o.path))
            WHEN u.cause IS NOT NULL AND u.cause <> 'CPU' AND a.own THEN concat(u.call, ' in ', coalesce(a.function, '?'),
                CASE WHEN a.source IS NOT NULL THEN concat(' ', regexp_extract(a.source, '[^/]*$')) ELSE '' END)
            WHEN u.cause = 'CPU' THEN coalesce(u.call, 'user code')
            WHEN u.class = 'fault' THEN o.path
            ELSE u.call
        END AS what
    FROM uses AS u
    LEFT JOIN paths AS o ON o.path_id = u.path_id
    LEFT JOIN stack_places AS a ON a.stack_id = u.stack_id
    LEFT JOIN locks AS l ON l.lock_id = u.lock_id
    LEFT JOIN sockets AS e ON e.path_id = u.path_id
), whats AS (
    SELECT n.task_id, n.part, n.what, CAST(sum(n.time_ns) AS BIGINT) AS time_ns
    FROM named AS n
    GROUP BY n.task_id, n.part, n.what
), parts AS (
    -- Of several that took equally long the first by name.
    SELECT w.task_id, w.part, sum(w.time_ns) AS time_ns, min(CASE WHEN w.time_ns = w.what_ns THEN w.what END) AS what, max(w.what_ns) AS what_ns
    FROM (
        SELECT n.task_id, n.part, n.what, n.time_ns,
            max(CASE WHEN n.what IS NOT NULL THEN n.time_ns END) OVER (PARTITION BY n.task_id, n.part) AS what_ns
        FROM whats AS n
    ) AS w
    GROUP BY w.task_id, w.part
), spans AS (
    SELECT NULL AS task_id, CAST(sum(p.dur_ns) AS BIGINT) AS time_ns FROM critical_path AS p HAVING count(*) > 0
    UNION ALL
    SELECT p.task_id, p.end_ts_ns - p.start_ts_ns FROM lives AS p WHERE p.end_ts_ns > p.start_ts_ns
), rest AS (
    -- What is left of the time on a CPU: neither in calls nor in faults of files, of which the second line has the time.
    SELECT s.task_id,
        s.time_ns - CAST(coalesce(sum(p.time_ns), 0) AS BIGINT) AS time_ns,
        CAST(coalesce(sum(CASE WHEN p.part = 'kernel: page faults of files' THEN p.time_ns END), 0) AS BIGINT) AS faults_ns
    FROM spans AS s
    LEFT JOIN parts AS p ON coalesce(p.task_id, -1) = coalesce(s.task_id, -1)
    GROUP BY s.task_id, s.time_ns
), sample_marks AS (
    -- Samples outside of calls, and where pieces of the path that ran begin and end: a sample lies on it where one is under way.
    SELECT s.task_id, s.ts_ns AS at_ns, 0 AS step, 1 AS is_sample, s.in_kernel, s.stack_id, s.kernel_stack_id
    FROM samples AS s
    WHERE s.call IS NULL
    UNION ALL
    SELECT p.task_id, p.ts_ns, 1, 0, false, NULL, NULL FROM critical_path AS p WHERE p.part = 'running'
    UNION ALL
    SELECT p.task_id, p.ts_ns + p.dur_ns, -1, 0, false, NULL, NULL FROM critical_path AS p WHERE p.part = 'running'
), samples_met AS (
    SELECT m.task_id, m.is_sample, m.in_kernel, m.stack_id, m.kernel_stack_id, sum(m.step) OVER (ORDER BY m.task_id, m.at_ns) AS under_way
    FROM sample_marks AS m
), samples_of AS (
    SELECT NULL AS task_id, m.in_kernel, m.stack_id, m.kernel_stack_id FROM samples_met AS m WHERE m.is_sample = 1 AND m.under_way > 0
    UNION ALL
    SELECT m.task_id, m.in_kernel, m.stack_id, m.kernel_stack_id FROM samples_met AS m WHERE m.is_sample = 1
), samples_named AS (
    SELECT s.task_id,
        CASE
            WHEN NOT s.in_kernel THEN 'user code'
            WHEN k.entry = 'page fault' THEN 'kernel: page faults of memory'
            WHEN k.entry = 'interrupt' THEN 'kernel: interrupts'
            ELSE 'kernel: other'
        END AS part,
        CASE
            WHEN s.in_kernel AND k.entry <> 'page fault' THEN k.function
            WHEN p.source IS NOT NULL AND p.function IS NOT NULL THEN concat(p.function, ' ', regexp_extract(p.source, '[^/]*$'))
            ELSE coalesce(p.function, regexp_extract(p.object, '[^/]*$'))
        END AS what
    FROM samples_of AS s
    LEFT JOIN stack_places AS p ON p.stack_id = s.stack_id
    LEFT JOIN kernel_activities AS k ON k.stack_id = s.kernel_stack_id
), sampled AS (
    -- How many there are of each kind, and at which places of the program.
    SELECT s.task_id, s.part, s.what, count(*) AS number
    FROM samples_named AS s
    GROUP BY s.task_id, s.part, s.what
), numbered AS (
    SELECT s.task_id, s.part, s.what, s.number,
        sum(s.number) OVER (PARTITION BY s.task_id) AS of_all,
        sum(s.number) OVER (PARTITION BY s.task_id, s.part) AS of_part,
        row_number() OVER (PARTITION BY s.task_id, s.part ORDER BY CASE WHEN s.what IS NULL THEN 1 ELSE 0 END, s.number DESC, s.what) AS place
    FROM sampled AS s
), shares AS (
    SELECT n.task_id, n.part, max(n.of_part) AS number, max(n.of_all) AS of_all,
        max(CASE WHEN n.place = 1 AND n.what IS NOT NULL THEN concat(n.what, ' (', CAST(CAST(round(1e2 * n.number / n.of_part) AS BIGINT) AS VARCHAR), ' %)') END)
            AS first,
        max(CASE WHEN n.place = 2 AND n.what IS NOT NULL THEN concat(', ', n.what, ' (', CAST(CAST(round(1e2 * n.number / n.of_part) AS BIGINT) AS VARCHAR), ' %)') END)
            AS second
    FROM numbered AS n
    WHERE n.of_all >= $least_samples
    GROUP BY n.task_id, n.part
), kernel_rest AS (
    -- The same part of the time as of the samples. Faults of files are among them.
    SELECT s.task_id, s.part, s.first AS detail,
        CAST(greatest(0, least(r.time_ns, round(1e0 * (r.time_ns + r.faults_ns) * s.number / s.of_all)
            - CASE WHEN s.part = 'kernel: page faults of memory' THEN r.faults_ns ELSE 0 END)) AS BIGINT) AS time_ns
    FROM shares AS s
    INNER JOIN rest AS r ON coalesce(r.task_id, -1) = coalesce(s.task_id, -1)
    WHERE s.part <> 'user code'
), rows_of_all AS (
    SELECT p.task_id, p.part,
        CASE WHEN p.what_ns > 0 AND p.time_ns > 0 THEN concat(p.what, ' (', CAST(CAST(round(1e2 * p.what_ns / p.time_ns) AS BIGINT) AS VARCHAR), ' %)')
            END AS detail,
        CAST(p.time_ns AS BIGINT) AS time_ns
    FROM parts AS p
    UNION ALL
    SELECT k.task_id, k.part, k.detail, k.time_ns FROM kernel_rest AS k
    UNION ALL
    SELECT r.task_id, 'user code', CASE WHEN u.first IS NOT NULL THEN concat(u.first, coalesce(u.second, '')) END, r.time_ns - CAST(coalesce((
        SELECT sum(k.time_ns) FROM kernel_rest AS k WHERE coalesce(k.task_id, -1) = coalesce(r.task_id, -1)), 0) AS BIGINT)
    FROM rest AS r
    LEFT JOIN shares AS u ON u.part = 'user code' AND coalesce(u.task_id, -1) = coalesce(r.task_id, -1)
)
SELECT
    CASE WHEN r.task_id IS NOT NULL THEN concat(coalesce(t.comm, '?'), ' ', CAST(t.pid AS VARCHAR)) END AS process,
    t.tid,
    r.part,
    r.detail,
    r.time_ns,
    CASE WHEN s.time_ns > 0 THEN round(1e0 * r.time_ns / s.time_ns, 4) END AS share,
    CASE WHEN r.part = 'kernel: page faults of files' THEN 'io/mapped_files'
        WHEN r.part IN ('kernel: page faults of memory', 'kernel: interrupts', 'kernel: other') THEN 'cpu/kernel'
        WHEN r.part = 'user code' AND r.detail IS NOT NULL THEN 'cpu/lines' WHEN starts_with(r.part, 'kernel') THEN 'io/durations'
        WHEN r.part = 'waiting: kernel lock' THEN 'locks/share_by_lock' WHEN starts_with(r.part, 'waiting') THEN 'time/waits' END AS evidence
FROM rows_of_all AS r
INNER JOIN spans AS s ON coalesce(s.task_id, -1) = coalesce(r.task_id, -1)
LEFT JOIN processes AS t ON t.task_id = r.task_id
WHERE r.time_ns <> 0
ORDER BY coalesce(t.tree_order, -1), r.time_ns DESC, r.part
