-- Open files of a crashed kernel
-- Files that each process had open.
-- needs:  dump_files, dump_tasks
-- question: files-open Open files of processes
-- reads:  tasks, files
-- param:  pid BIGINT = 0         Only this process; 0: all.
-- column: pid INTEGER          Process.
-- column: comm VARCHAR         Its name.
-- column: fd INTEGER           Descriptor.
-- column: path VARCHAR         As /proc/PID/fd shows it.
-- column: kind VARCHAR         file, directory, device, block device, pipe, socket, link or other.
-- column: position_bytes BIGINT  Offset of the next read or write [B].
-- column: size_bytes BIGINT    Length of the file [B].
-- column: inode BIGINT         Inode number in the file system.
-- column: status VARCHAR       ok, or why something could not be read.
-- tags:   files
WITH processes AS (
    SELECT t.tgid, min(t.comm) AS comm FROM dump_tasks AS t WHERE t.pid = t.tgid GROUP BY t.tgid
)

SELECT
    f.pid,
    p.comm,
    f.fd,
    f.path,
    f.kind,
    f.position_bytes,
    f.size_bytes,
    f.inode,
    f.status
FROM dump_files AS f
LEFT JOIN processes AS p ON p.tgid = f.pid
WHERE $pid = 0 OR f.pid = $pid
ORDER BY f.pid, f.fd
