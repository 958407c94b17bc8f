-- Polling
-- The program checks again and again whether something has happened: it sleeps between the checks, or checks without a pause.
-- needs:  critical_path, calls, processes, paths, stack_places, unanswered_requests
-- uses:   sockets
-- param:  min_share DOUBLE = 0.1          Minimum share of the time of the command that such a call takes.
-- param:  min_time_ns BIGINT = 100000000  Minimum time that it takes [ns].
-- param:  min_times BIGINT = 3            Minimum number of sleeps that ran out, or were repeated.
-- param:  min_long BIGINT = 2             The same for long ones.
-- param:  most_of DOUBLE = 0.5            A single long one counts if it takes this share of the time of the command.
-- param:  min_checks DOUBLE = 0.5         Calls between sleeps that could be a look at something, for each sleep, from which on it is polling.
-- param:  max_sleep_ns BIGINT = 250000000 A longer sleep is long: it may well be meant [ns].
-- param:  waits_ns BIGINT = 100000       A call that takes less does not wait, but for a sleep [ns].
-- param:  again_ns BIGINT = 1000000      A poll that waits within this time after one that ran out goes on with its wait [ns].
-- param:  min_asked BIGINT = 10000        Minimum number of calls without a pause that found nothing.
-- param:  max_gap_ns BIGINT = 20000       Longest time from one of these to the next [ns].
-- column: subject VARCHAR       Program, process id (where it is one) and call.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the time of the command that it took [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time that it took: of sleeps what lies on the critical path; without a pause, time on a CPU [ns].
-- column: gain_ns BIGINT        Potential saving; 0: the end of the command did not depend on it, or nothing is asked between sleeps; empty: long sleeps, work between them, and timeouts of futex, as the sleep of Java's threads is one [ns].
-- column: certainty VARCHAR     medium for short sleeps between which something is asked, and for long ones; else low.
-- column: variant VARCHAR       sleep, pace (sleeps, between which nothing is asked), timeout, long, work (after each it writes, or reads a measure), busy or spare (busy, off the critical path).
-- column: process INTEGER       Process id; of several, of the one that it took longest.
-- column: explained_by VARCHAR  Rules whose findings explain this one: threads that share one lock give up waiting for it now and then.
-- column: times BIGINT          How often it slept, or checked without success.
-- column: per_second DOUBLE     The same per second of the time that the thread spent so.
-- column: mean_ns BIGINT        Time of one of them, on average [ns].
-- column: asks VARCHAR          The call that is made most between sleeps and may be the look: its name, file and error; `none`.
-- column: place VARCHAR         Where in the program the call is made; `not known` where that was not recorded.
-- says: finding.sleep en    {subject}: {times:sleep} of {mean_ns} on average, one after another, {times?takes|take} {cost_ns}, {value} of the time of the command. A timer wakes it {per_second} times per second. Checks in between: {asks}. Location: {place}.
-- says: finding.sleep ja    {subject}: 平均 {mean_ns} のスリープが {times} 回続き、{cost_ns}（実行時間の {value}）かかっています。タイマーで毎秒 {per_second} 回起こされます。その間の確認: {asks:ja}。場所: {place:ja}。
-- says: finding.pace en     {subject}: {times:sleep} of {mean_ns} on average {times?takes|take} {cost_ns}, {value} of the time of the command. There are no checks in between: the program keeps a fixed pace, or checks its own memory. Location: {place}.
-- says: finding.pace ja     {subject}: 平均 {mean_ns} のスリープが {times} 回あり、{cost_ns}（実行時間の {value}）かかっています。その間に確認にあたる呼び出しはありません。一定の間隔で動いているか、自身のメモリを確認しています。場所: {place:ja}。
-- says: finding.timeout en  {subject}: {times:timeout} of {mean_ns} on average expired and took {cost_ns}, {value} of the time of the command. A timer wakes it {per_second} times per second. Checks in between: {asks}. Location: {place}.
-- says: finding.timeout ja  {subject}: 平均 {mean_ns} のタイムアウトが {times} 回発生し、{cost_ns}（実行時間の {value}）かかっています。タイマーで毎秒 {per_second} 回起こされます。その間の確認: {asks:ja}。場所: {place:ja}。
-- says: finding.long en     {subject}: waited {times:time} until a timer expired, {mean_ns} on average: {cost_ns}, {value} of the time of the command. What it waits for may have happened earlier. Checks in between: {asks}. Location: {place}.
-- says: finding.long ja     {subject}: タイマーが切れるまで平均 {mean_ns} の待ちが {times} 回あり、{cost_ns}（実行時間の {value}）かかっています。待っていたイベントは、もっと前に起きていた可能性があります。その間の確認: {asks:ja}。場所: {place:ja}。
-- says: finding.work en     {subject}: {times:timer wait} of {mean_ns} on average {times?takes|take} {cost_ns}, {value} of the time of the command. After each it writes or measures something: it keeps a fixed pace. Location: {place}.
-- says: finding.work ja     {subject}: 平均 {mean_ns} のタイマー待ちが {times} 回あり、{cost_ns}（実行時間の {value}）かかっています。そのたびに書き込みか値の読み込みをしており、一定の間隔で動いています。場所: {place:ja}。
-- says: finding.busy en     {subject}: checked {times:time} without a pause and found nothing, {per_second} times per second: {cost_ns} of CPU time, {value} of the time of the command.
-- says: finding.busy ja     {subject}: 休みなく {times} 回（毎秒 {per_second} 回）呼び出し、何も得ていません。CPU 時間は {cost_ns}、実行時間の {value} です。
-- says: finding.spare en    {subject}: checked {times:time} without a pause and found nothing, {per_second} times per second: {cost_ns} of CPU time that other work could have used.
-- says: finding.spare ja    {subject}: 休みなく {times} 回（毎秒 {per_second} 回）呼び出し、何も得ていません。ほかのプログラムが使えたはずの CPU 時間を {cost_ns} 消費しています。
-- says: ok en               The cost of short sleeps, timeouts and fruitless checks is low: {cost_ns}, {value} of the time of the command.
-- says: ok ja               短いスリープ、タイムアウト、何も得ない呼び出しは少なく、{cost_ns}（実行時間の {value}）です。
-- says: unknown en          The recording does not show when the threads of a command ran.
-- says: unknown ja          コマンドのスレッドの実行時刻が記録にありません。
-- at_least: duration min_time_ns
-- evidence: time/waits --process {process}
-- tags:   time, processes, calls
WITH path AS (
    SELECT sum(p.dur_ns) AS all_ns FROM critical_path AS p
), waiting AS (
    -- Calls that wait with a limit, and whether the limit was reached. A sleep always is one, and so is a wait for a timer that is a file.
    SELECT c.task_id, c.ts_ns, c.ts_ns + c.dur_ns AS until_ns,
        CASE WHEN coalesce(c.action, '') = 'poll' THEN 1 ELSE 0 END AS is_poll,
        -- Who waits for an answer that does not come does not poll: network/no_answer.
        u.task_id IS NULL AND (coalesce(c.action, '') = 'sleep' OR c.class = 'read'
        OR (coalesce(c.action, '') = 'poll' AND c.value = 0)
        OR (coalesce(c.errno, '') = 'ETIMEDOUT' AND c.class IN ('lock', 'wait'))
        OR (coalesce(c.errno, '') = 'EAGAIN' AND coalesce(c.action, '') IN ('signal_wait', 'semaphore'))) AS ran_out
    FROM calls AS c
    LEFT JOIN paths AS o ON o.path_id = c.path_id AND o.path = 'anon_inode:[timerfd]'
    LEFT JOIN unanswered_requests AS u ON u.task_id = c.task_id AND c.ts_ns > u.ts_ns AND c.ts_ns < u.until_ns
    WHERE c.dur_ns IS NOT NULL AND (c.class IN ('wait', 'lock', 'signal') OR (c.class = 'read' AND o.path IS NOT NULL))
), transfers AS (
    -- A thread that transfers data after a wait does not continue that wait.
    SELECT c.task_id, c.ts_ns FROM calls AS c INNER JOIN (SELECT DISTINCT w.task_id FROM waiting AS w WHERE w.is_poll = 1 AND w.ran_out) AS t ON t.task_id = c.task_id
    WHERE c.transferred_bytes > 0
), followed AS (
    -- Where the next poll waits on at once and then something has happened, the limit was only that of one look: both wait for what happened.
    SELECT w.task_id, w.ts_ns,
        w.ran_out AND (w.is_poll = 0 OR w.next_ran_out OR w.next_is_poll = 0 OR w.next_ts_ns - w.until_ns > $again_ns) AS ran_out
    FROM (
        SELECT a.*, lag(a.is_poll, 1, 0) OVER (PARTITION BY a.task_id ORDER BY a.ts_ns DESC) AS next_is_poll,
            lag(a.ran_out, 1, true) OVER (PARTITION BY a.task_id ORDER BY a.ts_ns DESC) AS next_ran_out,
            lag(a.ts_ns, 1, 0) OVER (PARTITION BY a.task_id ORDER BY a.ts_ns DESC) AS next_ts_ns
        FROM (
            SELECT b.task_id, b.ts_ns, b.until_ns, b.is_poll, b.ran_out FROM waiting AS b
            WHERE (b.is_poll = 0 AND b.ran_out) OR b.until_ns - b.ts_ns >= $waits_ns
            UNION ALL
            SELECT x.task_id, x.ts_ns, x.ts_ns, 0, false FROM transfers AS x
        ) AS a
    ) AS w
    WHERE w.until_ns > w.ts_ns
), moments AS (
    SELECT w.task_id, w.ts_ns, CASE WHEN w.ran_out THEN w.ts_ns ELSE 0 END AS limited_ns, w.ts_ns AS begun_ns, 0 AS ns, NULL AS call, NULL AS action, NULL AS stack_id
    FROM followed AS w
    UNION ALL
    SELECT p.task_id, p.ts_ns, 0, 0, p.dur_ns, p.call, p.action, p.stack_id
    FROM critical_path AS p
    WHERE p.part = 'waiting' AND (p.class IN ('wait', 'lock', 'signal') OR (p.class = 'read' AND p.cause = 'events'))
), met AS (
    SELECT m.task_id, m.call, m.action, m.ns, m.stack_id,
        max(m.limited_ns) OVER (PARTITION BY m.task_id ORDER BY m.ts_ns, m.ns) AS limited_ns,
        max(m.begun_ns) OVER (PARTITION BY m.task_id ORDER BY m.ts_ns, m.ns) AS begun_ns
    FROM moments AS m
), sleeps AS (
    SELECT m.task_id, m.call, min(m.action) AS action, m.ns > $max_sleep_ns AS is_long, sum(m.ns) AS ns, count(DISTINCT m.begun_ns) AS times, min(m.begun_ns) AS from_ns,
        max(m.begun_ns + m.ns) AS until_ns, arg_max(m.stack_id, m.ns) AS stack_id
    FROM met AS m
    WHERE m.ns > 0 AND m.begun_ns > 0 AND m.limited_ns = m.begun_ns
    GROUP BY m.task_id, m.call, m.ns > $max_sleep_ns
), sleepers AS (
    SELECT s.*, coalesce(t.comm, '?') AS comm, t.process_id FROM sleeps AS s INNER JOIN processes AS t ON t.task_id = s.task_id
    -- Pauses of a script are programs: processes/one_after_another and processes/gaps have them.
    WHERE coalesce(t.comm, '') <> 'sleep'
), between_sleeps AS (
    -- Calls of the threads that sleep, while they do and just after: each may be the look at what they wait for, or work, as writing and measuring are.
    SELECT s.comm, s.call, s.is_long, c.call AS look, c.path_id, c.errno,
        CASE WHEN c.class IN ('write', 'copy') OR (c.class = 'read' AND regexp_extract(coalesce(o.path, ''), '^/(proc/[a-z]|sys/)') <> '') THEN 1 ELSE 0 END
            AS is_work
    FROM sleepers AS s
    INNER JOIN calls AS c ON c.task_id = s.task_id AND c.ts_ns >= s.from_ns AND c.ts_ns <= s.until_ns + $min_time_ns // 10
    LEFT JOIN paths AS o ON o.path_id = c.path_id
    WHERE (c.class IN ('open', 'stat', 'dir', 'read', 'process', 'socket', 'control', 'wait', 'signal') AND c.call <> s.call
            AND coalesce(c.action, '') NOT IN ('sleep', 'mask_signals', 'exit', 'set_up_socket') AND coalesce(c.errno, '') <> 'ENOTTY')
        OR (c.class = 'lock' AND coalesce(c.action, '') <> 'futex' AND c.errno IS NOT NULL) OR (c.class IN ('write', 'copy') AND c.transferred_bytes > 0)
), counted AS (
    SELECT b.comm, b.call, b.is_long, b.look, b.path_id, b.errno, b.is_work, count(*) AS number
    FROM between_sleeps AS b
    GROUP BY b.comm, b.call, b.is_long, b.look, b.path_id, b.errno, b.is_work
), checks AS (
    SELECT b.comm, b.call, b.is_long, sum(CASE WHEN b.is_work = 1 THEN 0 ELSE b.number END) AS number, sum(b.is_work * b.number) AS works,
        sum(CASE WHEN b.is_work = 0 AND b.errno IS NOT NULL THEN b.number ELSE 0 END) AS vain
    FROM counted AS b
    GROUP BY b.comm, b.call, b.is_long
), ranked AS (
    -- Calls that failed come first: they say more about what the thread waits for.
    SELECT b.*, row_number() OVER (PARTITION BY b.comm, b.call, b.is_long ORDER BY CASE WHEN b.errno IS NULL THEN 1 ELSE 2 END * b.number DESC, b.look) AS place
    FROM counted AS b
    WHERE b.is_work = 0
), looks AS (
    SELECT r.comm, r.call, r.is_long, concat(r.look, CASE WHEN e.remote IS NOT NULL THEN concat(' ', e.remote) WHEN o.path IS NULL THEN '' ELSE concat(' ', o.path) END,
        CASE WHEN r.errno IS NULL THEN '' ELSE concat(' (', r.errno, ')') END) AS asks
    FROM ranked AS r LEFT JOIN paths AS o ON o.path_id = r.path_id LEFT JOIN sockets AS e ON e.path_id = r.path_id
    WHERE r.place = 1
), vain AS (
    -- Calls that do not wait and find nothing.
    SELECT c.task_id, c.call, c.action, c.ts_ns, c.ts_ns + c.dur_ns AS until_ns,
        c.ts_ns - lag(c.ts_ns, 1, 0) OVER (PARTITION BY c.task_id, c.call ORDER BY c.ts_ns) AS gap_ns
    FROM calls AS c
    WHERE c.dur_ns <= $max_gap_ns AND (coalesce(c.action, '') = 'yield'
        OR (coalesce(c.action, '') = 'poll' AND c.value = 0)
        OR (c.errno = 'EAGAIN' AND c.class IN ('read', 'write', 'socket')))
), asked AS (
    SELECT v.task_id, v.call, min(v.action) AS action, count(*) AS times, sum(CASE WHEN v.gap_ns <= $max_gap_ns THEN v.gap_ns ELSE 0 END) AS ns
    FROM vain AS v
    GROUP BY v.task_id, v.call
    HAVING count(*) >= $min_asked
), successes AS (
    SELECT c.task_id, c.call, count(*) AS number
    FROM calls AS c INNER JOIN asked AS a ON a.task_id = c.task_id AND a.call = c.call
    WHERE c.value > 0 OR c.transferred_bytes > 0
    GROUP BY c.task_id, c.call
), of_path AS (
    SELECT p.task_id, sum(p.dur_ns) AS ns FROM critical_path AS p WHERE p.part = 'running' GROUP BY p.task_id
), by_program AS (
    SELECT s.comm, s.call, s.is_long, sum(s.ns) AS ns, sum(s.times) AS times, sum(s.until_ns - s.from_ns) AS span_ns, count(DISTINCT s.process_id) AS processes, min(s.action) AS action,
        arg_max(s.task_id, s.ns) AS task_id, arg_max(s.stack_id, s.ns) AS stack_id
    FROM sleepers AS s
    GROUP BY s.comm, s.call, s.is_long
), kinds AS (
    SELECT s.task_id, s.processes, s.call, s.action, s.ns, s.times, greatest(1, s.span_ns) AS span_ns, s.stack_id, 1 AS on_path,
        CASE WHEN (s.call = 'read' OR coalesce(s.action, '') = 'sleep' OR (coalesce(s.action, '') <> 'futex' AND coalesce(k.number, 0) = 0)) AND coalesce(k.works, 0) >= $min_checks * s.times
                AND coalesce(k.vain, 0) < $min_checks * s.times THEN 'work' WHEN s.is_long THEN 'long'
            WHEN coalesce(s.action, '') <> 'sleep' THEN 'timeout' WHEN coalesce(k.number, 0) >= $min_checks * s.times THEN 'sleep' ELSE 'pace' END
            AS variant, l.asks
    FROM by_program AS s
    LEFT JOIN checks AS k ON k.comm = s.comm AND k.call = s.call AND k.is_long = s.is_long
    LEFT JOIN looks AS l ON l.comm = s.comm AND l.call = s.call AND l.is_long = s.is_long
    UNION ALL
    SELECT a.task_id, 1, a.call, a.action, a.ns, a.times, greatest(1, a.ns), NULL, CASE WHEN 2 * coalesce(p.ns, 0) >= a.ns THEN 1 ELSE 0 END,
        CASE WHEN 2 * coalesce(p.ns, 0) >= a.ns THEN 'busy' ELSE 'spare' END, NULL
    FROM asked AS a
    LEFT JOIN successes AS s ON s.task_id = a.task_id AND s.call = a.call
    LEFT JOIN of_path AS p ON p.task_id = a.task_id
    WHERE 10 * coalesce(s.number, 0) <= a.times
), judged AS (
    SELECT k.*, p.all_ns FROM kinds AS k CROSS JOIN path AS p
    WHERE (k.times >= CASE WHEN k.variant = 'long' THEN $min_long ELSE $min_times END OR (k.variant = 'long' AND k.ns >= $most_of * p.all_ns)) AND k.ns >= $min_time_ns AND k.ns >= $min_share * p.all_ns
), whole AS (
    SELECT p.all_ns, (SELECT coalesce(sum(k.ns * k.on_path), 0) FROM kinds AS k) AS ns, (SELECT count(*) FROM judged) AS findings
    FROM path AS p
)
SELECT
    concat(coalesce(t.comm, '?'), CASE WHEN j.processes > 1 THEN '' ELSE concat(' ', CAST(t.pid AS VARCHAR)) END,
        CASE WHEN j.call = 'read' AND j.variant NOT IN ('busy', 'spare') THEN ' timerfd ' ELSE ' ' END, j.call) AS subject,
    'finding' AS status,
    round(1e2 * j.ns / j.all_ns, 1) AS value,
    1e2 * $min_share AS limit_value,
    CAST(j.ns AS BIGINT) AS cost_ns,
    CAST(CASE WHEN j.variant = 'pace' THEN 0 WHEN j.variant NOT IN ('long', 'work') AND (coalesce(j.action, '') <> 'futex' OR j.variant <> 'timeout') THEN j.ns * j.on_path END AS BIGINT) AS gain_ns,
    CASE WHEN j.variant IN ('sleep', 'long') THEN 'medium' ELSE 'low' END AS certainty,
    j.variant,
    t.pid AS process,
    CASE WHEN j.action = 'futex' THEN 'time/serial,locks/futexes' ELSE 'locks/futexes,locks/file_locks' END AS explained_by,
    CAST(j.times AS BIGINT) AS times,
    round(1e9 * j.times / j.span_ns, 1) AS per_second,
    CAST(j.ns // j.times AS BIGINT) AS mean_ns,
    coalesce(j.asks, 'none') AS asks,
    CASE WHEN s.source IS NULL THEN coalesce(s.function, 'not known') ELSE concat(s.function, ' ', regexp_extract(s.source, '[^/]*$')) END AS place
FROM judged AS j
INNER JOIN processes AS t ON t.task_id = j.task_id
LEFT JOIN stack_places AS s ON s.stack_id = j.stack_id AND s.function IS NOT NULL
UNION ALL
SELECT
    NULL,
    CASE WHEN w.all_ns > 0 THEN 'ok' ELSE 'unknown' END,
    CASE WHEN w.all_ns > 0 THEN round(1e2 * w.ns / w.all_ns, 1) END,
    1e2 * $min_share,
    CASE WHEN w.all_ns > 0 THEN CAST(w.ns AS BIGINT) END,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM whole AS w
WHERE w.findings = 0
ORDER BY cost_ns DESC, subject
