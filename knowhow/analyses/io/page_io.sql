-- Page cache
-- How much of the data read from each file came from the disk, how much of that was never used, and how much was written back.
-- needs:  page_io, calls, mappings
-- column: path VARCHAR             The file.
-- column: read_bytes BIGINT        Bytes that calls read from it [B].
-- column: device_bytes BIGINT      Bytes that were read from the device for it [B].
-- column: direct_bytes BIGINT      Of these, bytes that bypassed the page cache (direct I/O) [B].
-- column: cached DOUBLE            Share of the bytes that calls read through the page cache that were already there; empty if unknown.
-- column: unasked_bytes BIGINT     Bytes that were read from the device but not by any call; empty if it is mapped or no call read it [B].
-- column: written_bytes BIGINT     Bytes that calls wrote to it [B].
-- column: written_back_bytes BIGINT Bytes that were written to the device for it [B].
-- sums:   read_bytes, direct_bytes, unasked_bytes, written_bytes, written_back_bytes
-- match:  path
-- tags:   files, bytes
-- was:    io/cache
WITH requests AS (
    SELECT path_id, path, kind <> 'write' AS reads, pages = 'file' AS in_cache, offset_bytes, length_bytes AS bytes
    FROM page_io
    WHERE path_id IS NOT NULL
), transfers AS (
    SELECT path_id, offset_bytes, transferred_bytes, class <> 'write' AS reads, via
    FROM calls
    WHERE class IN ('read', 'write', 'copy') AND transferred_bytes > 0
    UNION ALL
    SELECT to_path_id, to_offset_bytes, transferred_bytes, false, via
    FROM calls
    WHERE class = 'copy' AND transferred_bytes > 0 AND to_path_id IS NOT NULL
), edges AS (
    -- Along each file: where ranges that were read begin and end, and those that were brought in.
    SELECT path_id, offset_bytes AS place, 1 AS read_here, 0 AS brought_here FROM transfers WHERE reads AND offset_bytes IS NOT NULL
    UNION ALL
    SELECT path_id, offset_bytes + transferred_bytes, -1, 0 FROM transfers WHERE reads AND offset_bytes IS NOT NULL
    UNION ALL
    SELECT path_id, offset_bytes, 0, 1 FROM requests WHERE reads AND offset_bytes IS NOT NULL
    UNION ALL
    SELECT path_id, offset_bytes + bytes, 0, -1 FROM requests WHERE reads AND offset_bytes IS NOT NULL
), places AS (
    SELECT path_id, place, sum(read_here) AS read_here, sum(brought_here) AS brought_here
    FROM edges
    GROUP BY path_id, place
), stretches AS (
    SELECT path_id,
        sum(read_here) OVER (PARTITION BY path_id ORDER BY place) AS times_read,
        sum(brought_here) OVER (PARTITION BY path_id ORDER BY place) AS times_brought,
        min(place) OVER (PARTITION BY path_id ORDER BY place ROWS BETWEEN 1 FOLLOWING AND 1 FOLLOWING) - place AS bytes
    FROM places
), used AS (
    SELECT path_id,
        sum(CASE WHEN times_read > 0 THEN times_brought * bytes ELSE 0 END) AS requested_bytes,
        sum(CASE WHEN times_read = 0 THEN times_brought * bytes ELSE 0 END) AS unasked_bytes
    FROM stretches
    GROUP BY path_id
), moved AS (
    SELECT path_id,
        sum(CASE WHEN reads THEN transferred_bytes ELSE 0 END) AS read_bytes,
        sum(CASE WHEN reads THEN 0 ELSE transferred_bytes END) AS written_bytes,
        count(*) FILTER (WHERE reads AND offset_bytes IS NULL) AS without_place,
        count(*) FILTER (WHERE reads AND via IS NOT NULL) AS operations
    FROM transfers
    GROUP BY path_id
), files AS (
    SELECT path_id, min(path) AS path,
        sum(CASE WHEN reads THEN bytes ELSE 0 END) AS device_bytes,
        sum(CASE WHEN reads AND NOT in_cache THEN bytes ELSE 0 END) AS direct_bytes,
        sum(CASE WHEN reads AND in_cache AND offset_bytes IS NULL THEN bytes ELSE 0 END) AS scattered_bytes,
        sum(CASE WHEN reads THEN 0 ELSE bytes END) AS written_back_bytes
    FROM requests
    GROUP BY path_id
), mapped AS (
    SELECT path, count(*) AS mappings
    FROM mappings
    WHERE path IS NOT NULL
    GROUP BY path
), nameless AS (
    -- Direct I/O of libaio and io_uring: nobody knows on which of their files.
    SELECT count(*) AS reads FROM page_io WHERE path_id IS NULL AND pages = 'memory' AND kind <> 'write'
), counted AS (
    SELECT f.path, coalesce(m.read_bytes, 0) AS read_bytes, f.device_bytes, f.direct_bytes,
        coalesce(m.read_bytes, 0) - f.direct_bytes AS through_cache_bytes,
        coalesce(u.requested_bytes, 0) + f.scattered_bytes AS requested_bytes,
        coalesce(u.unasked_bytes, 0) AS unasked_bytes,
        coalesce(m.written_bytes, 0) AS written_bytes, f.written_back_bytes,
        coalesce(m.without_place, 0) = 0 AND x.mappings IS NULL AND NOT (coalesce(m.operations, 0) > 0 AND n.reads > 0) AS known
    FROM files AS f
    CROSS JOIN nameless AS n
    LEFT JOIN moved AS m ON m.path_id = f.path_id
    LEFT JOIN used AS u ON u.path_id = f.path_id
    LEFT JOIN mapped AS x ON x.path = f.path
)
SELECT
    path,
    CAST(read_bytes AS BIGINT) AS read_bytes,
    CAST(device_bytes AS BIGINT) AS device_bytes,
    CAST(direct_bytes AS BIGINT) AS direct_bytes,
    CASE WHEN known AND through_cache_bytes > 0 THEN round(greatest(1e0 - 1e0 * requested_bytes / through_cache_bytes, 0e0), 4) END AS cached,
    CAST(CASE WHEN known AND read_bytes > 0 THEN unasked_bytes END AS BIGINT) AS unasked_bytes,
    CAST(written_bytes AS BIGINT) AS written_bytes,
    CAST(written_back_bytes AS BIGINT) AS written_back_bytes
FROM counted
ORDER BY device_bytes + written_back_bytes DESC, path
