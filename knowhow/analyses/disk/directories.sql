-- Fragments by directory
-- Files, bytes and pieces below each directory that holds files directly.
-- needs:  file_groups
-- column: directory VARCHAR         The directory; what lies in directories below it is not counted.
-- column: files BIGINT              Files in it.
-- column: allocated_bytes BIGINT    What they take up on the device [B].
-- column: fragments BIGINT          Pieces of all of them.
-- column: fragmented_files BIGINT   Files in more than one piece.
-- column: per_file DOUBLE           Pieces for each file that has any.
-- tags:   disk, files
SELECT name AS directory, files, allocated_bytes, fragments, fragmented_files, per_file
FROM file_groups
WHERE common = 'directory'
ORDER BY breaks DESC, fragments DESC, directory
