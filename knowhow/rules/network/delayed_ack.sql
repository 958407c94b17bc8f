-- 40 ms delayed acknowledgements
-- Small messages wait for an acknowledgement that the other side delays: Nagle's algorithm and delayed acknowledgements block each other.
-- needs:  calls, processes, totals
-- uses:   sockets
-- param:  least_ns BIGINT = 38000000      The delay of Linux is 40 ms; this is the least that counts [ns].
-- param:  most_ns BIGINT = 48000000       Longest wait of this kind [ns].
-- param:  min_times BIGINT = 5            Minimum number of these waits; fewer are chance.
-- param:  min_share DOUBLE = 0.1          Minimum share of the elapsed time that they take.
-- param:  small_bytes BIGINT = 1400       Messages below this do not fill a packet [B].
-- column: subject VARCHAR       Program, process id, and the other end or the socket.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the elapsed time that such waits take [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time that they take [ns].
-- column: gain_ns BIGINT        Potential saving [ns].
-- column: certainty VARCHAR     high where the thread made two small writes before; else medium.
-- column: process INTEGER       Process id.
-- column: times BIGINT          Number of times.
-- column: mean_ns BIGINT        One of them, on average [ns].
-- column: twice BIGINT          How many came after two small writes of the same thread in a row.
-- column: call VARCHAR          The call that waits.
-- says: finding en  {subject}: {times:wait} of {mean_ns} in {call}, {cost_ns} in total, {value} of the time: as long as Linux delays an acknowledgement (40 ms). {twice} of them {twice?follows|follow} two small writes in a row by the same thread: the second one waits (Nagle) until the first is acknowledged.
-- says: finding ja  {subject}: {call} で {mean_ns} の待ちが {times} 回、合計 {cost_ns}（時間の {value}）あります。Linux が確認応答を遅らせる時間（40 ms）と一致します。うち {twice} 回は、直前に小さな書き込みが 2 回続いています。2 つ目は、1 つ目の確認応答が届くまで待たされます（Nagle アルゴリズム）。
-- says: ok en       No socket wait is as long as a delayed acknowledgement.
-- says: ok ja       遅延確認応答と同じ長さのソケットの待ちはありません。
-- says: unknown en  The recording contains no system calls with durations.
-- says: unknown ja  所要時間のある呼び出しが記録にありません。
-- at_least: duration least_ns
-- evidence: network/sockets
-- tags:   time, calls
WITH on_sockets AS (
    SELECT c.task_id, c.process_id, c.path_id, c.path, c.ts_ns, c.dur_ns, c.call, c.class,
        CASE WHEN c.class = 'write' AND c.transferred_bytes < $small_bytes THEN 1 ELSE 0 END AS is_small,
        CASE WHEN c.class = 'read' AND c.dur_ns BETWEEN $least_ns AND $most_ns THEN 1 ELSE 0 END AS is_late
    FROM calls AS c
    WHERE c.kind = 'socket' AND c.class IN ('read', 'write') AND c.dur_ns IS NOT NULL AND c.errno IS NULL
), before AS (
    SELECT o.*, lag(o.is_small, 1, 0) OVER (PARTITION BY o.task_id, o.path_id ORDER BY o.ts_ns) AS last_small,
        lag(o.is_small, 2, 0) OVER (PARTITION BY o.task_id, o.path_id ORDER BY o.ts_ns) AS last_but_one_small
    FROM on_sockets AS o
), late AS (
    SELECT b.process_id, b.path_id, min(b.path) AS path, count(*) AS times, sum(b.dur_ns) AS ns, sum(b.last_small * b.last_but_one_small) AS twice,
        arg_max(b.call, b.dur_ns) AS call
    FROM before AS b
    WHERE b.is_late = 1
    GROUP BY b.process_id, b.path_id
), judged AS (
    -- A server that is itself slow by chance answers in 40 ms, too: waits of this length are most of those that there are.
    SELECT l.*, t.elapsed_ns, p.comm, p.pid, coalesce(e.remote, l.path) AS other
    FROM late AS l
    INNER JOIN processes AS p ON p.task_id = l.process_id
    LEFT JOIN sockets AS e ON e.path_id = l.path_id
    CROSS JOIN totals AS t
    WHERE l.times >= $min_times AND l.ns >= $min_share * t.elapsed_ns
)
SELECT
    CASE WHEN j.ns IS NOT NULL THEN concat(coalesce(j.comm, '?'), ' ', CAST(j.pid AS VARCHAR), ' ', j.other) END AS subject,
    CASE WHEN j.ns IS NOT NULL THEN 'finding' WHEN t.calls = 0 OR NOT t.has_durations THEN 'unknown' ELSE 'ok' END AS status,
    round(1e2 * j.ns / t.elapsed_ns, 1) AS value,
    1e2 * $min_share AS limit_value,
    CAST(j.ns AS BIGINT) AS cost_ns,
    CAST(least(j.ns, t.elapsed_ns) AS BIGINT) AS gain_ns,
    CASE WHEN j.ns IS NOT NULL THEN CASE WHEN 2 * j.twice >= j.times THEN 'high' ELSE 'medium' END END AS certainty,
    j.pid AS process,
    j.times,
    CAST(j.ns // j.times AS BIGINT) AS mean_ns,
    CAST(j.twice AS BIGINT) AS twice,
    j.call
FROM totals AS t
LEFT JOIN judged AS j ON j.ns > 0
ORDER BY cost_ns DESC, subject
