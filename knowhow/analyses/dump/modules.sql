-- Modules of a crashed kernel
-- Loaded modules, largest first; modules that taint the kernel are marked.
-- needs:  dump_modules
-- question: modules Loaded modules
-- reads:  modules
-- column: name VARCHAR       Its name.
-- column: bytes BIGINT       Its size [B].
-- column: users BIGINT       Number of users.
-- column: taints BIGINT      Bits that show why it taints the kernel; 0: it does not.
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
