-- Fragmented free space
-- There is free space, but in fragments so small that every new large file is fragmented.
-- needs:  file_systems, free_extents
-- param:  piece_bytes BIGINT = 1048576 > 0  Fragments of this size or larger count as contiguous [B].
-- param:  min_good DOUBLE = 0.5             Minimum share of the free space in such fragments.
-- param:  min_free_bytes BIGINT = 67108864  Minimum free space for this rule [B].
-- column: subject VARCHAR       The device or image.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the free space in large fragments.
-- column: limit_value DOUBLE    Threshold: reported below this value.
-- column: cost_ns BIGINT        Not known: it is paid by what will be written [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     high.
-- column: pieces BIGINT         Fragments of free space.
-- column: free_bytes BIGINT     All of them together [B].
-- column: average_bytes BIGINT  Their average size [B].
-- column: largest_bytes BIGINT  Largest fragment of free space [B].
-- says: finding en  {free_bytes} are free, but in {pieces:fragment} of {average_bytes} on average (largest {largest_bytes}). New large files will be fragmented.
-- says: finding ja  空きは {free_bytes} ありますが、平均 {average_bytes} の {pieces} 個の断片で、最大でも {largest_bytes} です。大きなファイルは断片に分かれます。
-- says: ok en       {free_bytes} are free in {pieces:fragment} (largest {largest_bytes}).
-- says: ok ja       空きは {pieces} 個の断片で {free_bytes}、最大は {largest_bytes} です。
-- says: unknown en  The map of free space was not read.
-- says: unknown ja  空き領域の位置は読まれていません。
-- evidence: disk/free
-- tags:   disk, bytes
-- was:    disk/free_crumbs
WITH pieces AS (
    SELECT count(*) AS pieces, sum(length_bytes) AS free_bytes, max(length_bytes) AS largest_bytes,
        sum(CASE WHEN length_bytes >= $piece_bytes THEN length_bytes ELSE 0 END) AS good_bytes
    FROM free_extents
), state AS (
    SELECT max(source) AS source FROM file_systems
)
SELECT
    s.source AS subject,
    CASE WHEN p.pieces = 0 THEN 'unknown' WHEN p.free_bytes >= $min_free_bytes AND p.good_bytes < $min_good * p.free_bytes THEN 'finding'
        ELSE 'ok' END AS status,
    round(1e0 * p.good_bytes / p.free_bytes, 4) AS value,
    CAST($min_good AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN p.free_bytes >= $min_free_bytes AND p.good_bytes < $min_good * p.free_bytes THEN 'high' END AS certainty,
    p.pieces,
    CAST(p.free_bytes AS BIGINT) AS free_bytes,
    CAST(floor(1e0 * p.free_bytes / p.pieces) AS BIGINT) AS average_bytes,
    p.largest_bytes
FROM pieces AS p, state AS s
