-- Fragmented hot files
-- Files that a recording of system calls read or wrote, by calls or through memory, with their fragments: what fragmentation costs when files are reread.
-- needs:  file_fragments, file_usage, device_cost
-- column: path VARCHAR            The file.
-- column: calls BIGINT            Calls and operations that read or wrote it.
-- column: faults BIGINT           Page faults on it, if it is mapped.
-- column: read_bytes BIGINT       Bytes that they read, from the disk or from memory [B].
-- column: written_bytes BIGINT    Bytes that they wrote [B].
-- column: time_ns BIGINT          Time in all of these; empty: the recording has no durations [ns].
-- column: size_bytes BIGINT       Length of the file [B].
-- column: times_read DOUBLE       How often it was read in full: bytes read divided by its length.
-- column: fragments BIGINT        Its fragments, counted as by filefrag.
-- column: extra_requests BIGINT    Additional requests compared with a contiguous file, for each full read.
-- column: cost_ns BIGINT          Time of the additional requests for all reads, if all data came from the disk [ns].
-- column: paid_ns BIGINT          The most that this can have cost: at most the time of the calls [ns].
-- column: measured BOOLEAN        Whether the cost of a request was measured by the scan.
-- tags:   disk, files, time
WITH used AS (
    SELECT p.path, u.inode, u.calls, u.faults, u.read_bytes, u.written_bytes, u.time_ns, p.size_bytes, p.fragments, p.extra_requests,
        CASE WHEN p.size_bytes > 0 THEN 1e0 * u.read_bytes / p.size_bytes ELSE 0 END AS times_read
    FROM file_usage AS u
    JOIN file_fragments AS p ON p.inode = u.inode
), costs AS (
    SELECT u.*, CAST(floor(u.times_read * u.extra_requests * c.request_ns) AS BIGINT) AS cost_ns, c.measured
    FROM used AS u
    CROSS JOIN device_cost AS c
)
SELECT path, calls, faults, read_bytes, written_bytes, time_ns, size_bytes, round(times_read, 3) AS times_read, fragments, extra_requests, cost_ns,
    least(cost_ns, coalesce(time_ns, cost_ns)) AS paid_ns, measured
FROM costs
ORDER BY paid_ns DESC, cost_ns DESC, path, inode
