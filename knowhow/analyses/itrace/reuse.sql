-- Reuse distances
-- How far apart accesses to the same memory are, and which share of them would hit a cache of each size.
-- needs:  reuse_distances
-- param:  request INTEGER = 0           Only this request; 0: all.
-- param:  block_bytes BIGINT = 64       Size of a memory block: 64 (a cache line) or 4096 (a page).
-- column: kind VARCHAR                  instruction or data.
-- column: distance BIGINT               Number of other blocks accessed since then: the minimum of its class (0, 1, 2 to 3, 4 to 7, ...). Empty: the first access.
-- column: references BIGINT             Accesses with such a distance.
-- column: cache_bytes BIGINT            Size of a cache that contains all of these blocks, if it replaces the least recently used one.
-- column: hit_share DOUBLE              Share of all accesses that find their block in that cache.
-- match:  kind, distance
-- sums:   references
-- chart:  curves x=cache_bytes y=hit_share color=kind title="References that would hit a cache" title_ja="キャッシュに当たる参照の割合"
-- tags:   size
WITH classes AS (
    SELECT r.kind, r.distance, sum(r.times) AS times
    FROM reuse_distances AS r
    WHERE ($request = 0 OR r.request_id = $request) AND r.block_bytes = $block_bytes
    GROUP BY r.kind, r.distance
), totals AS (
    SELECT c.kind, sum(c.times) AS times FROM classes AS c GROUP BY c.kind
), nearer AS (
    SELECT c.kind, c.distance, sum(n.times) AS times
    FROM classes AS c
    INNER JOIN classes AS n ON n.kind = c.kind AND n.distance <= c.distance
    GROUP BY c.kind, c.distance
)

SELECT
    c.kind,
    c.distance,
    CAST(c.times AS BIGINT) AS "references",
    CASE WHEN c.distance = 0 THEN $block_bytes ELSE 2 * c.distance * $block_bytes END AS cache_bytes,
    n.times * 1.0 / t.times AS hit_share
FROM classes AS c
INNER JOIN totals AS t ON t.kind = c.kind
LEFT JOIN nearer AS n ON n.kind = c.kind AND n.distance = c.distance
ORDER BY c.kind, c.distance NULLS LAST
