-- Fragmented files
-- Files in the most pieces, with what reading them costs: requests to the device more than a file in one piece would need.
-- needs:  inodes, extents
-- param:  request_ns BIGINT = 20000         What one more request costs [ns].
-- column: path VARCHAR                      The file.
-- column: kind VARCHAR                      file or directory.
-- column: size_bytes BIGINT                 Its length [B].
-- column: extents BIGINT                    Pieces that the file system keeps.
-- column: fragments BIGINT                  Pieces on the device, by the rule of filefrag.
-- column: mean_bytes BIGINT                 Mean size of a piece [B].
-- column: compressed BIGINT                 Extents that are compressed: those are small by design, and no fragments.
-- column: more_requests BIGINT              Requests that reading all of it takes beyond those of a file in one piece.
-- column: cost_ns BIGINT                    Their time, at the cost of one [ns].
-- tags:   disk, files
WITH pieces AS (
    SELECT inode, count(*) FILTER (WHERE flags LIKE '%compressed%') AS compressed
    FROM extents
    GROUP BY inode
)
SELECT
    i.path,
    i.kind,
    i.size_bytes,
    CAST(i.extents AS BIGINT) AS extents,
    CAST(i.fragments AS BIGINT) AS fragments,
    CAST(i.allocated_bytes / i.fragments AS BIGINT) AS mean_bytes,
    coalesce(p.compressed, 0) AS compressed,
    CAST(CASE WHEN coalesce(p.compressed, 0) = 0 THEN i.fragments - 1 ELSE 0 END AS BIGINT) AS more_requests,
    CAST(CASE WHEN coalesce(p.compressed, 0) = 0 THEN i.fragments - 1 ELSE 0 END AS BIGINT) * $request_ns AS cost_ns
FROM inodes AS i
LEFT JOIN pieces AS p ON p.inode = i.inode
WHERE i.fragments > 1
ORDER BY cost_ns DESC, i.fragments DESC, i.path
