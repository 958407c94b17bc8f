-- Modules of a crashed kernel
-- Loaded modules, largest first; modules that taint the kernel are marked.
-- needs:  dump_modules
-- column: name VARCHAR       Its name.
-- column: bytes BIGINT       What it takes [B].
-- column: users BIGINT       How many use it.
-- column: taints BIGINT      Bits of why it taints the kernel; 0: it does not.
-- column: status VARCHAR     ok, or why something could not be read.
-- sums:   bytes
-- match:  name
-- tags:   size
SELECT
    m.name,
    m.bytes,
    m.users,
    m.taints,
    m.status
FROM dump_modules AS m
ORDER BY m.bytes DESC, m.name
