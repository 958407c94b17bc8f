-- Fragmented files
-- Files in the most pieces, with what reading them costs: requests to the device more than a file in one piece would need, and their time.
-- Compressed extents are small by design, and are read one by one in any case: they count as no pieces.
-- needs:  inodes, extents
-- param:  request_ns BIGINT = 20000         What one more request costs the device [ns].
-- column: path VARCHAR                      The file.
-- column: kind VARCHAR                      file or directory.
-- column: size_bytes BIGINT                 Its length [B].
-- column: extents BIGINT                    Pieces that the file system keeps.
-- column: fragments BIGINT                  Pieces on the device, by the rule of filefrag.
-- column: compressed BIGINT                 Of its extents, those that are compressed.
-- column: mean_bytes BIGINT                 Mean size of a piece [B].
-- column: more_requests BIGINT              Requests that reading all of it takes beyond those of a file in one piece.
-- column: cost_ns BIGINT                    Their time, at the cost of one [ns].
-- tags:   disk, files, time
WITH packed AS (
    SELECT inode, count(*) AS extents
    FROM extents
    WHERE flags LIKE '%compressed%'
    GROUP BY inode
), pieces AS (
    SELECT i.path, i.inode, i.kind, i.size_bytes, i.allocated_bytes, i.extents, i.fragments, coalesce(p.extents, 0) AS compressed,
        greatest(i.fragments - 1 - coalesce(p.extents, 0), 0) AS more_requests
    FROM inodes AS i
    LEFT JOIN packed AS p ON p.inode = i.inode
    WHERE i.fragments > 1
)
SELECT
    path,
    kind,
    size_bytes,
    CAST(extents AS BIGINT) AS extents,
    CAST(fragments AS BIGINT) AS fragments,
    compressed,
    CAST(floor(1e0 * allocated_bytes / fragments) AS BIGINT) AS mean_bytes,
    CAST(more_requests AS BIGINT) AS more_requests,
    CAST(more_requests * $request_ns AS BIGINT) AS cost_ns
FROM pieces
ORDER BY cost_ns DESC, fragments DESC, path, inode
