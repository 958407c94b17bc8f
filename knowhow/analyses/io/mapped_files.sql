-- Mapped files
-- I/O through mapped memory: page faults on each mapped file, the number of pages accessed, in which order, and their time.
-- A page counts from its first fault. The kernel maps neighbouring pages along with it, and accesses to those cause no fault: `bytes` is the
-- minimum that was accessed, `most_bytes` the maximum.
-- needs:  file_faults, mappings
-- column: path VARCHAR           The file.
-- column: faults BIGINT          Page faults on it.
-- column: major BIGINT           Of these, faults that waited for the page to be read.
-- column: pages BIGINT           Distinct pages that had a fault.
-- column: bytes BIGINT           Bytes of these pages: the minimum that was accessed [B].
-- column: most_bytes BIGINT      Everything that was mapped into the processes' memory: the maximum that was accessed; empty if not reported by the kernel [B].
-- column: mapped_bytes BIGINT    Extent of its mappings; empty if it was mapped before the recording [B].
-- column: share DOUBLE           Share of that extent that was accessed by faults.
-- column: near DOUBLE            Share of the faults up to 64 KiB after the previous one of the same thread: sequential access.
-- column: backward DOUBLE        Share of the faults before the previous one: backward access.
-- column: shared_writes BIGINT   Write faults that reach the file.
-- column: time_ns BIGINT         Time in all faults [ns].
-- column: longest_ns BIGINT      The longest fault [ns].
-- sums:   faults, major, pages, time_ns
-- match:  path
-- tags:   files, bytes, time, offsets
WITH steps AS (
    SELECT path, offset_bytes, major, shared, access, dur_ns, mapped_bytes, was_mapped,
        offset_bytes - min(offset_bytes) OVER (
            PARTITION BY path_id, task_id ORDER BY ts_ns, offset_bytes ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING
        ) AS step
    FROM file_faults
    WHERE path IS NOT NULL
), touched AS (
    SELECT path, count(*) AS faults, count(*) FILTER (WHERE major) AS major, count(DISTINCT offset_bytes) AS pages,
        count(*) FILTER (WHERE step > 0 AND step <= 65536) AS near, count(*) FILTER (WHERE step < 0) AS backward, count(step) AS steps,
        count(*) FILTER (WHERE shared AND access = 'write') AS shared_writes, sum(dur_ns) AS time_ns,
        CASE WHEN count(mapped_bytes) = count(*)
            THEN sum(CASE WHEN NOT was_mapped THEN greatest(mapped_bytes, 4096) ELSE 0 END) END AS mapped_bytes, max(dur_ns) AS longest_ns
    FROM steps
    GROUP BY path
), mapped AS (
    SELECT path, max(coalesce(offset_bytes, 0) + length_bytes) AS bytes
    FROM mappings
    WHERE path IS NOT NULL
    GROUP BY path
)
SELECT
    t.path,
    t.faults,
    t.major,
    t.pages,
    4096 * t.pages AS bytes,
    CASE WHEN t.mapped_bytes IS NOT NULL THEN CAST(greatest(t.mapped_bytes, 4096 * t.pages) AS BIGINT) END AS most_bytes,
    CAST(m.bytes AS BIGINT) AS mapped_bytes,
    CASE WHEN m.bytes > 0 THEN round(least(4096e0 * t.pages / m.bytes, 1e0), 4) END AS share,
    CASE WHEN t.steps > 0 THEN round(1e0 * t.near / t.steps, 4) END AS near,
    CASE WHEN t.steps > 0 THEN round(1e0 * t.backward / t.steps, 4) END AS backward,
    t.shared_writes,
    CAST(t.time_ns AS BIGINT) AS time_ns,
    t.longest_ns
FROM touched AS t
LEFT JOIN mapped AS m ON m.path = t.path
ORDER BY t.time_ns DESC, t.path
