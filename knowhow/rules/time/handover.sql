-- Threads taking turns
-- Two threads or processes wake each other in turn for tiny pieces of work: most of the time is spent on waking and waiting.
-- needs:  run_states, processes, totals, call_actions
-- uses:   object_use, paths
-- param:  min_turns BIGINT = 2000        Minimum number of turns.
-- param:  min_share DOUBLE = 0.3         Minimum share of the elapsed time that the two wait for each other.
-- param:  longest_turn_ns BIGINT = 200000 A turn that takes longer on average does some work [ns].
-- param:  small_bytes BIGINT = 4096      Where more bytes are handed over on average, it is a stream of data [B].
-- column: subject VARCHAR       The two, with their thread ids.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the elapsed time that they wait for each other [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time that they wait for each other [ns].
-- column: gain_ns BIGINT        Potential saving [ns].
-- column: certainty VARCHAR     medium.
-- column: process INTEGER       Process id of the first.
-- column: turns BIGINT          How often each of them is woken by the other.
-- column: turn_ns BIGINT        A turn, on average [ns].
-- column: call VARCHAR          The system call in which they wait most.
-- column: over VARCHAR          What they hand over by.
-- says: finding en  {subject} wake each other in turn, {turns:time}, once every {turn_ns}: waiting for each other takes {cost_ns}, {value} of the time. They hand over through {over}, in {call}.
-- says: finding ja  {subject} が交互に {turns} 回、{turn_ns} ごとに起こし合っています。互いを待つ時間は {cost_ns}（時間の {value}）です。受け渡しは{over:ja}、呼び出しは {call:ja} です。
-- says: ok en       No two threads spend most of the time waking each other.
-- says: ok ja       互いに起こし合うことに時間の多くを費やすスレッドの組はありません。
-- says: unknown en  The recording does not show when threads ran.
-- says: unknown ja  スレッドの実行時刻が記録にありません。
-- at_least: run_states min_turns
-- evidence: sched/wakeup_chains
-- tags:   time, processes
WITH woken AS (
    SELECT least(r.task_id, r.waker_task_id) AS first_id, greatest(r.task_id, r.waker_task_id) AS second_id,
        CASE WHEN r.task_id < r.waker_task_id THEN 1 ELSE 0 END AS is_first, r.dur_ns, r.call, r.cause, r.path_id, r.ts_ns, r.ts_ns + r.dur_ns AS until_ns
    FROM run_states AS r
    WHERE r.wait_ns > 0 AND r.waker_task_id IS NOT NULL AND r.waker_task_id <> r.task_id AND r.cause IS NOT NULL
), pairs AS (
    SELECT w.first_id, w.second_id, least(sum(w.is_first), sum(1 - w.is_first)) AS turns, sum(w.dur_ns) AS ns,
        max(w.until_ns) - min(w.ts_ns) AS span_ns
    FROM woken AS w
    GROUP BY w.first_id, w.second_id
    HAVING least(sum(w.is_first), sum(1 - w.is_first)) >= $min_turns
), ways AS (
    SELECT w.first_id, w.second_id, w.call, w.cause, w.path_id, sum(w.dur_ns) AS ns
    FROM woken AS w
    INNER JOIN pairs AS p ON p.first_id = w.first_id AND p.second_id = w.second_id
    GROUP BY w.first_id, w.second_id, w.call, w.cause, w.path_id
), top_way AS (
    SELECT w.first_id, w.second_id, arg_max(w.call, w.ns) AS call, arg_max(w.cause, w.ns) AS cause, arg_max(coalesce(w.path_id, -1), w.ns) AS path_id
    FROM ways AS w
    GROUP BY w.first_id, w.second_id
), sizes AS (
    SELECT u.path_id, sum(u.transferred_bytes) AS bytes, sum(u.sized_calls) AS calls FROM object_use AS u GROUP BY u.path_id
), judged AS (
    SELECT p.*, t.elapsed_ns, w.call, x.action, w.cause, o.path, a.comm AS first_comm, a.pid AS first_pid, a.tid AS first_tid, b.comm AS second_comm,
        b.pid AS second_pid, b.tid AS second_tid
    FROM pairs AS p
    INNER JOIN top_way AS w ON w.first_id = p.first_id AND w.second_id = p.second_id
    INNER JOIN processes AS a ON a.task_id = p.first_id
    INNER JOIN processes AS b ON b.task_id = p.second_id
    LEFT JOIN paths AS o ON o.path_id = w.path_id
    LEFT JOIN sizes AS z ON z.path_id = w.path_id
    LEFT JOIN call_actions AS x ON x.call = w.call
    CROSS JOIN totals AS t
    WHERE p.ns >= $min_share * t.elapsed_ns AND p.span_ns <= p.turns * $longest_turn_ns
        AND (coalesce(z.calls, 0) = 0 OR z.bytes <= $small_bytes * z.calls)
), whole AS (
    SELECT count(*) AS states FROM run_states AS r
)
SELECT
    CASE WHEN j.turns IS NOT NULL THEN concat(coalesce(j.first_comm, '?'), ' ', CAST(j.first_tid AS VARCHAR), ', ', coalesce(j.second_comm, '?'), ' ',
        CAST(j.second_tid AS VARCHAR)) END AS subject,
    CASE WHEN j.turns IS NOT NULL THEN 'finding' WHEN w.states = 0 THEN 'unknown' ELSE 'ok' END AS status,
    round(least(1e2, 1e2 * j.ns / j.elapsed_ns), 1) AS value,
    1e2 * $min_share AS limit_value,
    CAST(least(j.ns, j.elapsed_ns) AS BIGINT) AS cost_ns,
    CAST(least(j.ns, j.elapsed_ns) AS BIGINT) AS gain_ns,
    CASE WHEN j.turns IS NOT NULL THEN 'medium' END AS certainty,
    j.first_pid AS process,
    CAST(j.turns AS BIGINT) AS turns,
    CAST(j.span_ns // j.turns AS BIGINT) AS turn_ns,
    CASE WHEN j.turns IS NOT NULL THEN coalesce(j.call, 'no call') END AS call,
    CASE WHEN j.turns IS NOT NULL THEN coalesce(CASE WHEN j.action = 'signal_wait' THEN 'signals (kill)' WHEN j.cause = 'events' THEN 'events' WHEN j.path IS NOT NULL THEN concat(j.cause, ' (', j.path, ')') END, j.cause)
        END AS over
FROM whole AS w
LEFT JOIN judged AS j ON w.states > 0
ORDER BY cost_ns DESC, subject
