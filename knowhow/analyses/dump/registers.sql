-- Registers of a crashed kernel
-- Contents of the processors' registers: when the dump was written, when the exception occurred, and when the task entered the kernel.
-- needs:  dump_registers
-- param:  origin VARCHAR = ''      Only those of one moment: dump, exception or user; empty: all.
-- column: cpu INTEGER              Processor; empty: the dump does not say which one.
-- column: pid INTEGER              Task that was running on it.
-- column: origin VARCHAR           dump: when the dump was written; exception: when the exception was taken; user: when the task entered the kernel.
-- column: name VARCHAR             The register.
-- column: value VARCHAR            Its value, hexadecimal.
-- column: function VARCHAR         Kernel function into which it points.
-- column: offset BIGINT            Offset in that function.
-- tags:   processes
SELECT
    r.cpu,
    r.pid,
    r.origin,
    r.name,
    r.value,
    r.function,
    r.offset
FROM dump_registers AS r
WHERE $origin = '' OR r.origin = $origin
ORDER BY r.cpu, r.origin, r.name
