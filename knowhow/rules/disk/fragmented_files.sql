-- Fragmented files
-- Files in so many small pieces that reading them takes far more requests than it should.
-- needs:  inodes, extents
-- param:  min_pieces BIGINT = 50 > 0        Files in fewer pieces are no finding.
-- param:  small_bytes BIGINT = 65536 > 0    Pieces of this size and more on average cost little [B].
-- param:  request_ns BIGINT = 20000 > 0     What one more request costs the device [ns].
-- column: subject VARCHAR       Path of the file.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Average size of a piece in bytes.
-- column: limit_value DOUBLE    Below which it is a finding.
-- column: cost_ns BIGINT        Time of the requests that one piece would not need, each time that all of it is read [ns].
-- column: gain_ns BIGINT        The same: what joining the pieces could save [ns].
-- column: certainty VARCHAR     medium: what a request costs differs from device to device.
-- column: pieces BIGINT         Pieces on the device.
-- column: size_bytes BIGINT     Length of the file [B].
-- column: average_bytes BIGINT  Average size of a piece [B].
-- column: files BIGINT          Files looked at.
-- column: packed BIGINT         Of these, files with compressed extents, which are small by design and count as no pieces.
-- says: finding en  This file of {size_bytes} is in {pieces} pieces of {average_bytes} on average. Reading it takes {cost_ns} more than in one piece, at {request_ns} a request.
-- says: finding ja  {size_bytes} のこのファイルは、平均 {average_bytes} の {pieces} 個の断片に分かれています。要求一回を {request_ns} とすると、読むのに一続きの場合より {cost_ns} 多くかかります。
-- says: ok en       {files} file(s) looked at, {packed} of them with compressed extents: none is in many small pieces.
-- says: ok ja       {files} 個のファイル（うち {packed} 個は圧縮エクステントあり）を調べました。多くの小さな断片に分かれたものはありません。
-- says: unknown en  No file's blocks were read.
-- says: unknown ja  ファイルのブロックは読まれていません。
-- evidence: disk/files
-- tags:   disk, files, time
WITH packed AS (
    SELECT inode, count(*) AS extents
    FROM extents
    WHERE flags LIKE '%compressed%'
    GROUP BY inode
), pieces AS (
    SELECT i.inode, i.path, i.size_bytes, i.allocated_bytes, i.fragments - coalesce(p.extents, 0) AS pieces
    FROM inodes AS i
    LEFT JOIN packed AS p ON p.inode = i.inode
    WHERE i.kind = 'file' AND i.extents > 0
), found AS (
    SELECT *
    FROM pieces
    WHERE pieces >= $min_pieces AND allocated_bytes < $small_bytes * pieces
), state AS (
    SELECT count(*) AS files FROM pieces
), compressed AS (
    SELECT count(*) AS packed FROM packed
)
SELECT
    CASE WHEN f.pieces IS NULL THEN NULL WHEN f.path IS NOT NULL THEN f.path ELSE concat('inode ', CAST(f.inode AS VARCHAR)) END AS subject,
    CASE WHEN f.pieces IS NOT NULL THEN 'finding' WHEN s.files = 0 THEN 'unknown' ELSE 'ok' END AS status,
    round(1e0 * f.allocated_bytes / f.pieces, 1) AS value,
    CAST($small_bytes AS DOUBLE) AS limit_value,
    CAST((f.pieces - 1) * $request_ns AS BIGINT) AS cost_ns,
    CAST((f.pieces - 1) * $request_ns AS BIGINT) AS gain_ns,
    CASE WHEN f.inode IS NOT NULL THEN 'medium' END AS certainty,
    CAST(f.pieces AS BIGINT) AS pieces,
    f.size_bytes,
    CAST(floor(1e0 * f.allocated_bytes / f.pieces) AS BIGINT) AS average_bytes,
    s.files,
    c.packed
FROM state AS s
CROSS JOIN compressed AS c
LEFT JOIN found AS f ON f.pieces > 0
