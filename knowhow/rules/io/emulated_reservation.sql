-- Space reserved byte by byte
-- The C library reserves space for a file by writing one byte into each block, because the file system cannot do it at once.
-- needs:  emulated_reservations, totals
-- uses:   paths, processes
-- param:  min_writes BIGINT = 1000 > 0  Minimum number of such writes to a file.
-- param:  min_share DOUBLE = 0.02       Minimum share of the elapsed time that they take.
-- column: subject VARCHAR       The file.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Number of writes of one byte.
-- column: limit_value DOUBLE    Threshold: reported from this value on.
-- column: cost_ns BIGINT        Time in these writes [ns].
-- column: gain_ns BIGINT        Potential saving: nearly all of it [ns].
-- column: certainty VARCHAR     high where fallocate had been refused before; else medium; low where the log has no durations.
-- column: cost_calls BIGINT     Calls that this cost is the time of.
-- column: file VARCHAR          The file.
-- column: process INTEGER       Process id.
-- column: writes BIGINT         Number of these writes.
-- column: block_bytes BIGINT    Distance between them [B].
-- column: size_bytes BIGINT     Size that is reserved [B].
-- says: finding en  {writes:write} of one byte each, {block_bytes} apart, reserve {size_bytes} for this file: the C library does this where the file system cannot (posix_fallocate).
-- says: finding ja  このファイルの {size_bytes} を確保するため、{block_bytes} おきに 1 バイトずつ、{writes} 回書き込んでいます。ファイルシステムが領域を確保できない場合の C ライブラリの動作です（posix_fallocate）。
-- says: ok en       No file is reserved byte by byte.
-- says: ok ja       1 バイトずつ領域を確保しているファイルはありません。
-- says: unknown en  The recording contains no system calls.
-- says: unknown ja  システムコールが記録にありません。
-- at_least: calls min_writes
-- evidence: io/offsets --file {file}
-- tags:   calls, files, size
WITH judged AS (
    SELECT r.*
    FROM emulated_reservations AS r
    CROSS JOIN totals AS t
    WHERE r.writes >= $min_writes AND coalesce(r.time_ns >= $min_share * t.elapsed_ns, true)
)
SELECT
    coalesce(o.path, 'not known') AS subject,
    'finding' AS status,
    CAST(j.writes AS DOUBLE) AS value,
    CAST($min_writes AS DOUBLE) AS limit_value,
    j.time_ns AS cost_ns,
    j.time_ns AS gain_ns,
    CASE WHEN j.time_ns IS NULL THEN 'low' WHEN j.refused = 1 THEN 'high' ELSE 'medium' END AS certainty,
    j.writes AS cost_calls,
    o.path AS file,
    p.pid AS process,
    j.writes,
    j.block_bytes,
    j.size_bytes
FROM judged AS j
LEFT JOIN paths AS o ON o.path_id = j.path_id
LEFT JOIN processes AS p ON p.task_id = j.task_id
UNION ALL
SELECT NULL, CASE WHEN t.calls = 0 THEN 'unknown' ELSE 'ok' END, NULL, CAST($min_writes AS DOUBLE), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM totals AS t
WHERE (SELECT count(*) FROM judged) = 0
ORDER BY cost_ns DESC, subject
