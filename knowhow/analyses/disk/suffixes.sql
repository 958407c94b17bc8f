-- Fragments by suffix
-- Files, bytes and pieces of each kind of file, told by the suffix of its name.
-- needs:  inodes
-- column: suffix VARCHAR            What stands behind the last dot of the name; empty: no suffix.
-- column: files BIGINT              Files with it.
-- column: allocated_bytes BIGINT    What they take up on the device [B].
-- column: fragments BIGINT          Pieces of all of them.
-- column: fragmented_files BIGINT   Files in more than one piece.
-- column: per_file DOUBLE           Pieces for each file that has any.
-- tags:   disk, files
SELECT
    regexp_extract(path, '[^/.][^/]*\.([A-Za-z0-9_]{1,12})$', 1) AS suffix,
    count(*) AS files,
    CAST(sum(allocated_bytes) AS BIGINT) AS allocated_bytes,
    CAST(sum(i.fragments) AS BIGINT) AS fragments,
    count(*) FILTER (WHERE i.fragments > 1) AS fragmented_files,
    CASE WHEN count(*) FILTER (WHERE i.fragments > 0) > 0
        THEN round(1e0 * sum(i.fragments) / count(*) FILTER (WHERE i.fragments > 0), 3) END AS per_file
FROM inodes AS i
WHERE kind = 'file' AND path IS NOT NULL
GROUP BY 1
ORDER BY sum(i.fragments) - count(*) FILTER (WHERE i.fragments > 0) DESC, sum(i.fragments) DESC, suffix
