-- Devices of a file system
-- How much of each device of a file system is used, for what, and how fragmented its free space is: shows whether one device is fuller than the others.
-- needs:  devices, extents, free_extents, layout
-- column: device BIGINT             Its number, as in the tables of the scan.
-- column: path VARCHAR              Device or image; empty if it is missing.
-- column: missing BOOLEAN           Whether it was missing (degraded).
-- column: size_bytes BIGINT         Size that the file system uses [B].
-- column: allocated_bytes BIGINT    Space that chunks occupy; empty for file systems without chunks [B].
-- column: data_bytes BIGINT         Space that files occupy, first copy only; shared data counts for each file [B].
-- column: further_bytes BIGINT      Further copies of data, and parity [B].
-- column: own_bytes BIGINT          Space that the file system uses itself, or to which no file refers any more [B].
-- column: free_bytes BIGINT         Free [B].
-- column: share_free DOUBLE         Share of its size that is free.
-- column: free_extents BIGINT       Fragments of free space.
-- column: largest_free_bytes BIGINT The largest of them [B].
-- heads_ja:  device=番号, path=デバイス, missing=欠落
-- tags:   disk, bytes
WITH of_files AS (
    SELECT device, sum(coalesce(stored_bytes, length_bytes)) AS bytes
    FROM extents
    WHERE physical_bytes IS NOT NULL
    GROUP BY device
), of_layout AS (
    SELECT device, sum(CASE WHEN part IN ('copy', 'parity') THEN length_bytes ELSE 0 END) AS further,
        sum(CASE WHEN part NOT IN ('copy', 'parity') THEN length_bytes ELSE 0 END) AS own
    FROM layout
    WHERE part <> 'group'
    GROUP BY device
), of_free AS (
    SELECT device, count(*) AS pieces, max(length_bytes) AS largest
    FROM free_extents
    GROUP BY device
)
SELECT
    CAST(d.device AS BIGINT) AS device,
    d.path,
    d.missing,
    d.size_bytes,
    d.allocated_bytes,
    CAST(coalesce(e.bytes, 0) AS BIGINT) AS data_bytes,
    CAST(coalesce(l.further, 0) AS BIGINT) AS further_bytes,
    CAST(coalesce(l.own, 0) AS BIGINT) AS own_bytes,
    d.free_bytes,
    CASE WHEN d.size_bytes > 0 THEN round(1e0 * d.free_bytes / d.size_bytes, 4) END AS share_free,
    coalesce(f.pieces, 0) AS free_extents,
    f.largest AS largest_free_bytes
FROM devices AS d
LEFT JOIN of_files AS e ON e.device = d.device
LEFT JOIN of_layout AS l ON l.device = d.device
LEFT JOIN of_free AS f ON f.device = d.device
ORDER BY d.device
