-- Single I/O stream
-- One thread transfers nearly all data, one request after another, and waits for the device each time, while other processors are idle.
-- needs:  calls, environment, object_use, totals
-- param:  min_percent DOUBLE = 40.0       Minimum share of the elapsed time that this thread waits in reads and writes [%].
-- param:  one_percent DOUBLE = 90.0       Minimum share of the time of all reads and writes that is its own [%].
-- param:  wait_ns BIGINT = 200000 > 0     A read or write that takes longer waits for the device [ns].
-- param:  memory_rate DOUBLE = 1000000000 > 0   A transfer that is as fast comes out of memory [B/s].
-- param:  min_waits BIGINT = 50 > 0       Minimum number of such waits.
-- param:  streams BIGINT = 4 > 1          Streams to compare with.
-- column: subject VARCHAR       The program and thread.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the elapsed time that it waits in reads and writes [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time in these waits [ns].
-- column: gain_ns BIGINT        What as many streams could save at most [ns].
-- column: certainty VARCHAR     low: whether the device can do more at a time is not in the log.
-- column: process INTEGER       The process.
-- column: explained_by VARCHAR  Rules whose findings explain this one.
-- column: waits BIGINT          Reads and writes that wait.
-- column: mean_ns BIGINT        Their mean time [ns].
-- column: bytes BIGINT          Bytes they transfer [B].
-- column: rate DOUBLE           Their rate [B/s].
-- column: processors VARCHAR    Processors of the machine.
-- column: calls BIGINT          Reads and writes checked.
-- says: finding en  One thread does all the I/O: {waits:read or write|reads and writes} of {mean_ns} each, one after another, transfer {bytes} at {rate}. The machine has {processors} processors.
-- says: finding ja  1 つのスレッドだけが入出力をしています。1 回 {mean_ns} の読み書き {waits} 回を順に行い、{bytes} を {rate} で転送しています。このマシンのプロセッサは {processors} 個です。
-- says: ok en       Checked {calls:read or write|reads and writes} of files: they come from several threads, or do not wait.
-- says: ok ja       ファイルの読み書き {calls} 回を調べました。複数のスレッドから出ているか、待っていません。
-- says: unknown en  The recording contains no system calls with durations.
-- says: unknown ja  所要時間のある呼び出しが記録にありません。
-- at_least: calls min_waits
-- evidence: io/offsets --process {process}
-- tags:   time, processes, bytes
WITH buffered AS (
    -- What the page cache takes waits for no request of its own: io/throttled_writes.
    SELECT o.path_id FROM object_use AS o
    WHERE o.class = 'open' AND o.errno IS NULL AND o.path_id IS NOT NULL
    GROUP BY o.path_id
    HAVING count(*) FILTER (WHERE o.open_flags LIKE '%O_DIRECT%' OR o.open_flags LIKE '%SYNC%') = 0
), threads AS (
    -- Without the longest, which may be an outlier.
    SELECT task_id, sum(dur_ns) AS ns, count(*) FILTER (WHERE waits) - 1 AS waits, sum(dur_ns) FILTER (WHERE waits) - max(dur_ns) FILTER (WHERE waits) AS wait_ns,
        sum(transferred_bytes) FILTER (WHERE waits) - arg_max(transferred_bytes, dur_ns) FILTER (WHERE waits) AS bytes
    FROM (
        SELECT task_id, dur_ns, transferred_bytes, dur_ns > $wait_ns AND 1e9 * transferred_bytes < $memory_rate * dur_ns
            AND NOT (class = 'write' AND path_id IN (SELECT b.path_id FROM buffered AS b)) AS waits
        FROM calls
        WHERE class IN ('read', 'write') AND transferred_bytes > 0 AND via IS NULL AND kind IN ('file', 'unknown', 'device') AND path NOT LIKE '/dev/tty%' AND path NOT LIKE '/dev/pts/%'
    ) AS moves
    GROUP BY task_id
), summed AS (
    SELECT sum(ns) AS ns, arg_max(task_id, wait_ns) AS task_id FROM threads
), found AS (
    SELECT h.task_id, h.waits, h.wait_ns, h.bytes, t.elapsed_ns
    FROM summed AS s
    JOIN threads AS h ON h.task_id = s.task_id
    CROSS JOIN totals AS t
    WHERE h.waits >= $min_waits AND 1e2 * h.wait_ns >= $min_percent * t.elapsed_ns AND 1e2 * h.ns >= $one_percent * s.ns
        AND coalesce((SELECT max(value) FROM environment WHERE section = 'cpu' AND name = 'online'), '2') <> '1'
), who AS (
    SELECT DISTINCT c.task_id, c.pid, c.comm
    FROM calls AS c
    JOIN found AS f ON f.task_id = c.task_id
    WHERE c.class IN ('read', 'write')
)
SELECT
    CASE WHEN f.task_id IS NOT NULL THEN (SELECT concat(coalesce(max(w.comm), '?'), ' ', CAST(max(w.pid) AS VARCHAR)) FROM who AS w) END AS subject,
    CASE WHEN f.task_id IS NOT NULL THEN 'finding' WHEN t.calls = 0 OR NOT t.has_durations THEN 'unknown' ELSE 'ok' END AS status,
    round(CAST(1e2 * f.wait_ns / f.elapsed_ns AS DOUBLE), 1) AS value,
    CAST($min_percent AS DOUBLE) AS limit_value,
    CAST(f.wait_ns AS BIGINT) AS cost_ns,
    CAST(f.wait_ns * (1 - 1e0 / $streams) AS BIGINT) AS gain_ns,
    CASE WHEN f.task_id IS NOT NULL THEN 'low' END AS certainty,
    (SELECT max(w.pid) FROM who AS w) AS process,
    'io/sync_per_write,io/rereads,io/small_requests,io/outliers' AS explained_by,
    f.waits,
    CAST(f.wait_ns / f.waits AS BIGINT) AS mean_ns,
    CAST(f.bytes AS BIGINT) AS bytes,
    CAST(1e9 * f.bytes / f.wait_ns AS DOUBLE) AS rate,
    (SELECT max(value) FROM environment WHERE section = 'cpu' AND name = 'online') AS processors,
    t.data_calls AS calls
FROM totals AS t
LEFT JOIN found AS f ON f.waits > 0
