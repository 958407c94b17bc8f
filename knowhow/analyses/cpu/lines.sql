-- CPU time by source line
-- The lines of the program's own source code for which CPU time was spent: in the program, in libraries it calls, and in the kernel. Based on samples.
-- needs:  samples, stack_places
-- column: source VARCHAR      Source file and line; empty without debug information.
-- column: function VARCHAR    Function that contains the line.
-- column: object VARCHAR      Executable, library or Python file that contains it.
-- column: time_ns BIGINT      CPU time [ns].
-- column: share DOUBLE        Share of the CPU time.
-- column: program_ns BIGINT   Part of it in the program and its libraries [ns].
-- column: kernel_ns BIGINT    Part of it in the kernel [ns].
-- column: samples BIGINT      Samples.
-- sums:   time_ns, program_ns, kernel_ns, samples
-- match:  source, function, object
-- chart:  bars x=source y=time_ns title="CPU time by source line" title_ja="ソースの行ごとの CPU 時間"
-- tags:   cpu, time
WITH taken AS (
    SELECT s.stack_id, sum(s.period_ns) AS ns, sum(CASE WHEN s.in_kernel THEN s.period_ns ELSE 0 END) AS kernel_ns, count(*) AS number
    FROM samples AS s
    GROUP BY s.stack_id
), whole AS (
    SELECT sum(s.period_ns) AS ns FROM samples AS s
)
SELECT
    p.source,
    p.function,
    p.object,
    CAST(sum(t.ns) AS BIGINT) AS time_ns,
    round(1e0 * sum(t.ns) / max(w.ns), 4) AS share,
    CAST(sum(t.ns - t.kernel_ns) AS BIGINT) AS program_ns,
    CAST(sum(t.kernel_ns) AS BIGINT) AS kernel_ns,
    CAST(sum(t.number) AS BIGINT) AS samples
FROM taken AS t
INNER JOIN stack_places AS p ON p.stack_id = t.stack_id
CROSS JOIN whole AS w
GROUP BY p.source, p.function, p.object
ORDER BY time_ns DESC, p.object, p.function, p.source
