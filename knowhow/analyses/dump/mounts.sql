-- Mounts of a crashed kernel
-- What was mounted where, as seen by the first process.
-- needs:  dump_mounts
-- question: mounts Mounted file systems
-- reads:  mounts
-- column: path VARCHAR         Where.
-- column: fs_type VARCHAR      Kind of file system.
-- column: source VARCHAR       What.
-- column: read_only BOOLEAN    Whether it is read-only.
-- column: status VARCHAR       ok, or why something could not be read.
-- heads_ja:  source=マウント元
-- tags:   files
SELECT
    m.path,
    m.fs_type,
    m.source,
    m.read_only,
    m.status
FROM dump_mounts AS m
ORDER BY m.path, m.source
