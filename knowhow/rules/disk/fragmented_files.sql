-- Fragmented files
-- Files in so many small fragments that reading them takes far more requests than necessary.
-- needs:  file_fragments, device_cost
-- param:  min_pieces BIGINT = 50 > 0        Minimum number of fragments of a file.
-- param:  small_bytes BIGINT = 65536 > 0    Minimum average size of fragments that cost little [B].
-- column: subject VARCHAR       Path of the file.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Average size of a fragment in bytes.
-- column: limit_value DOUBLE    Threshold: reported below this value.
-- column: cost_ns BIGINT        Time of the requests that one piece would not need, each time that all of it is read [ns].
-- column: gain_ns BIGINT        The same: what joining the fragments could save [ns].
-- column: certainty VARCHAR     high where the cost of a request was measured, else medium: it differs from device to device.
-- column: variant VARCHAR       measured or assumed: where the cost of a request is from.
-- column: pieces BIGINT         Fragments on the device.
-- column: size_bytes BIGINT     Length of the file [B].
-- column: average_bytes BIGINT  Average size of a fragment [B].
-- column: files BIGINT          Files checked.
-- column: packed BIGINT         Of these, files with compressed extents, which are small by design and are not counted as fragments.
-- column: request_ns BIGINT     What one more request costs the device [ns].
-- column: slowdown DOUBLE       How many times as long reading it takes as if contiguous.
-- says: finding.measured en  This file of {size_bytes} is in {pieces:fragment} of {average_bytes} on average. Reading it takes {cost_ns} longer than if it were contiguous ({slowdown} times as long), at a measured {request_ns} per request.
-- says: finding.measured ja  {size_bytes} のこのファイルは、平均 {average_bytes} の {pieces} 個の断片に分かれています。要求 1 回が実測で {request_ns} なので、読み込みに連続したファイルより {cost_ns} 多くかかります（{slowdown} 倍）。
-- says: finding.assumed en  This file of {size_bytes} is in {pieces:fragment} of {average_bytes} on average. Reading it takes {cost_ns} longer than if it were contiguous ({slowdown} times as long), assuming {request_ns} per request (not measured).
-- says: finding.assumed ja  {size_bytes} のこのファイルは、平均 {average_bytes} の {pieces} 個の断片に分かれています。要求 1 回を {request_ns} と仮定すると（未測定）、読み込みに連続したファイルより {cost_ns} 多くかかります（{slowdown} 倍）。
-- says: ok en       Checked {files:file}, {packed} with compressed extents: none has many small fragments.
-- says: ok ja       {files} 個のファイル（うち {packed} 個は圧縮エクステントあり）を調べました。多くの小さな断片に分かれたものはありません。
-- says: unknown en  No block map of a file was read.
-- says: unknown ja  ファイルのブロックは読まれていません。
-- evidence: disk/files
-- tags:   disk, files, time
WITH pieces AS (
    SELECT path, inode, size_bytes, allocated_bytes, compressed, pieces
    FROM file_fragments
    WHERE kind = 'file' AND extents > 0
), found AS (
    SELECT *
    FROM pieces
    WHERE pieces >= $min_pieces AND allocated_bytes < $small_bytes * pieces
), state AS (
    SELECT count(*) AS files, count(*) FILTER (WHERE compressed > 0) AS packed FROM pieces
)
SELECT
    CASE WHEN f.pieces IS NULL THEN NULL WHEN f.path IS NOT NULL THEN f.path ELSE concat('inode ', CAST(f.inode AS VARCHAR)) END AS subject,
    CASE WHEN f.pieces IS NOT NULL THEN 'finding' WHEN s.files = 0 THEN 'unknown' ELSE 'ok' END AS status,
    round(1e0 * f.allocated_bytes / f.pieces, 1) AS value,
    CAST($small_bytes AS DOUBLE) AS limit_value,
    (f.pieces - 1) * c.request_ns AS cost_ns,
    (f.pieces - 1) * c.request_ns AS gain_ns,
    CASE WHEN f.pieces IS NULL THEN NULL WHEN c.measured THEN 'high' ELSE 'medium' END AS certainty,
    CASE WHEN f.pieces IS NULL THEN NULL WHEN c.measured THEN 'measured' ELSE 'assumed' END AS variant,
    f.pieces,
    f.size_bytes,
    CAST(floor(1e0 * f.allocated_bytes / f.pieces) AS BIGINT) AS average_bytes,
    s.files,
    s.packed,
    c.request_ns,
    round(1e0 + 1e-9 * (f.pieces - 1) * c.request_ns * c.bytes_per_second / f.allocated_bytes, 1) AS slowdown
FROM state AS s
CROSS JOIN device_cost AS c
LEFT JOIN found AS f ON f.pieces > 0
