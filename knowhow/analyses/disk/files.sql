-- Fragmented files
-- The most fragmented files, and what reading them costs: the additional requests compared with a contiguous file, and their time.
-- Compressed extents are small by design, and are read one by one in any case: they are not counted as fragments.
-- needs:  file_fragments, device_cost
-- param:  request_ns BIGINT = NULL          Cost of one more request on the device; if not given, as measured by the scan, otherwise 20 us [ns].
-- column: path VARCHAR                      The file.
-- column: kind VARCHAR                      file or directory.
-- column: size_bytes BIGINT                 Its length [B].
-- column: extents BIGINT                    Extents of the file system.
-- column: fragments BIGINT                  Fragments on the device, counted as by filefrag.
-- column: compressed BIGINT                 Compressed extents.
-- column: mean_bytes BIGINT                 Mean size of a fragment [B].
-- column: extra_requests BIGINT              Additional requests to read all of it, compared with a contiguous file.
-- column: cost_ns BIGINT                    Time of these requests, from the cost of one [ns].
-- column: slowdown DOUBLE                   Time to read it, as a multiple of that of a contiguous file.
-- column: request_ns BIGINT                 Cost of one request, as used here [ns].
-- column: cost_is VARCHAR                   Source of this value: measured (by the scan), given, or assumed.
-- tags:   disk, files, time
WITH cost AS (
    SELECT coalesce($request_ns, request_ns) AS request_ns, bytes_per_second,
        CASE WHEN $request_ns IS NOT NULL THEN 'given' WHEN measured THEN 'measured' ELSE 'assumed' END AS cost_is
    FROM device_cost
)
SELECT
    p.path,
    p.kind,
    p.size_bytes,
    p.extents,
    p.fragments,
    p.compressed,
    CAST(floor(1e0 * p.allocated_bytes / p.fragments) AS BIGINT) AS mean_bytes,
    p.extra_requests,
    p.extra_requests * c.request_ns AS cost_ns,
    CASE WHEN p.allocated_bytes > 0
        THEN round(1e0 + 1e-9 * p.extra_requests * c.request_ns * c.bytes_per_second / p.allocated_bytes, 2) END AS slowdown,
    c.request_ns,
    c.cost_is
FROM file_fragments AS p
CROSS JOIN cost AS c
WHERE p.fragments > 1
ORDER BY p.extra_requests DESC, p.fragments DESC, p.path, p.inode
