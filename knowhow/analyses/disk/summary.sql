-- Space of a file system
-- What was scanned, by which method, how much of it could be read, and how its space is used.
-- needs:  file_systems, inodes, free_extents
-- column: fs_type VARCHAR           Type of the file system.
-- column: source VARCHAR            Device or image.
-- column: method VARCHAR            How it was read.
-- column: moment VARCHAR            Whether the map shows one moment, several, or is unknown.
-- column: size_bytes BIGINT         Total size [B].
-- column: free_bytes BIGINT         Free space, as counted by the file system [B].
-- column: free_extents BIGINT       Fragments of free space; empty if they could not be read.
-- column: largest_free_bytes BIGINT The largest of them [B].
-- column: files BIGINT              Files, directories, links and the like that were found.
-- column: unread_files BIGINT       Files whose blocks could not be read.
-- column: allocated_bytes BIGINT    Space that the extents of files occupy [B].
-- column: extents BIGINT            Extents of files.
-- column: fragments BIGINT          Fragments of all files.
-- column: per_file DOUBLE           Fragments per file that has any.
-- column: fragmented_files BIGINT   Files in more than one fragment.
-- column: share_fragmented DOUBLE   Share of the files with extents that have more than one fragment.
-- column: layout_score DOUBLE       Share of the blocks of files, except the first of each, that directly follow the previous block: 1 is best.
-- heads_ja:  source=デバイス
-- tags:   disk, files
WITH of_files AS (
    SELECT
        count(*) FILTER (WHERE fragments > 1) AS fragmented, count(*) FILTER (WHERE extents > 0) AS stored,
        sum(fragments) AS fragments, count(*) FILTER (WHERE fragments > 0) AS in_pieces,
        sum(allocated_bytes) AS allocated_bytes, sum(greatest(fragments - 1, 0)) AS breaks, count(*) FILTER (WHERE allocated_bytes > 0) AS held
    FROM inodes
    WHERE kind IN ('file', 'directory')
), of_extents AS (
    SELECT coalesce(CAST(sum(extents) AS BIGINT), 0) AS extents
    FROM inodes
    WHERE kind <> 'internal'
), of_free AS (
    SELECT count(*) AS pieces, max(length_bytes) AS largest
    FROM free_extents
)
SELECT
    f.fs_type,
    f.source,
    f.method,
    f.moment,
    f.size_bytes,
    f.free_bytes,
    CASE WHEN e.pieces > 0 THEN e.pieces END AS free_extents,
    e.largest AS largest_free_bytes,
    f.files,
    f.unread_files,
    CAST(coalesce(o.allocated_bytes, 0) AS BIGINT) AS allocated_bytes,
    x.extents,
    CAST(coalesce(o.fragments, 0) AS BIGINT) AS fragments,
    CASE WHEN o.in_pieces > 0 THEN round(1e0 * o.fragments / o.in_pieces, 3) END AS per_file,
    o.fragmented AS fragmented_files,
    CASE WHEN o.stored > 0 THEN round(1e0 * o.fragmented / o.stored, 4) END AS share_fragmented,
    CASE WHEN o.allocated_bytes / f.block_bytes > o.held
        THEN round(1e0 - 1e0 * o.breaks / (o.allocated_bytes / f.block_bytes - o.held), 4) END AS layout_score
FROM file_systems AS f, of_files AS o, of_extents AS x, of_free AS e
ORDER BY f.source
