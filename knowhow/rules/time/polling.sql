-- Polling
-- The program looks again and again whether something has happened: it sleeps briefly in between, or asks without a pause.
-- needs:  critical_path, calls, processes, stack_places
-- param:  min_share DOUBLE = 0.1          Least part of the time of the command that such a call takes.
-- param:  min_time_ns BIGINT = 100000000  Least time that it takes [ns].
-- param:  min_times BIGINT = 3            Least number of sleeps that ran out, or were repeated.
-- param:  min_checks DOUBLE = 0.5         Calls between sleeps that could be a look at something, for each sleep, from which on it is polling.
-- param:  max_sleep_ns BIGINT = 250000000 A longer sleep is no polling [ns].
-- param:  min_asked BIGINT = 10000        Least number of calls without a pause that found nothing.
-- param:  max_gap_ns BIGINT = 20000       Longest time from one of these to the next [ns].
-- column: subject VARCHAR       Program, process id and call.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Part of the time of the command that it took [%].
-- column: limit_value DOUBLE    From which on it is a finding [%].
-- column: cost_ns BIGINT        Time that it took: of sleeps what lies on the critical path; without a pause, time on a CPU [ns].
-- column: gain_ns BIGINT        What could be saved at most; 0: the end of the command did not depend on it, or nothing is asked between sleeps [ns].
-- column: certainty VARCHAR     medium for sleeps; low for calls with a timeout, and for those without a pause.
-- column: variant VARCHAR       sleep, pace (sleeps, between which nothing is asked), timeout, busy or spare (busy, beside the critical path).
-- column: process INTEGER       Process id.
-- column: explained_by VARCHAR  Rules whose findings explain this one: threads that share one lock give up waiting for it now and then.
-- column: times BIGINT          How often it slept, or checked without success.
-- column: per_second DOUBLE     The same in a second of the time that the thread spent so.
-- column: mean_ns BIGINT        Time of one of them, on average [ns].
-- column: place VARCHAR         Where in the program the call is made; `not known` where that was not recorded.
-- says: finding.sleep en    {subject}: {times} sleeps of {mean_ns} on average, one after the other, take {cost_ns}, {value} of the time of the command. Woken by a timer {per_second} times a second. Place: {place}.
-- says: finding.sleep ja    {subject}: 平均 {mean_ns} のスリープが {times} 回続き、{cost_ns}（実行時間の {value}）かかっています。タイマーで毎秒 {per_second} 回起こされます。場所: {place}。
-- says: finding.pace en     {subject}: {times} sleeps of {mean_ns} on average take {cost_ns}, {value} of the time of the command. Nothing is asked between them: the program sets a pace, or looks at its own memory. Place: {place}.
-- says: finding.pace ja     {subject}: 平均 {mean_ns} のスリープが {times} 回あり、{cost_ns}（実行時間の {value}）かかっています。その間に何も問い合わせていません。一定の間隔で動いているか、自分のメモリを見ています。場所: {place}。
-- says: finding.timeout en  {subject}: {times} timeouts of {mean_ns} on average ran out, and take {cost_ns}, {value} of the time of the command. Woken by a timer {per_second} times a second. Place: {place}.
-- says: finding.timeout ja  {subject}: 平均 {mean_ns} のタイムアウトが {times} 回切れ、{cost_ns}（実行時間の {value}）かかっています。タイマーで毎秒 {per_second} 回起こされます。場所: {place}。
-- says: finding.busy en     {subject}: asked {times} times without a pause and found nothing, {per_second} times a second: {cost_ns} of CPU time, {value} of the time of the command.
-- says: finding.busy ja     {subject}: 休まずに {times} 回（毎秒 {per_second} 回）問い合わせ、何も得ていません。CPU 時間は {cost_ns}、実行時間の {value} です。
-- says: finding.spare en    {subject}: asked {times} times without a pause and found nothing, {per_second} times a second: {cost_ns} of CPU time that something else could have had.
-- says: finding.spare ja    {subject}: 休まずに {times} 回（毎秒 {per_second} 回）問い合わせ、何も得ていません。ほかのものが使えたはずの CPU 時間が {cost_ns} です。
-- says: ok en               Short sleeps, timeouts and calls that find nothing take little: {cost_ns}, {value} of the time of the command.
-- says: ok ja               短いスリープ、タイムアウト、何も得ない呼び出しは少なく、{cost_ns}（実行時間の {value}）です。
-- says: unknown en          The recording does not hold the times at which the threads of a command ran.
-- says: unknown ja          コマンドのスレッドの実行時刻が記録にありません。
-- evidence: time/waits --process {process}
-- tags:   time, processes, calls
WITH path AS (
    SELECT sum(p.dur_ns) AS all_ns FROM critical_path AS p
), waiting AS (
    -- Calls that wait with a limit, and whether the limit was reached. A sleep always is one.
    SELECT c.task_id, c.ts_ns, c.call, c.dur_ns <= $max_sleep_ns AND (c.call IN ('nanosleep', 'clock_nanosleep')
        OR (c.call IN ('poll', 'ppoll', 'select', 'pselect6', 'epoll_wait', 'epoll_pwait', 'epoll_pwait2') AND c.value = 0)
        OR (coalesce(c.errno, '') = 'ETIMEDOUT' AND c.class IN ('lock', 'wait'))
        OR (coalesce(c.errno, '') = 'EAGAIN' AND c.call IN ('rt_sigtimedwait', 'semtimedop'))) AS ran_out
    FROM calls AS c
    WHERE c.class IN ('wait', 'lock', 'signal') AND c.dur_ns IS NOT NULL
), moments AS (
    SELECT w.task_id, w.ts_ns, w.call, CASE WHEN w.ran_out THEN w.ts_ns ELSE 0 END AS limited_ns, w.ts_ns AS begun_ns, 0 AS ns, NULL AS stack_id
    FROM waiting AS w
    UNION ALL
    SELECT p.task_id, p.ts_ns, p.call, 0, 0, p.dur_ns, p.stack_id
    FROM critical_path AS p
    WHERE p.part = 'waiting' AND p.class IN ('wait', 'lock', 'signal')
), met AS (
    SELECT m.task_id, m.call, m.ns, m.stack_id,
        max(m.limited_ns) OVER (PARTITION BY m.task_id ORDER BY m.ts_ns, m.ns) AS limited_ns,
        max(m.begun_ns) OVER (PARTITION BY m.task_id ORDER BY m.ts_ns, m.ns) AS begun_ns
    FROM moments AS m
), sleeps AS (
    SELECT m.task_id, m.call, sum(m.ns) AS ns, count(DISTINCT m.begun_ns) AS times, min(m.begun_ns) AS from_ns, max(m.begun_ns + m.ns) AS until_ns,
        arg_max(m.stack_id, m.ns) AS stack_id
    FROM met AS m
    WHERE m.ns > 0 AND m.begun_ns > 0 AND m.limited_ns = m.begun_ns
    GROUP BY m.task_id, m.call
), checks AS (
    -- Calls of the threads that sleep, while they do: each may be the look at what they wait for.
    SELECT s.task_id, s.call, count(*) AS number
    FROM sleeps AS s
    INNER JOIN calls AS c ON c.task_id = s.task_id AND c.ts_ns >= s.from_ns AND c.ts_ns <= s.until_ns
    WHERE c.class IN ('open', 'stat', 'dir', 'read', 'process', 'socket', 'control', 'wait', 'signal')
        AND c.call NOT IN ('nanosleep', 'clock_nanosleep', 'rt_sigprocmask', 'rt_sigaction')
    GROUP BY s.task_id, s.call
), vain AS (
    -- Calls that do not wait and find nothing.
    SELECT c.task_id, c.call, c.ts_ns, c.ts_ns + c.dur_ns AS until_ns,
        c.ts_ns - lag(c.ts_ns, 1, 0) OVER (PARTITION BY c.task_id, c.call ORDER BY c.ts_ns) AS gap_ns
    FROM calls AS c
    WHERE c.dur_ns <= $max_gap_ns AND (c.call = 'sched_yield'
        OR (c.call IN ('poll', 'ppoll', 'select', 'pselect6', 'epoll_wait', 'epoll_pwait', 'epoll_pwait2') AND c.value = 0)
        OR (c.errno = 'EAGAIN' AND c.class IN ('read', 'write', 'socket')))
), asked AS (
    SELECT v.task_id, v.call, count(*) AS times, sum(CASE WHEN v.gap_ns <= $max_gap_ns THEN v.gap_ns ELSE 0 END) AS ns
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
), kinds AS (
    SELECT s.task_id, s.call, s.ns, s.times, greatest(1, s.until_ns - s.from_ns) AS span_ns, s.stack_id, 1 AS on_path,
        CASE WHEN s.call NOT IN ('nanosleep', 'clock_nanosleep') THEN 'timeout' WHEN coalesce(k.number, 0) >= $min_checks * s.times THEN 'sleep' ELSE 'pace' END
            AS variant
    FROM sleeps AS s
    LEFT JOIN checks AS k ON k.task_id = s.task_id AND k.call = s.call
    UNION ALL
    SELECT a.task_id, a.call, a.ns, a.times, greatest(1, a.ns), NULL, CASE WHEN 2 * coalesce(p.ns, 0) >= a.ns THEN 1 ELSE 0 END,
        CASE WHEN 2 * coalesce(p.ns, 0) >= a.ns THEN 'busy' ELSE 'spare' END
    FROM asked AS a
    LEFT JOIN successes AS s ON s.task_id = a.task_id AND s.call = a.call
    LEFT JOIN of_path AS p ON p.task_id = a.task_id
    WHERE 10 * coalesce(s.number, 0) <= a.times
), judged AS (
    SELECT k.*, p.all_ns FROM kinds AS k CROSS JOIN path AS p
    WHERE k.times >= $min_times AND k.ns >= $min_time_ns AND k.ns >= $min_share * p.all_ns
), whole AS (
    SELECT p.all_ns, (SELECT coalesce(sum(k.ns * k.on_path), 0) FROM kinds AS k) AS ns, (SELECT count(*) FROM judged) AS findings
    FROM path AS p
)
SELECT
    concat(coalesce(t.comm, '?'), ' ', CAST(t.pid AS VARCHAR), ' ', j.call) AS subject,
    'finding' AS status,
    round(1e2 * j.ns / j.all_ns, 1) AS value,
    1e2 * $min_share AS limit_value,
    CAST(j.ns AS BIGINT) AS cost_ns,
    CAST(CASE WHEN j.variant = 'pace' THEN 0 ELSE j.ns * j.on_path END AS BIGINT) AS gain_ns,
    CASE WHEN j.variant = 'sleep' THEN 'medium' ELSE 'low' END AS certainty,
    j.variant,
    t.pid AS process,
    CASE WHEN j.call = 'futex' THEN 'time/serial,locks/futexes' ELSE 'locks/futexes,locks/file_locks' END AS explained_by,
    CAST(j.times AS BIGINT) AS times,
    round(1e9 * j.times / j.span_ns, 1) AS per_second,
    CAST(j.ns // j.times AS BIGINT) AS mean_ns,
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
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM whole AS w
WHERE w.findings = 0
ORDER BY cost_ns DESC, subject
