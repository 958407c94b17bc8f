-- CPU time by process
-- CPU time of each process, and how much of it was spent in the program, in system calls and elsewhere in the kernel. Based on samples.
-- needs:  samples, processes
-- column: process VARCHAR     Program and process id.
-- column: time_ns BIGINT      CPU time of all its threads [ns].
-- column: share DOUBLE        Share of the CPU time of all processes.
-- column: program_ns BIGINT   Part of it in the program [ns].
-- column: calls_ns BIGINT     Part of it in system calls [ns].
-- column: kernel_ns BIGINT    Part of it elsewhere in the kernel: page faults, interrupts [ns].
-- column: kernel_share DOUBLE Share of its time in the kernel.
-- column: samples BIGINT      Samples.
-- sums:   time_ns, program_ns, calls_ns, kernel_ns, samples
-- match:  process
-- chart:  bars x=process y=time_ns title="CPU time by process" title_ja="プロセスごとの CPU 時間"
-- tags:   cpu, time, processes
WITH used AS (
    SELECT p.process_id,
        sum(s.period_ns) AS ns,
        sum(CASE WHEN s.in_kernel THEN 0 ELSE s.period_ns END) AS program_ns,
        sum(CASE WHEN s.in_kernel AND s.call IS NOT NULL THEN s.period_ns ELSE 0 END) AS calls_ns,
        count(*) AS number
    FROM samples AS s
    INNER JOIN processes AS p ON p.task_id = s.task_id
    GROUP BY p.process_id
), whole AS (
    SELECT sum(s.period_ns) AS ns FROM samples AS s
), first_threads AS (
    SELECT p.process_id, min(p.pid) AS pid, arg_min(p.comm, p.task_id) AS comm, min(p.tree_order) AS tree_order
    FROM processes AS p
    GROUP BY p.process_id
)
SELECT
    concat(coalesce(t.comm, '?'), ' ', CAST(t.pid AS VARCHAR)) AS process,
    CAST(u.ns AS BIGINT) AS time_ns,
    round(1e0 * u.ns / w.ns, 4) AS share,
    CAST(u.program_ns AS BIGINT) AS program_ns,
    CAST(u.calls_ns AS BIGINT) AS calls_ns,
    CAST(u.ns - u.program_ns - u.calls_ns AS BIGINT) AS kernel_ns,
    round(1e0 * (u.ns - u.program_ns) / u.ns, 4) AS kernel_share,
    CAST(u.number AS BIGINT) AS samples
FROM used AS u
INNER JOIN first_threads AS t ON t.process_id = u.process_id
CROSS JOIN whole AS w
WHERE u.ns > 0
ORDER BY time_ns DESC, t.tree_order
