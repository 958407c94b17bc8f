-- Busy loop without progress
-- A thread reads at the end of a file or of a closed connection over and over, or polls descriptors that are ready and does nothing about them.
-- needs:  busy_loops, processes, totals
-- uses:   paths, sockets
-- param:  min_share DOUBLE = 0.1           Minimum share of the elapsed time that the loop takes.
-- param:  min_time_ns BIGINT = 100000000   Minimum time that it takes [ns].
-- param:  min_times BIGINT = 1000 > 0      Minimum number of rounds.
-- column: subject VARCHAR       Program, process id and call.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the elapsed time [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time of the loop [ns].
-- column: gain_ns BIGINT        Potential saving of CPU time: all of it [ns].
-- column: certainty VARCHAR     high: each round was recorded.
-- column: variant VARCHAR       end (of a file or connection) or ready (descriptors that nobody handles).
-- column: process INTEGER       Process id.
-- column: times BIGINT          Number of rounds.
-- column: per_second BIGINT     How many per second.
-- column: ready BIGINT          Descriptors that are ready.
-- column: object VARCHAR        The descriptor and its object, as far as they are known.
-- says: finding.end en    {subject}: reads from {object} return 0 bytes {times:time} in a row, {per_second} per second: it is at its end, and the loop goes on. It takes {cost_ns}, {value} of the elapsed time.
-- says: finding.end ja    {subject}: {object:ja} の読み込みが 0 バイトのまま {times} 回続いています（毎秒 {per_second} 回）。終端に達しているのにループが続き、{cost_ns}（経過時間の {value}）かかっています。
-- says: finding.ready en  {subject}: {times:time} in a row, {per_second} per second, up to {ready:descriptor} {ready?is|are} ready and nothing is done about {ready?it|them}. The loop takes {cost_ns}, {value} of the elapsed time.
-- says: finding.ready ja  {subject}: 最大 {ready} 個のディスクリプターが準備完了と通知されているのに何も処理されず、{times} 回（毎秒 {per_second} 回）繰り返されています。ループに {cost_ns}（経過時間の {value}）かかっています。
-- says: ok en             No thread repeats the same fruitless look without a pause.
-- says: ok ja             何も得られない確認を休みなく繰り返すスレッドはありません。
-- says: unknown en        The recording contains no system calls with times.
-- says: unknown ja        時刻のある呼び出しが記録にありません。
-- at_least: duration min_time_ns
-- evidence: syscalls/latency
-- tags:   time, calls
WITH judged AS (
    SELECT b.*, t.elapsed_ns
    FROM busy_loops AS b
    CROSS JOIN totals AS t
    WHERE b.time_ns >= $min_time_ns AND b.time_ns >= $min_share * t.elapsed_ns AND b.times >= $min_times
)
SELECT
    concat(coalesce(p.comm, '?'), ' ', CAST(p.pid AS VARCHAR), ' ', j.call) AS subject,
    'finding' AS status,
    round(1e2 * j.time_ns / j.elapsed_ns, 1) AS value,
    1e2 * $min_share AS limit_value,
    j.time_ns AS cost_ns,
    j.time_ns AS gain_ns,
    'high' AS certainty,
    j.kind AS variant,
    p.pid AS process,
    j.times,
    CAST(1e9 * j.times / greatest(1, j.time_ns) AS BIGINT) AS per_second,
    j.ready,
    concat('fd ', CAST(j.fd AS VARCHAR), CASE WHEN o.path IS NULL THEN '' ELSE concat(' (', coalesce(e.remote, o.path), ')') END) AS object
FROM judged AS j
INNER JOIN processes AS p ON p.task_id = j.task_id
LEFT JOIN paths AS o ON o.path_id = j.path_id
LEFT JOIN sockets AS e ON e.path_id = j.path_id
UNION ALL
SELECT NULL, CASE WHEN t.calls = 0 OR t.elapsed_ns = 0 THEN 'unknown' ELSE 'ok' END, NULL, 1e2 * $min_share, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM totals AS t
WHERE (SELECT count(*) FROM judged) = 0
ORDER BY cost_ns DESC, subject
