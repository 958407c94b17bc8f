-- Seeks
-- The file position is set or queried before or after nearly every read or write.
-- needs:  call_use, file_use, paths, totals
-- param:  min_seeks BIGINT = 200 > 0     Minimum number of seeks in a file.
-- param:  min_ratio DOUBLE = 0.5 > 0     Seeks for each read or write from which it is reported.
-- param:  min_share DOUBLE = 0.01        Minimum share of the elapsed time.
-- column: subject VARCHAR       Path of the file.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Seeks for each read or write.
-- column: limit_value DOUBLE    Threshold: reported from this value on.
-- column: cost_ns BIGINT        Time in the seeks [ns].
-- column: gain_ns BIGINT        What doing without them could save at most [ns].
-- column: certainty VARCHAR     high; low where the log has no durations.
-- column: cost_calls BIGINT     Calls that this cost is the time of.
-- column: file VARCHAR          The file.
-- column: variant VARCHAR       nameless where the log does not say which file.
-- column: explained_by VARCHAR  Rules whose findings explain this one.
-- column: seeks BIGINT          Seeks in the file.
-- column: moves BIGINT          Reads and writes of it.
-- column: files BIGINT          Files checked.
-- column: nameless BIGINT       Seeks in files that the log does not name.
-- says: finding en  {seeks:seek} (`lseek`) for {moves:read or write|reads and writes} of this file.
-- says: finding ja  このファイルの読み書き {moves} 回に対し、シーク（`lseek`）が {seeks} 回あります。
-- says: ok en       Checked {files:file}: the cost of seeking is negligible.
-- says: ok ja       {files} 個のファイルを調べました。シークのコストはわずかです。
-- says: unknown en  The recording contains no system calls.
-- says: unknown ja  システムコールが記録にありません。
-- says: unknown.nameless en  {nameless:seek} {nameless?is|are} in files that the log does not name.
-- says: unknown.nameless ja  シークのうち {nameless} 回は、どのファイルのものかログからわかりません。
-- at_least: calls min_seeks
-- evidence: io/offsets --file {file}
-- tags:   offsets, calls, files
WITH files AS (
    SELECT p.path, coalesce(sum(u.calls - u.errors) FILTER (WHERE u.class = 'seek'), 0) AS seeks,
        coalesce(sum(u.calls) FILTER (WHERE u.class IN ('read', 'write')), 0) AS moves,
        CAST(sum(u.time_ns) FILTER (WHERE u.class = 'seek') AS BIGINT) AS cost_ns,
        sum(u.time_ns) FILTER (WHERE u.class = 'read') AS read_ns
    FROM file_use AS u
    JOIN paths AS p ON p.path_id = u.path_id
    WHERE u.class IN ('seek', 'read', 'write') AND p.kind IN ('file', 'unknown', 'device')
    GROUP BY p.path
), found AS (
    SELECT f.path, f.seeks, f.moves, f.cost_ns, f.read_ns
    FROM files AS f
    CROSS JOIN totals AS t
    WHERE f.seeks >= $min_seeks AND f.seeks >= $min_ratio * f.moves AND coalesce(f.cost_ns >= $min_share * t.elapsed_ns, true)
), state AS (
    SELECT (SELECT count(*) FROM files) AS files,
        (SELECT coalesce(sum(calls), 0) FROM call_use WHERE class = 'seek' AND kind IS NULL AND errno IS NULL) AS nameless
)
SELECT
    f.path AS subject,
    CASE WHEN f.path IS NOT NULL THEN 'finding' WHEN t.calls = 0 OR s.nameless >= $min_seeks THEN 'unknown' ELSE 'ok' END AS status,
    round(CAST(f.seeks AS DOUBLE) / greatest(f.moves, 1), 2) AS value,
    CAST($min_ratio AS DOUBLE) AS limit_value,
    f.cost_ns,
    f.cost_ns AS gain_ns,
    CASE WHEN f.path IS NULL THEN NULL WHEN f.cost_ns IS NULL THEN 'low' ELSE 'high' END AS certainty,
    CAST(f.seeks AS BIGINT) AS cost_calls,
    f.path AS file,
    CASE WHEN f.path IS NULL AND s.nameless >= $min_seeks THEN 'nameless' END AS variant,
    -- Where reading takes half as long as seeking or longer, reading again is the reason. With less, seeking back is.
    CASE WHEN 1e0 * f.read_ns >= 5e-1 * f.cost_ns THEN 'io/rereads' END AS explained_by,
    CAST(f.seeks AS BIGINT) AS seeks,
    CAST(f.moves AS BIGINT) AS moves,
    s.files,
    CAST(s.nameless AS BIGINT) AS nameless
FROM state AS s
CROSS JOIN totals AS t
LEFT JOIN found AS f ON f.seeks > 0
