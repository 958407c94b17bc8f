-- Fragments by directory
-- Files, bytes and pieces below each directory that holds files directly.
-- needs:  inodes
-- column: directory VARCHAR         The directory; what lies in directories below it is not counted.
-- column: files BIGINT              Files in it.
-- column: allocated_bytes BIGINT    What they take up on the device [B].
-- column: fragments BIGINT          Pieces of all of them.
-- column: fragmented_files BIGINT   Files in more than one piece.
-- column: per_file DOUBLE           Pieces for each file that has any.
-- tags:   disk, files
SELECT
    CASE WHEN path LIKE '/%/%' THEN regexp_extract(path, '^(.*)/[^/]*$', 1) ELSE '/' END AS directory,
    count(*) AS files,
    CAST(sum(allocated_bytes) AS BIGINT) AS allocated_bytes,
    CAST(sum(i.fragments) AS BIGINT) AS fragments,
    count(*) FILTER (WHERE i.fragments > 1) AS fragmented_files,
    CASE WHEN count(*) FILTER (WHERE i.fragments > 0) > 0
        THEN round(1e0 * sum(i.fragments) / count(*) FILTER (WHERE i.fragments > 0), 3) END AS per_file
FROM inodes AS i
WHERE kind = 'file' AND path IS NOT NULL
GROUP BY 1
ORDER BY sum(i.fragments) - count(*) FILTER (WHERE i.fragments > 0) DESC, sum(i.fragments) DESC, directory
