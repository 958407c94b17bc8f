-- CPU time by instruction
-- The instructions on which samples found the CPU, within functions of the program, its libraries and the kernel.
-- needs:  samples, stacks
-- column: function VARCHAR      Function; the innermost one for inlined code.
-- column: object VARCHAR        Executable, library or Python file that contains it; the kernel is in brackets.
-- column: offset_bytes BIGINT   Where in the function [B]; empty in a function that was put into another one.
-- column: address BIGINT        Address in the object, as used by `objdump -d` and `addr2line`; empty in the kernel.
-- column: source VARCHAR        Source file and line; empty without debug information.
-- column: time_ns BIGINT        CPU time [ns].
-- column: of_function DOUBLE    Share of the CPU time of the function itself.
-- column: share DOUBLE          Share of all CPU time.
-- column: samples BIGINT        Samples.
-- sums:   time_ns, samples
-- tags:   cpu, time
WITH taken AS (
    SELECT CASE WHEN s.in_kernel THEN s.kernel_stack_id ELSE s.stack_id END AS stack_id, sum(s.period_ns) AS ns, count(*) AS number
    FROM samples AS s
    GROUP BY CASE WHEN s.in_kernel THEN s.kernel_stack_id ELSE s.stack_id END
), places AS (
    SELECT k.function, k.object, k.offset AS offset_bytes, k.address, k.source, sum(t.ns) AS ns, sum(t.number) AS number
    FROM taken AS t
    INNER JOIN stacks AS k ON k.stack_id = t.stack_id
    WHERE k.frame = 0
    GROUP BY k.function, k.object, k.offset, k.address, k.source
), whole AS (
    SELECT sum(t.ns) AS ns FROM taken AS t
)
SELECT
    p.function,
    p.object,
    p.offset_bytes,
    p.address,
    p.source,
    CAST(p.ns AS BIGINT) AS time_ns,
    round(1e0 * p.ns / sum(p.ns) OVER (PARTITION BY p.object, p.function), 4) AS of_function,
    round(1e0 * p.ns / w.ns, 4) AS share,
    CAST(p.number AS BIGINT) AS samples
FROM places AS p
CROSS JOIN whole AS w
ORDER BY time_ns DESC, p.object, p.function, p.address, p.offset_bytes, p.source
