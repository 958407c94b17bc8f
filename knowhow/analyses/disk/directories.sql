-- Fragmentation by directory
-- Files, bytes and fragments in each directory that directly contains files.
-- needs:  file_groups
-- column: directory VARCHAR         The directory, without directories below it.
-- column: files BIGINT              Files in it.
-- column: allocated_bytes BIGINT    Space that they occupy on the device [B].
-- column: fragments BIGINT          Fragments of these files.
-- column: fragmented_files BIGINT   Files in more than one fragment.
-- column: per_file DOUBLE           Fragments per file that has any.
-- tags:   disk, files
SELECT name AS directory, files, allocated_bytes, fragments, fragmented_files, per_file
FROM file_groups
WHERE common = 'directory'
ORDER BY breaks DESC, fragments DESC, directory
