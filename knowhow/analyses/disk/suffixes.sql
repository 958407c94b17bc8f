-- Fragmentation by file type
-- Files, bytes and fragments by file name suffix.
-- needs:  file_groups
-- column: suffix VARCHAR            What follows the last dot of the name; empty: no suffix.
-- column: files BIGINT              Files with it.
-- column: allocated_bytes BIGINT    Space that they occupy on the device [B].
-- column: fragments BIGINT          Fragments of these files.
-- column: fragmented_files BIGINT   Files in more than one fragment.
-- column: per_file DOUBLE           Fragments per file that has any.
-- tags:   disk, files
SELECT name AS suffix, files, allocated_bytes, fragments, fragmented_files, per_file
FROM file_groups
WHERE common = 'suffix'
ORDER BY breaks DESC, fragments DESC, suffix
