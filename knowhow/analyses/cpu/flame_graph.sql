-- CPU flame graph
-- Where the CPU time was spent, in the programs and in the kernel, as complete call stacks. Based on samples.
-- needs:  samples, processes
-- uses:   stack_texts
-- param:  stacks INTEGER = 10000 > 0   Number of stacks with a separate row, those with the most time; the others are combined into one row per program.
-- column: stack VARCHAR      Program, then its functions from the outermost to the innermost, then those of the kernel, separated by `;`.
-- column: time_ns BIGINT     CPU time there [ns].
-- column: share DOUBLE       Share of the CPU time.
-- column: samples BIGINT     Samples there.
-- chart:  flame x=stack y=time_ns,samples title="CPU time" title_ja="CPU 時間"
-- tags:   cpu, time
WITH used AS (
    SELECT p.comm, s.stack_id, s.kernel_stack_id, sum(s.period_ns) AS ns, count(*) AS number
    FROM samples AS s
    INNER JOIN processes AS p ON p.task_id = s.task_id
    GROUP BY p.comm, s.stack_id, s.kernel_stack_id
), ranked AS (
    SELECT u.comm, u.stack_id, u.kernel_stack_id, u.ns, u.number, sum(u.ns) OVER () AS whole,
        row_number() OVER (ORDER BY u.ns DESC, u.comm, u.stack_id, u.kernel_stack_id) AS rank
    FROM used AS u
), named AS (
    SELECT r.ns, r.number, r.whole,
        concat(coalesce(r.comm, '?'), CASE
            WHEN r.rank > $stacks THEN ';(other stacks)'
            WHEN t.frames IS NULL AND k.frames IS NULL THEN ';(no stack)'
            WHEN k.frames IS NULL THEN concat(';', t.frames)
            WHEN t.frames IS NULL THEN concat(';', k.frames)
            ELSE concat(';', t.frames, ';', k.frames)
        END) AS stack
    FROM ranked AS r
    LEFT JOIN stack_texts AS t ON t.stack_id = r.stack_id
    LEFT JOIN stack_texts AS k ON k.stack_id = r.kernel_stack_id
)
SELECT
    n.stack,
    CAST(sum(n.ns) AS BIGINT) AS time_ns,
    round(1e0 * sum(n.ns) / max(n.whole), 4) AS share,
    CAST(sum(n.number) AS BIGINT) AS samples
FROM named AS n
GROUP BY n.stack
ORDER BY time_ns DESC, n.stack
