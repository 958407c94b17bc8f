-- Fragments by suffix
-- Files, bytes and pieces of each kind of file, told by the suffix of its name.
-- needs:  file_groups
-- column: suffix VARCHAR            What stands behind the last dot of the name; empty: no suffix.
-- column: files BIGINT              Files with it.
-- column: allocated_bytes BIGINT    What they take up on the device [B].
-- column: fragments BIGINT          Pieces of all of them.
-- column: fragmented_files BIGINT   Files in more than one piece.
-- column: per_file DOUBLE           Pieces for each file that has any.
-- tags:   disk, files
SELECT name AS suffix, files, allocated_bytes, fragments, fragmented_files, per_file
FROM file_groups
WHERE common = 'suffix'
ORDER BY breaks DESC, fragments DESC, suffix
