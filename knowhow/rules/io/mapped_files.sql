-- Mapped files
-- Large files that are mapped into memory: reads and writes through a mapping make no system call and are not in the log.
-- needs:  mappings, totals
-- param:  min_bytes BIGINT = 16777216 > 0   Minimum for a finding [B].
-- param:  min_part DOUBLE = 0.1             Minimum share of all bytes that calls transferred.
-- column: subject VARCHAR       The file; of many, the largest.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Bytes mapped [B].
-- column: limit_value DOUBLE    Threshold: reported from this value on [B].
-- column: cost_ns BIGINT        Not known: NULL [ns].
-- column: gain_ns BIGINT        Nothing: it is something to know [ns].
-- column: certainty VARCHAR     high: that it is mapped is in the log; how much of it was touched is not.
-- column: file VARCHAR          The file.
-- column: files BIGINT          Files mapped like this, or files checked.
-- column: mapped_bytes BIGINT   Bytes of all of them [B].
-- column: times BIGINT          Mappings made.
-- column: data_bytes BIGINT     Bytes that reads and writes of files transferred [B].
-- says: finding en  {mapped_bytes} of {files:file} are mapped into memory ({times:mapping}); reads and writes transferred {data_bytes}. I/O through the mappings is not in the log.
-- says: finding ja  {files} 個のファイルの {mapped_bytes} がメモリにマップされています（{times} 回）。読み書きで転送されたのは {data_bytes} です。マップを通した入出力はログにありません。
-- says: ok en       Checked {files:mapped file}: only libraries and small files.
-- says: ok ja       マップされた {files} 個のファイルを調べました。ライブラリと小さなファイルだけです。
-- says: unknown en  The recording contains no system calls.
-- says: unknown ja  システムコールが記録にありません。
-- evidence: processes/mappings --file {file}
-- tags:   bytes, files
WITH mapped AS (
    SELECT m.path, regexp_extract(m.path, '^(.*)/[^/]*$', 1) AS directory, count(*) AS times, max(m.length_bytes) AS largest,
        max(m.offset_bytes + m.length_bytes) AS reach, sum(m.length_bytes) AS bytes, count(DISTINCT m.offset_bytes) AS places,
        max(CASE WHEN m.protection LIKE '%PROT_EXEC%' THEN 1 ELSE 0 END) AS is_code
    FROM mappings AS m
    WHERE m.path IS NOT NULL AND m.kind IN ('file', 'unknown')
    GROUP BY m.path
), code AS (
    -- Files beside libraries belong to the program, such as the class library of Java.
    SELECT DISTINCT directory FROM mapped WHERE is_code = 1
), data AS (
    SELECT m.path, m.times, least(m.bytes, greatest(m.reach, m.largest)) AS bytes
    FROM mapped AS m
    WHERE m.directory NOT IN (SELECT directory FROM code)
), summed AS (
    SELECT count(*) AS files, sum(bytes) AS bytes, sum(times) AS times, arg_max(path, bytes) AS path
    FROM data
    WHERE bytes >= least($min_bytes, 1048576)
), found AS (
    SELECT s.*
    FROM summed AS s
    CROSS JOIN totals AS t
    WHERE s.bytes >= $min_bytes AND s.bytes >= $min_part * t.data_bytes
), state AS (
    SELECT count(*) AS files FROM mapped
)
SELECT
    f.path AS subject,
    CASE WHEN f.path IS NOT NULL THEN 'finding' WHEN t.calls = 0 THEN 'unknown' ELSE 'ok' END AS status,
    CAST(f.bytes AS DOUBLE) AS value,
    CAST($min_bytes AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CASE WHEN f.path IS NOT NULL THEN CAST(0 AS BIGINT) END AS gain_ns,
    CASE WHEN f.path IS NOT NULL THEN 'high' END AS certainty,
    f.path AS file,
    coalesce(f.files, s.files) AS files,
    CAST(f.bytes AS BIGINT) AS mapped_bytes,
    CAST(f.times AS BIGINT) AS times,
    t.data_bytes
FROM totals AS t
CROSS JOIN state AS s
LEFT JOIN found AS f ON f.files > 0
