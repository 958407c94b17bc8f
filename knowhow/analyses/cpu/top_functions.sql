-- CPU time by function
-- CPU time of functions in the program and the kernel: in the function itself, and including everything it called. Based on samples.
-- needs:  samples, stacks
-- column: place VARCHAR       kernel, or program.
-- column: function VARCHAR    Function; empty if it has no name.
-- column: object VARCHAR      Executable, library or Python file that contains it; the kernel or its module.
-- column: source VARCHAR      Line of it that was sampled most often; empty without debug information.
-- column: self_ns BIGINT      CPU time in the function itself [ns].
-- column: self_share DOUBLE   Share of the CPU time.
-- column: total_ns BIGINT     CPU time in the function and everything it called [ns].
-- column: total_share DOUBLE  Share of the CPU time.
-- column: samples BIGINT      Samples in the function itself.
-- heads_ja:  place=種別
-- sums:   self_ns, total_ns, samples
-- match:  place, function, object
-- chart:  bars x=function y=self_ns color=place title="CPU time by function" title_ja="関数ごとの CPU 時間"
-- tags:   cpu, time
WITH taken AS (
    SELECT s.stack_id, s.kernel_stack_id, s.in_kernel, sum(s.period_ns) AS ns, count(*) AS number
    FROM samples AS s
    GROUP BY s.stack_id, s.kernel_stack_id, s.in_kernel
), stacks_taken AS (
    -- A sample in the kernel has two stacks; the innermost function is one of the kernel then.
    SELECT 'program' AS place, t.stack_id, t.ns, t.number, CASE WHEN t.in_kernel THEN 0 ELSE 1 END AS is_inner
    FROM taken AS t WHERE t.stack_id IS NOT NULL
    UNION ALL
    SELECT 'kernel', t.kernel_stack_id, t.ns, t.number, 1 FROM taken AS t WHERE t.kernel_stack_id IS NOT NULL
), used AS (
    SELECT t.place, t.stack_id, sum(t.ns) AS ns, sum(t.ns * t.is_inner) AS inner_ns, sum(t.number * t.is_inner) AS number
    FROM stacks_taken AS t
    GROUP BY t.place, t.stack_id
), functions AS (
    -- A function that stands in a stack several times is there once.
    SELECT f.stack_id, f.function, f.object, min(f.frame) AS frame, arg_min(f.source, f.frame) AS source
    FROM stacks AS f
    WHERE f.frame = 0 OR NOT starts_with(coalesce(f.function, ''), '[')
    GROUP BY f.stack_id, f.function, f.object
), lines AS (
    SELECT u.place, f.function, f.object, f.source,
        sum(u.ns) AS total_ns,
        sum(CASE WHEN f.frame = 0 THEN u.inner_ns ELSE 0 END) AS self_ns,
        sum(CASE WHEN f.frame = 0 THEN u.number ELSE 0 END) AS number
    FROM used AS u
    INNER JOIN functions AS f ON f.stack_id = u.stack_id
    GROUP BY u.place, f.function, f.object, f.source
), ranked AS (
    SELECT l.place, l.function, l.object, l.source, l.total_ns, l.self_ns, l.number,
        row_number() OVER (PARTITION BY l.place, l.function, l.object ORDER BY l.self_ns DESC, l.total_ns DESC, l.source) AS rank
    FROM lines AS l
), whole AS (
    SELECT sum(s.period_ns) AS ns FROM samples AS s
)
SELECT
    l.place,
    l.function,
    l.object,
    max(CASE WHEN l.rank = 1 THEN l.source END) AS source,
    CAST(sum(l.self_ns) AS BIGINT) AS self_ns,
    round(1e0 * sum(l.self_ns) / max(w.ns), 4) AS self_share,
    CAST(sum(l.total_ns) AS BIGINT) AS total_ns,
    round(1e0 * sum(l.total_ns) / max(w.ns), 4) AS total_share,
    CAST(sum(l.number) AS BIGINT) AS samples
FROM ranked AS l
CROSS JOIN whole AS w
GROUP BY l.place, l.function, l.object
ORDER BY self_ns DESC, total_ns DESC, l.place, l.object, l.function
