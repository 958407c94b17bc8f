-- Single-threaded work
-- One thread works while the other workers wait, or the command uses only one thread although the machine has several CPUs.
-- needs:  critical_path, run_states, processes, environment, samples, stack_places
-- param:  min_share DOUBLE = 0.5          Minimum share of the time of the command in which only one thread works.
-- param:  min_time_ns BIGINT = 200000000  Minimum time in which only one works although there are other workers [ns].
-- param:  min_alone_ns BIGINT = 1000000000 Minimum time of a command without such others [ns].
-- param:  min_alone DOUBLE = 0.8          Minimum share of its time in which only one works, where it has no such others.
-- param:  min_worker DOUBLE = 0.08        Share of the CPU time of the busiest thread from which on a thread is a worker.
-- column: subject VARCHAR       Empty: it is about the command.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the time of the command in which only one thread worked [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time in which only one thread worked [ns].
-- column: gain_ns BIGINT        Potential saving, if those that take turns worked side by side; empty and 0: not known whether one thread's work can be divided [ns].
-- column: certainty VARCHAR     medium where other workers waited; low where there is only one.
-- column: variant VARCHAR       one, turns, alone or chain.
-- column: process INTEGER       Process id of the thread that worked alone longest.
-- column: explained_by VARCHAR  Rules whose findings explain this one.
-- column: thread VARCHAR        Program and thread id of that thread.
-- column: thread_share DOUBLE   Share of the time of the command that this thread worked alone [%].
-- column: function VARCHAR      Where it was sampled most often meanwhile: a function of the program; `unknown` without samples.
-- column: workers BIGINT        Threads that worked alongside it.
-- column: cpus BIGINT           CPUs of the machine.
-- says: finding.one en    For {value} of its time, {cost_ns}, only one thread of the command works: mostly {thread} ({thread_share} of the time), in {function}. {workers:other worker} {workers?waits|wait} in the meantime.
-- says: finding.one ja    実行時間の {value}（{cost_ns}）は 1 スレッドだけが動いています。主に {thread}（実行時間の {thread_share}）の {function:ja} です。その間、ほかの {workers} 個は待っています。
-- says: finding.turns en  For {value} of its time, {cost_ns}, only one thread of the command works at a time, in turns: mostly {thread}, {thread_share} of the time, in {function}. {workers:other worker} {workers?waits|wait} in the meantime.
-- says: finding.turns ja  実行時間の {value}（{cost_ns}）は、スレッドが交替で 1 個ずつ動いています。最も長いのは {thread}（実行時間の {thread_share}）の {function:ja} です。その間、ほかの {workers} 個は待っています。
-- says: finding.alone en  The command uses a single thread for {value} of its time, {cost_ns}, on a machine with {cpus:CPU}: {thread}, mostly in {function}.
-- says: finding.alone ja  {cpus} 個の CPU があるマシンで、実行時間の {value}（{cost_ns}）を 1 スレッドだけで処理しています。スレッドは {thread}、主な関数は {function:ja} です。
-- says: finding.chain en  The processes of the command run one after another for {value} of its time, {cost_ns}, on a machine with {cpus:CPU}. The longest is {thread}, {thread_share} of the time.
-- says: finding.chain ja  {cpus} 個の CPU があるマシンで、実行時間の {value}（{cost_ns}）は、プロセスが 1 個ずつ順に動いています。最も長いのは {thread}（実行時間の {thread_share}）です。
-- says: ok en             For {value} of its time, {cost_ns}, only one thread of the command works.
-- says: ok ja             1 スレッドだけが動いているのは実行時間の {value}（{cost_ns}）です。
-- says: unknown en        The recording does not show when the threads of a command ran.
-- says: unknown ja        コマンドのスレッドの実行時刻が記録にありません。
-- at_least: duration min_time_ns, min_alone_ns
-- evidence: time/where --process {process}
-- tags:   time, processes, cpu
WITH path AS (
    SELECT sum(p.dur_ns) AS all_ns FROM critical_path AS p
), machine AS (
    SELECT max(CAST(e.value AS BIGINT)) AS cpus
    FROM environment AS e
    WHERE e.section = 'cpu' AND e.name = 'online' AND regexp_extract(e.value, '^[0-9]+$') <> ''
), away AS (
    SELECT r.task_id, sum(r.dur_ns) AS ns FROM run_states AS r GROUP BY r.task_id
), lives AS (
    SELECT t.task_id, t.process_id, t.pid, t.ppid, t.comm, t.start_ts_ns, t.end_ts_ns, t.end_ts_ns - t.start_ts_ns - coalesce(a.ns, 0) AS cpu_ns
    FROM processes AS t LEFT JOIN away AS a ON a.task_id = t.task_id
    WHERE t.end_ts_ns IS NOT NULL
), of_runtime AS (
    -- Threads that the runtime of Java, .NET or JavaScript has for itself: they compile and collect garbage, and run nothing of the program.
    SELECT s.task_id
    FROM samples AS s INNER JOIN stack_places AS p ON p.stack_id = s.stack_id
    GROUP BY s.task_id
    HAVING 2 * sum(CASE WHEN NOT p.own AND regexp_extract(p.object, '(^|/)(libjvm|libcoreclr|libclrjit|libclrgc|libnode|node)([.]so[0-9.]*)?$') <> ''
        THEN 1 ELSE 0 END) >= count(*)
), workers AS (
    SELECT l.* FROM lives AS l
    WHERE l.cpu_ns >= $min_worker * (SELECT max(b.cpu_ns) FROM lives AS b) AND l.cpu_ns > 0
        AND l.task_id NOT IN (SELECT r.task_id FROM of_runtime AS r)
), woken AS (
    SELECT r.task_id, r.waker_task_id FROM run_states AS r
    WHERE r.cause = 'pipe' AND r.wait_ns > 0 AND r.waker_task_id IS NOT NULL
    GROUP BY r.task_id, r.waker_task_id
    HAVING count(*) >= 3
), fed AS (
    -- Processes that wait for each other at a pipe: one works on what the other makes.
    SELECT w.task_id, w.waker_task_id FROM woken AS w
    UNION
    SELECT w.waker_task_id, w.task_id FROM woken AS w
), beside AS (
    -- Workers that live beside a worker for half of its life: threads of its process, or processes of the same program from the same parent, or several
    -- children of it. Programs of a pipeline work on one thing after the other and cannot share it.
    SELECT w.task_id, sum(CASE WHEN o.ppid = w.pid AND o.process_id <> w.process_id THEN 0 ELSE 1 END) AS peers, count(*) AS others
    FROM workers AS w
    INNER JOIN workers AS o ON o.task_id <> w.task_id AND (o.process_id = w.process_id OR (coalesce(o.comm, '') = coalesce(w.comm, '') AND (o.ppid = w.ppid OR o.ppid = w.pid)))
    LEFT JOIN fed AS f ON f.task_id = w.task_id AND f.waker_task_id = o.task_id AND o.ppid = w.ppid AND o.process_id <> w.process_id
    WHERE f.task_id IS NULL AND 2 * (least(w.end_ts_ns, o.end_ts_ns) - greatest(w.start_ts_ns, o.start_ts_ns)) >= w.end_ts_ns - w.start_ts_ns
    GROUP BY w.task_id
), changes AS (
    -- When a thread begins and ceases to have work, and to run. While only one has work, the sum of ids is its id.
    SELECT l.task_id, l.start_ts_ns AS at_ns, 1 AS working, 1 AS running FROM lives AS l
    UNION ALL
    SELECT l.task_id, l.end_ts_ns, -1, -1 FROM lives AS l
    UNION ALL
    SELECT r.task_id, r.ts_ns, CASE WHEN r.wait_ns > 0 THEN -1 ELSE 0 END, -1 FROM run_states AS r INNER JOIN lives AS l ON l.task_id = r.task_id
    UNION ALL
    SELECT r.task_id, r.ts_ns + r.wait_ns, 1, 0 FROM run_states AS r INNER JOIN lives AS l ON l.task_id = r.task_id WHERE r.wait_ns > 0
    UNION ALL
    SELECT r.task_id, r.ts_ns + r.dur_ns, 0, 1 FROM run_states AS r INNER JOIN lives AS l ON l.task_id = r.task_id
), moments AS (
    SELECT c.at_ns, sum(c.working) AS working, sum(c.running) AS running, sum(c.working * c.task_id) AS ids FROM changes AS c GROUP BY c.at_ns
), states AS (
    SELECT m.at_ns, -lag(-m.at_ns, 1, -m.at_ns) OVER (ORDER BY m.at_ns DESC) AS until_ns,
        sum(m.working) OVER (ORDER BY m.at_ns) AS working, sum(m.running) OVER (ORDER BY m.at_ns) AS running, sum(m.ids) OVER (ORDER BY m.at_ns) AS task_id
    FROM moments AS m
), alone AS (
    SELECT s.task_id, s.at_ns, s.until_ns FROM states AS s WHERE s.working = 1 AND s.running = 1 AND s.until_ns > s.at_ns
), by_thread AS (
    SELECT a.task_id, sum(a.until_ns - a.at_ns) AS ns,
        sum(CASE WHEN b.peers >= 1 OR b.others >= 2 THEN a.until_ns - a.at_ns ELSE 0 END) AS beside_ns, max(b.others) AS others
    FROM alone AS a LEFT JOIN beside AS b ON b.task_id = a.task_id
    GROUP BY a.task_id
), summed AS (
    SELECT coalesce(sum(b.ns), 0) AS ns, coalesce(sum(b.beside_ns), 0) AS beside_ns, coalesce(max(b.ns), 0) AS most_ns, coalesce(max(b.beside_ns), 0) AS most_beside_ns,
        arg_max(b.task_id, b.ns) AS task_id, arg_max(b.task_id, b.beside_ns) AS task_beside, max(b.others) AS others
    FROM by_thread AS b
), program AS (
    SELECT sum(t.user_ns) AS user_ns, sum(t.system_ns) AS system_ns FROM processes AS t
), decided AS (
    SELECT s.*, p.all_ns, m.cpus, least(m.cpus, 1 + s.others) AS parts,
        s.beside_ns >= $min_time_ns AND s.beside_ns >= $min_share * p.all_ns AS has_crew,
        s.ns >= $min_alone_ns AND s.ns >= $min_alone * p.all_ns AND 2 * s.beside_ns < s.ns AND coalesce(g.user_ns >= g.system_ns, true) AS has_none
    FROM summed AS s CROSS JOIN path AS p CROSS JOIN machine AS m CROSS JOIN program AS g
    WHERE p.all_ns > 0 AND m.cpus > 0
), judged AS (
    SELECT d.*, d.cpus > 1 AND (d.has_crew OR d.has_none) AS is_found, CASE WHEN d.has_crew THEN d.task_beside ELSE d.task_id END AS who,
        CASE WHEN d.has_crew THEN d.beside_ns ELSE d.ns END AS cost_ns, CASE WHEN d.has_crew THEN d.most_beside_ns ELSE d.most_ns END AS who_ns
    FROM decided AS d
), marks AS (
    SELECT s.task_id, s.ts_ns AS at_ns, 0 AS step, 1 AS is_sample, s.stack_id FROM samples AS s
    UNION ALL
    SELECT a.task_id, a.at_ns, 1, 0, NULL FROM alone AS a
    UNION ALL
    SELECT a.task_id, a.until_ns, -1, 0, NULL FROM alone AS a
), met AS (
    SELECT m.task_id, m.at_ns, m.is_sample, m.stack_id, sum(m.step) OVER (ORDER BY m.task_id, m.at_ns) AS under_way
    FROM marks AS m
), places AS (
    SELECT m.task_id, coalesce(p.function, regexp_extract(p.object, '[^/]*$')) AS function, count(*) AS number
    FROM met AS m INNER JOIN stack_places AS p ON p.stack_id = m.stack_id
    WHERE m.is_sample = 1 AND m.under_way > 0
    GROUP BY m.task_id, coalesce(p.function, regexp_extract(p.object, '[^/]*$'))
), top_places AS (
    SELECT p.task_id, arg_max(p.function, p.number) AS function FROM places AS p WHERE p.function IS NOT NULL GROUP BY p.task_id
), named AS (
    SELECT j.*, t.pid, f.function, concat(coalesce(t.comm, '?'), ' ', CAST(t.tid AS VARCHAR)) AS thread,
        CASE WHEN j.has_crew THEN CASE WHEN 2 * j.who_ns >= j.cost_ns THEN 'one' ELSE 'turns' END
            WHEN 2 * j.who_ns >= j.cost_ns THEN 'alone' ELSE 'chain' END AS variant
    FROM judged AS j LEFT JOIN processes AS t ON t.task_id = j.who LEFT JOIN top_places AS f ON f.task_id = j.who
)
SELECT
    CAST(NULL AS VARCHAR) AS subject,
    CASE WHEN n.all_ns IS NULL THEN 'unknown' WHEN n.is_found THEN 'finding' ELSE 'ok' END AS status,
    round(1e2 * n.cost_ns / n.all_ns, 1) AS value,
    1e2 * CASE WHEN n.is_found AND NOT n.has_crew THEN $min_alone ELSE $min_share END AS limit_value,
    CAST(n.cost_ns AS BIGINT) AS cost_ns,
    CASE WHEN n.is_found THEN CASE WHEN n.variant = 'turns' THEN CAST(floor(n.cost_ns * (1e0 - 1e0 / n.parts)) AS BIGINT) WHEN n.variant <> 'one' THEN 0 END END AS gain_ns,
    CASE WHEN n.is_found THEN CASE WHEN n.has_crew THEN 'medium' ELSE 'low' END END AS certainty,
    CASE WHEN n.is_found THEN n.variant END AS variant,
    CASE WHEN n.is_found THEN n.pid END AS process,
    CASE WHEN n.is_found THEN CASE n.variant WHEN 'chain' THEN 'processes/process_creation' WHEN 'alone' THEN 'time/user_code'
        ELSE 'locks/contention,locks/futexes,io/shared_file,io/single_stream' END END AS explained_by,
    n.thread,
    round(1e2 * n.who_ns / n.all_ns, 1) AS thread_share,
    coalesce(n.function, 'unknown') AS function,
    CAST(n.others AS BIGINT) AS workers,
    n.cpus
FROM (SELECT 1 AS one) AS o
LEFT JOIN named AS n ON o.one = 1
