-- Writes held to the rate of the disk
-- Writes into the page cache are fast until too much of it is not on the disk yet; then the kernel makes the program wait for the disk.
-- needs:  calls, object_use, totals
-- uses:   paths, processes
-- param:  min_share DOUBLE = 0.1           Minimum share of the elapsed time that the slow writes take.
-- param:  slow_ns BIGINT = 10000000 > 0    A write that takes this long was made to wait [ns].
-- param:  min_slow BIGINT = 5              Minimum number of them.
-- param:  memory_rate DOUBLE = 3e8         The other writes are at least this fast, as copies in memory are [B/s].
-- column: subject VARCHAR       The file.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the elapsed time [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time in the slow writes [ns].
-- column: gain_ns BIGINT        Empty: the rate of the disk remains [ns].
-- column: certainty VARCHAR     medium: why these writes waited is concluded from their times.
-- column: file VARCHAR          The file.
-- column: process INTEGER       Process id.
-- column: writes BIGINT         Writes to the file.
-- column: slow BIGINT           The slow ones.
-- column: mean_ns BIGINT        Time of a slow one, on average [ns].
-- column: usual_ns BIGINT       Time of another one, on average [ns].
-- column: rate DOUBLE           Bytes written per second, from the first slow write to the end of the last one [B/s].
-- says: finding en  {slow} of {writes:write} to this file take {mean_ns} each, the others {usual_ns}: the page cache is full of data that is not on the disk yet, and the kernel holds the program to the rate of the disk: {rate} since then.
-- says: finding ja  このファイルへの書き込み {writes} 回のうち {slow} 回が 1 回 {mean_ns}、ほかは {usual_ns} です。ページキャッシュがディスクに書かれていないデータで埋まり、カーネルがプログラムをディスクの速度（それ以降 {rate}）に抑えています。
-- says: ok en       No buffered write was made to wait for the disk for long.
-- says: ok ja       ページキャッシュへの書き込みで、ディスクを長く待ったものはありません。
-- says: unknown en  The recording contains no system calls with durations.
-- says: unknown ja  所要時間のある呼び出しが記録にありません。
-- at_least: calls min_slow
-- evidence: io/offsets --file {file}
-- tags:   time, bytes, files
WITH through AS (
    -- Files whose writes do not end in the page cache.
    SELECT DISTINCT o.path_id FROM object_use AS o
    WHERE o.path_id IS NOT NULL AND (o.class = 'sync' OR o.open_flags LIKE '%O_DIRECT%' OR o.open_flags LIKE '%SYNC%')
), writes AS (
    SELECT c.path_id, c.task_id, count(*) AS writes, min(c.ts_ns) FILTER (WHERE c.dur_ns >= $slow_ns) AS held_from_ns,
        count(*) FILTER (WHERE c.dur_ns >= $slow_ns) AS slow, coalesce(sum(c.dur_ns) FILTER (WHERE c.dur_ns >= $slow_ns), 0) AS slow_ns,
        coalesce(sum(c.dur_ns) FILTER (WHERE c.dur_ns < $slow_ns), 0) AS fast_ns, coalesce(sum(c.transferred_bytes) FILTER (WHERE c.dur_ns < $slow_ns), 0) AS fast_bytes
    FROM calls AS c
    WHERE coalesce(c.class, '') = 'write' AND c.transferred_bytes > 0 AND c.dur_ns IS NOT NULL AND c.via IS NULL AND coalesce(c.kind, '') IN ('file', 'unknown')
        AND c.path_id NOT IN (SELECT h.path_id FROM through AS h)
    GROUP BY c.path_id, c.task_id
), judged AS (
    SELECT w.*, t.elapsed_ns
    FROM writes AS w
    CROSS JOIN totals AS t
    WHERE w.slow >= $min_slow AND 2 * w.slow <= w.writes AND w.slow_ns >= $min_share * t.elapsed_ns AND w.slow_ns >= 4 * w.fast_ns
        AND 1e9 * w.fast_bytes >= $memory_rate * w.fast_ns
), held AS (
    -- Before the first wait, the page cache took everything.
    SELECT j.path_id, j.task_id, 1e9 * sum(c.transferred_bytes) / greatest(1, max(c.ts_ns + c.dur_ns) - min(c.ts_ns)) AS rate
    FROM judged AS j
    INNER JOIN calls AS c ON c.path_id = j.path_id AND c.task_id = j.task_id AND c.ts_ns >= j.held_from_ns
    WHERE coalesce(c.class, '') = 'write' AND c.transferred_bytes > 0 AND c.dur_ns IS NOT NULL
    GROUP BY j.path_id, j.task_id
)
SELECT
    coalesce(o.path, 'not known') AS subject,
    'finding' AS status,
    round(1e2 * j.slow_ns / j.elapsed_ns, 1) AS value,
    1e2 * $min_share AS limit_value,
    CAST(j.slow_ns AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    'medium' AS certainty,
    o.path AS file,
    p.pid AS process,
    j.writes,
    j.slow,
    CAST(j.slow_ns // j.slow AS BIGINT) AS mean_ns,
    CAST(j.fast_ns // (j.writes - j.slow) AS BIGINT) AS usual_ns,
    round(h.rate, 0) AS rate
FROM judged AS j
INNER JOIN held AS h ON h.path_id = j.path_id AND h.task_id = j.task_id
LEFT JOIN paths AS o ON o.path_id = j.path_id
LEFT JOIN processes AS p ON p.task_id = j.task_id
UNION ALL
SELECT NULL, CASE WHEN t.calls = 0 OR NOT t.has_durations THEN 'unknown' ELSE 'ok' END, NULL, 1e2 * $min_share, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM totals AS t
WHERE (SELECT count(*) FROM judged) = 0
ORDER BY cost_ns DESC, subject
