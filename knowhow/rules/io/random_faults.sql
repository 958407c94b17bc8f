-- Random page faults
-- Mapped files that are read page by page in random order: each access waits for one small read from the disk.
-- needs:  file_faults, totals
-- param:  min_faults BIGINT = 200 > 0    Minimum number of waits for pages of a file.
-- param:  min_random DOUBLE = 0.5        Minimum share of them that is not near the one before.
-- param:  near_bytes BIGINT = 131072 > 0  Up to so far behind the one before, a fault counts as near [B].
-- param:  min_share DOUBLE = 0.01        Minimum share of the elapsed time.
-- column: subject VARCHAR       Path of the file.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the waits that is not near the one before.
-- column: limit_value DOUBLE    Threshold: reported from this value on.
-- column: cost_ns BIGINT        Time in the waits at random places [ns].
-- column: gain_ns BIGINT        What reading ahead could save at most: that time [ns].
-- column: certainty VARCHAR     high where at least a quarter of the range that was touched was needed; else medium.
-- column: file VARCHAR          The file.
-- column: waits BIGINT          Times that a thread waited for a page of it.
-- column: at_random BIGINT     Of these, waits at a place that is not near the one before.
-- column: average_ns BIGINT     Average wait at a random place [ns].
-- column: bytes BIGINT          Bytes of the pages that were waited for [B].
-- column: span_bytes BIGINT     From the first to the last of them in the file [B].
-- column: files BIGINT          Mapped files checked.
-- says: finding en  Accesses to this mapped file waited for the disk {waits:time}, {at_random} of them at random offsets, {average_ns} each: {bytes} within a range of {span_bytes}.
-- says: finding ja  マップしたこのファイルへのアクセスがディスクを {waits} 回待ちました。うち {at_random} 回はランダムな位置、1 回あたり {average_ns} です（{span_bytes} の範囲のうち {bytes}）。
-- says: ok en       Checked {files:mapped file}: none waits for the disk at random offsets.
-- says: ok ja       マップされた {files} 個のファイルを調べました。ランダムな位置でディスクを待つものはありません。
-- says: unknown en  The recording contains no system calls.
-- says: unknown ja  システムコールが記録にありません。
-- at_least: file_faults min_faults
-- evidence: io/fault_offsets --file {file}
-- tags:   offsets, time, files
WITH steps AS (
    SELECT path, offset_bytes, dur_ns,
        offset_bytes - min(offset_bytes) OVER (
            PARTITION BY path_id, task_id ORDER BY ts_ns, offset_bytes ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING
        ) AS step
    FROM file_faults
    WHERE major AND path IS NOT NULL
), marked AS (
    SELECT path, offset_bytes, dur_ns, CASE WHEN step < 0 OR step > $near_bytes THEN 1 ELSE 0 END AS is_random
    FROM steps
), files AS (
    SELECT path, count(*) AS waits, sum(is_random) AS at_random, sum(CASE WHEN is_random = 1 THEN dur_ns ELSE 0 END) AS cost_ns,
        4096 * count(DISTINCT offset_bytes) AS bytes, max(offset_bytes) - min(offset_bytes) + 4096 AS span_bytes
    FROM marked
    GROUP BY path
), found AS (
    SELECT f.*
    FROM files AS f
    CROSS JOIN totals AS t
    WHERE f.waits >= $min_faults AND f.at_random >= $min_random * f.waits AND coalesce(f.cost_ns >= $min_share * t.elapsed_ns, true)
), state AS (
    SELECT count(DISTINCT path_id) AS files FROM file_faults
)
SELECT
    f.path AS subject,
    CASE WHEN f.path IS NOT NULL THEN 'finding' WHEN t.calls = 0 THEN 'unknown' ELSE 'ok' END AS status,
    round(1e0 * f.at_random / f.waits, 4) AS value,
    CAST($min_random AS DOUBLE) AS limit_value,
    CAST(f.cost_ns AS BIGINT) AS cost_ns,
    CAST(f.cost_ns AS BIGINT) AS gain_ns,
    CASE WHEN f.path IS NULL THEN NULL WHEN 4 * f.bytes >= f.span_bytes THEN 'high' ELSE 'medium' END AS certainty,
    f.path AS file,
    f.waits,
    CAST(f.at_random AS BIGINT) AS at_random,
    CAST(round(f.cost_ns / f.at_random) AS BIGINT) AS average_ns,
    f.bytes,
    f.span_bytes,
    s.files
FROM state AS s
CROSS JOIN totals AS t
LEFT JOIN found AS f ON f.waits > 0
