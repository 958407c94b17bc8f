-- Free space
-- Free space by size of its fragments: shows whether a large file can still be stored contiguously.
-- needs:  free_extents
-- column: from_bytes BIGINT       Fragments of this size or larger, up to the next line [B].
-- column: pieces BIGINT           Number of fragments.
-- column: bytes BIGINT            Their total size [B].
-- column: share DOUBLE            Share of all free space.
-- column: at_least DOUBLE         Share of all free space in fragments of this size or larger.
-- chart:  bars x=from_bytes y=bytes
-- tags:   disk, bytes
WITH classes AS (
    SELECT CAST(power(2, floor(log2(greatest(length_bytes, 1)))) AS BIGINT) AS from_bytes, length_bytes
    FROM free_extents
), counted AS (
    SELECT from_bytes, count(*) AS pieces, sum(length_bytes) AS bytes
    FROM classes
    GROUP BY from_bytes
), total AS (
    SELECT sum(bytes) AS bytes
    FROM counted
)
SELECT
    c.from_bytes,
    c.pieces,
    CAST(c.bytes AS BIGINT) AS bytes,
    round(1e0 * c.bytes / t.bytes, 4) AS share,
    round(1e0 * sum(c.bytes) OVER (ORDER BY c.from_bytes DESC) / t.bytes, 4) AS at_least
FROM counted AS c, total AS t
ORDER BY c.from_bytes
