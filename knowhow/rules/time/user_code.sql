-- Bound by user code
-- The command computes for most of the time: its critical path is on a CPU, in code of the program and its libraries.
-- needs:  critical_path, samples, stack_places
-- uses:   processes, run_states
-- param:  min_share DOUBLE = 0.5           Minimum share of the time of the command, without waits for a CPU, that it computes.
-- param:  min_time_ns BIGINT = 200000000   Minimum time that it computes [ns].
-- param:  min_function DOUBLE = 0.4        Share of the time of the command from which on one function stands out.
-- param:  min_waiter DOUBLE = 0.3          Share of the time of the command from which on another program that waits for it is named.
-- param:  least_samples BIGINT = 30        With fewer samples on the critical path nothing is said.
-- column: subject VARCHAR       The function; empty: none stands out, or it has no name.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the time of the command, without waits for a CPU, that its critical path was in user code [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time in user code along the critical path, by samples [ns].
-- column: gain_ns BIGINT        Empty where one function stands out: not known how much faster it can be made; else 0 [ns].
-- column: certainty VARCHAR     low: that it computes is sure, but not that it could compute less.
-- column: variant VARCHAR       function or spread.
-- column: function VARCHAR      The function of the program that was sampled most often; of libraries and interpreters their own only where nothing of the program is known.
-- column: source VARCHAR        Its line that was sampled most often; `line not known` without debug information.
-- column: object VARCHAR        The executable, library or file that holds it.
-- column: called VARCHAR        The function of a library that it spends most time in; the function itself where most of the time is its own.
-- column: function_share DOUBLE Share of the time of the command in that function, and in what it calls of libraries [%].
-- column: thread VARCHAR        Name of the threads that take most of it.
-- column: waiter VARCHAR        The program that waits longest for the process that computes most, its call and what it waits for; `none` if that is short.
-- column: samples BIGINT        Samples in user code along the critical path.
-- says: finding.function en  The command computes for {value} of its time, {cost_ns}. One function, including the library code it calls, takes {function_share} of its time: {function} ({source}) in {object}, mostly in {called}. Main thread: {thread}. Waiting for it: {waiter}. From {samples:sample}.
-- says: finding.function ja  実行時間の {value}（{cost_ns}）はユーザーコードの計算です。{object:ja} の {function:ja}（{source:ja}）が、そこから呼ぶライブラリを含めて実行時間の {function_share} を占めます。その中で最も多いのは {called:ja} です。最も多いスレッドは {thread} です。それを待っているもの: {waiter:ja}。サンプルは {samples} 個です。
-- says: finding.spread en    The command computes for {value} of its time, {cost_ns}, in many functions or in functions without a name; the largest is {function} in {object} with {function_share}. Main thread: {thread}. Waiting for it: {waiter}. From {samples:sample}.
-- says: finding.spread ja    実行時間の {value}（{cost_ns}）はユーザーコードの計算で、多くの関数か、名前のない関数に分かれています。最大は {object:ja} の {function:ja}（{function_share}）です。最も多いスレッドは {thread} です。それを待っているもの: {waiter:ja}。サンプルは {samples} 個です。
-- says: ok en                User code takes {value} of the time of the command, {cost_ns}.
-- says: ok ja                ユーザーコードは実行時間の {value}（{cost_ns}）です。
-- says: unknown en           There are too few CPU samples along the critical path of the command.
-- says: unknown ja           コマンドのクリティカルパス上の CPU 時間のサンプルが足りません。
-- at_least: duration min_time_ns
-- evidence: cpu/lines
-- tags:   time, cpu
WITH path AS (
    -- Waits for a CPU say how busy the machine is, not what the command does.
    SELECT sum(p.dur_ns) AS all_ns FROM critical_path AS p WHERE p.part <> 'runnable'
), marks AS (
    -- A sample lies on the path where a piece of its thread that ran is under way.
    SELECT s.task_id, s.ts_ns AS at_ns, 0 AS step, 1 AS is_sample, s.period_ns, s.in_kernel, s.stack_id FROM samples AS s
    UNION ALL
    SELECT p.task_id, p.ts_ns, 1, 0, 0, false, NULL FROM critical_path AS p WHERE p.part = 'running'
    UNION ALL
    SELECT p.task_id, p.ts_ns + p.dur_ns, -1, 0, 0, false, NULL FROM critical_path AS p WHERE p.part = 'running'
), met AS (
    SELECT m.task_id, m.at_ns, m.is_sample, m.period_ns, m.in_kernel, m.stack_id,
        sum(m.step) OVER (ORDER BY m.task_id, m.at_ns) AS under_way
    FROM marks AS m
), on_path AS (
    SELECT m.task_id, m.in_kernel, m.stack_id, m.period_ns FROM met AS m WHERE m.is_sample = 1 AND m.under_way > 0
), whole AS (
    SELECT count(*) AS number, sum(CASE WHEN o.in_kernel THEN 0 ELSE o.period_ns END) AS user_ns, sum(CASE WHEN o.in_kernel THEN 0 ELSE 1 END) AS user_number
    FROM on_path AS o
), threads AS (
    -- Threads of one kind have one name and a number.
    SELECT coalesce(regexp_extract(t.thread_name, '^(.*?)[ #-]*[0-9]*$', 1), t.comm, '?') AS name, sum(o.period_ns) AS ns
    FROM on_path AS o INNER JOIN processes AS t ON t.task_id = o.task_id
    WHERE NOT o.in_kernel
    GROUP BY coalesce(regexp_extract(t.thread_name, '^(.*?)[ #-]*[0-9]*$', 1), t.comm, '?')
), top_task AS (
    SELECT o.task_id, sum(o.period_ns) AS ns FROM on_path AS o WHERE NOT o.in_kernel GROUP BY o.task_id
), top_process AS (
    SELECT t.process_id FROM processes AS t WHERE t.task_id = (SELECT arg_max(k.task_id, k.ns) FROM top_task AS k)
), waits AS (
    SELECT t.comm, concat(coalesce(r.call, '?'), ' (', coalesce(r.cause, 'unknown'), ')') AS what, sum(r.wait_ns) AS ns
    FROM run_states AS r
    INNER JOIN processes AS t ON t.task_id = r.task_id
    INNER JOIN processes AS w ON w.task_id = r.waker_task_id
    INNER JOIN top_process AS p ON p.process_id = w.process_id AND p.process_id <> t.process_id
    -- Its parent waits for its end in any case.
    WHERE coalesce(r.cause, '') <> 'child process'
    GROUP BY t.comm, concat(coalesce(r.call, '?'), ' (', coalesce(r.cause, 'unknown'), ')')
), waiters AS (
    SELECT arg_max(concat(coalesce(w.comm, '?'), ': ', w.what), w.ns) AS waiter, max(w.ns) AS ns FROM waits AS w
), by_line AS (
    SELECT f.function, f.object, f.source, coalesce(f.called, CASE WHEN f.called_object IS NULL THEN f.function ELSE regexp_extract(f.called_object, '[^/]*$') END) AS called,
        sum(o.period_ns) AS ns
    FROM on_path AS o INNER JOIN stack_places AS f ON f.stack_id = o.stack_id
    WHERE NOT o.in_kernel
    GROUP BY f.function, f.object, f.source, f.called, f.called_object
), by_called AS (
    SELECT b.function, b.object, b.called, sum(b.ns) AS ns FROM by_line AS b GROUP BY b.function, b.object, b.called
), top_called AS (
    SELECT b.function, b.object, arg_max(b.called, b.ns) AS called FROM by_called AS b GROUP BY b.function, b.object
), by_function AS (
    SELECT b.function, b.object, sum(b.ns) AS ns, arg_max(b.source, b.ns) AS source,
        row_number() OVER (ORDER BY sum(b.ns) DESC, b.function, b.object) AS place
    FROM by_line AS b
    GROUP BY b.function, b.object
), judged AS (
    SELECT w.user_ns, w.user_number, p.all_ns, f.function, f.object, f.source, c.called, coalesce(f.ns, 0) AS function_ns,
        w.user_ns >= $min_time_ns AND w.user_ns >= $min_share * p.all_ns AS is_much,
        CASE WHEN f.function IS NOT NULL AND f.ns >= $min_function * p.all_ns THEN 'function' ELSE 'spread' END AS variant
    FROM whole AS w
    CROSS JOIN path AS p
    LEFT JOIN by_function AS f ON f.place = 1
    LEFT JOIN top_called AS c ON c.function = f.function AND c.object = f.object
    WHERE p.all_ns > 0 AND w.number >= $least_samples
)
SELECT
    CASE WHEN j.is_much AND j.variant = 'function' THEN j.function END AS subject,
    CASE WHEN j.user_ns IS NULL THEN 'unknown' WHEN j.is_much THEN 'finding' ELSE 'ok' END AS status,
    CASE WHEN j.all_ns > 0 THEN round(least(1e2, 1e2 * j.user_ns / j.all_ns), 1) END AS value,
    1e2 * $min_share AS limit_value,
    CAST(least(j.user_ns, j.all_ns) AS BIGINT) AS cost_ns,
    CASE WHEN j.is_much AND j.variant = 'spread' THEN CAST(0 AS BIGINT) END AS gain_ns,
    CASE WHEN j.is_much THEN 'low' END AS certainty,
    CASE WHEN j.is_much THEN j.variant END AS variant,
    CASE WHEN j.is_much THEN coalesce(j.function, 'a function without a name') END AS function,
    CASE WHEN j.is_much THEN coalesce(regexp_extract(j.source, '[^/]*$'), 'line not known') END AS source,
    CASE WHEN j.is_much THEN coalesce(regexp_extract(j.object, '[^/]*$'), 'code that is not known') END AS object,
    CASE WHEN j.is_much THEN coalesce(j.called, j.function, 'code that is not known') END AS called,
    CASE WHEN j.all_ns > 0 THEN round(least(1e2, 1e2 * j.function_ns / j.all_ns), 1) END AS function_share,
    CASE WHEN j.is_much THEN coalesce((SELECT arg_max(t.name, t.ns) FROM threads AS t), '?') END AS thread,
    CASE WHEN j.is_much THEN coalesce((SELECT w.waiter FROM waiters AS w WHERE w.ns >= $min_waiter * j.all_ns), 'none') END AS waiter,
    CAST(j.user_number AS BIGINT) AS samples
FROM (SELECT 1 AS one) AS o
LEFT JOIN judged AS j ON o.one = 1
