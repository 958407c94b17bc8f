-- File system nearly full
-- A file system with little free space: new files are fragmented, and writes become slow before they fail.
-- needs:  file_systems
-- param:  min_free DOUBLE = 0.05          Minimum share that should be free.
-- column: subject VARCHAR       The device or image.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of it that is free.
-- column: limit_value DOUBLE    Threshold: reported below this value.
-- column: cost_ns BIGINT        Not known: it is paid by what will be written [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     medium.
-- column: urgent BOOLEAN        Whether it is: what is written next may fail.
-- column: fs_type VARCHAR       Type of the file system.
-- column: free_bytes BIGINT     Free space [B].
-- column: size_bytes BIGINT     All of it [B].
-- says: finding en  {free_bytes} of this {size_bytes} {fs_type} file system are free: new files are fragmented, and writes become slow.
-- says: finding ja  この {fs_type} の空きは {size_bytes} のうち {free_bytes} です。新しいファイルは断片化し、書き込みが遅くなります。
-- says: ok en       {free_bytes} of {size_bytes} are free.
-- says: ok ja       {size_bytes} のうち {free_bytes} が空いています。
-- says: unknown en  The file system does not report its free space.
-- says: unknown ja  空き領域のサイズをファイルシステムが示しません。
-- evidence: disk/free
-- tags:   disk, bytes
WITH spaces AS (
    SELECT source, fs_type, free_bytes, size_bytes,
        CASE WHEN size_bytes > 0 THEN 1e0 * free_bytes / size_bytes END AS free_share
    FROM file_systems
), state AS (
    SELECT count(*) AS systems FROM file_systems
)
SELECT
    s.source AS subject,
    CASE WHEN s.free_share IS NULL THEN 'unknown' WHEN s.free_share < $min_free THEN 'finding' ELSE 'ok' END AS status,
    round(s.free_share, 4) AS value,
    CAST($min_free AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN s.free_share < $min_free THEN 'medium' END AS certainty,
    coalesce(s.free_share < $min_free, false) AS urgent,
    s.fs_type,
    s.free_bytes,
    s.size_bytes
FROM state AS t
LEFT JOIN spaces AS s ON t.systems > 0
