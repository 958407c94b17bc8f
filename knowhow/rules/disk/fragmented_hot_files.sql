-- Fragmented hot files
-- Fragmented files that a recorded program read so often that the additional requests took much of its time on them.
-- needs:  file_fragments, file_usage, device_cost
-- param:  min_paid_ns BIGINT = 10000000 > 0  Minimum time for a finding [ns].
-- param:  min_share DOUBLE = 0.1             Minimum share of the time in the calls and faults on the file that the requests may have taken.
-- column: subject VARCHAR       Path of the file.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the time in the calls and faults on the file that the additional requests may have taken.
-- column: limit_value DOUBLE    Threshold: reported from this value on.
-- column: cost_ns BIGINT        Time of the additional requests, no more than that of the calls [ns].
-- column: gain_ns BIGINT        The same: what joining the fragments could save [ns].
-- column: certainty VARCHAR     medium where the cost of a request and the time of the calls were measured, else low.
-- column: variant VARCHAR       measured or assumed: where the cost of a request is from.
-- column: fragments BIGINT      Fragments of the file.
-- column: size_bytes BIGINT     Length of the file [B].
-- column: read_bytes BIGINT     What was read of it [B].
-- column: times DOUBLE          How often that is all of it.
-- column: time_ns BIGINT        Time in the calls and faults on it [ns].
-- column: request_ns BIGINT     What one more request costs the device [ns].
-- column: files BIGINT          Used files checked.
-- column: in_pieces BIGINT      Fragmented files among these.
-- says: finding.measured en  This file of {size_bytes} is in {fragments:fragment} and was read {times} times in full ({read_bytes}). If all of it came from the disk, the requests for its fragments took {cost_ns}, at a measured {request_ns} each.
-- says: finding.measured ja  {size_bytes} のこのファイルは {fragments} 個の断片に分かれていて、{times} 回分（{read_bytes}）読まれました。すべてディスクから読まれたとすると、断片への要求に、1 回 {request_ns}（実測）で {cost_ns} かかりました。
-- says: finding.assumed en  This file of {size_bytes} is in {fragments:fragment} and was read {times} times in full ({read_bytes}). If all of it came from the disk, the requests for its fragments took {cost_ns}, assuming {request_ns} each (not measured).
-- says: finding.assumed ja  {size_bytes} のこのファイルは {fragments} 個の断片に分かれていて、{times} 回分（{read_bytes}）読まれました。すべてディスクから読まれたとし、要求 1 回を {request_ns} と仮定すると（未測定）、断片への要求に {cost_ns} かかりました。
-- says: ok en       Checked {files:used file}, {in_pieces} fragmented: none was slowed down much by that.
-- says: ok ja       使われた {files} 個のファイル（うち {in_pieces} 個は断片に分かれています）を調べました。断片化によって大きく遅くなったものはありません。
-- says: unknown en  It is not known which files are used: scan with --used-by and a recording of system calls.
-- says: unknown ja  どのファイルが使われるかわかりません。呼び出しの記録を --used-by で与えて走査してください。
-- evidence: disk/hot_files
-- tags:   disk, files, time
WITH used AS (
    SELECT p.path, u.inode, u.read_bytes, u.time_ns, p.size_bytes, p.fragments, c.request_ns, c.measured,
        CASE WHEN p.size_bytes > 0 THEN 1e0 * u.read_bytes / p.size_bytes ELSE 0 END AS times,
        CASE WHEN p.size_bytes > 0 THEN CAST(floor(1e0 * u.read_bytes / p.size_bytes * p.extra_requests * c.request_ns) AS BIGINT) ELSE 0 END AS all_ns
    FROM file_usage AS u
    JOIN file_fragments AS p ON p.inode = u.inode
    CROSS JOIN device_cost AS c
), paid AS (
    SELECT *, least(all_ns, coalesce(time_ns, all_ns)) AS paid_ns FROM used
), found AS (
    SELECT *
    FROM paid
    WHERE paid_ns >= $min_paid_ns AND paid_ns >= $min_share * coalesce(time_ns, 0)
), state AS (
    SELECT count(*) AS files, count(*) FILTER (WHERE fragments > 1) AS in_pieces FROM used
)
SELECT
    CASE WHEN f.inode IS NULL THEN NULL WHEN f.path IS NOT NULL THEN f.path ELSE concat('inode ', CAST(f.inode AS VARCHAR)) END AS subject,
    CASE WHEN f.inode IS NOT NULL THEN 'finding' WHEN s.files = 0 THEN 'unknown' ELSE 'ok' END AS status,
    CASE WHEN f.time_ns > 0 THEN round(1e0 * f.paid_ns / f.time_ns, 3) END AS value,
    CAST($min_share AS DOUBLE) AS limit_value,
    f.paid_ns AS cost_ns,
    f.paid_ns AS gain_ns,
    CASE WHEN f.inode IS NULL THEN NULL WHEN f.measured AND f.time_ns IS NOT NULL THEN 'medium' ELSE 'low' END AS certainty,
    CASE WHEN f.inode IS NULL THEN NULL WHEN f.measured THEN 'measured' ELSE 'assumed' END AS variant,
    f.fragments,
    f.size_bytes,
    f.read_bytes,
    round(f.times, 1) AS times,
    f.time_ns,
    f.request_ns,
    s.files,
    s.in_pieces
FROM state AS s
LEFT JOIN found AS f ON f.paid_ns >= 0
