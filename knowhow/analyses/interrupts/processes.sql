-- Time taken by interrupts
-- How much time interrupts took from each program while it was on a CPU, and from idle CPUs. A softirq that a program raised itself by a
-- system call also runs in its time.
-- needs:  interrupts, processes
-- column: process VARCHAR     Program and process id; empty: not recorded, or the CPU was idle.
-- column: runs BIGINT         Handlers, softirqs and timers that ran.
-- column: self_ns BIGINT      Time that they took [ns].
-- column: hard_ns BIGINT      Of this, in device handlers [ns].
-- column: vector_ns BIGINT    Of this, in interrupts of the CPUs' own timers and from other CPUs [ns].
-- column: soft_ns BIGINT      Of this, in softirqs [ns].
-- column: timer_ns BIGINT     Of this, in high-resolution timer functions [ns].
-- column: longest_ns BIGINT   The longest run [ns].
-- sums:   runs, self_ns, hard_ns, vector_ns, soft_ns, timer_ns
-- match:  process
-- chart:  bars x=process y=self_ns title="Time taken by interrupts" title_ja="割り込みに取られた時間"
-- tags:   time, cpu, processes
SELECT
    CASE WHEN p.process_id IS NULL THEN NULL ELSE concat(coalesce(max(p.comm), '?'), ' ', CAST(max(p.pid) AS VARCHAR)) END AS process,
    count(*) AS runs,
    CAST(sum(i.self_ns) AS BIGINT) AS self_ns,
    CAST(coalesce(sum(i.self_ns) FILTER (WHERE i.kind = 'hard'), 0) AS BIGINT) AS hard_ns,
    CAST(coalesce(sum(i.self_ns) FILTER (WHERE i.kind = 'vector'), 0) AS BIGINT) AS vector_ns,
    CAST(coalesce(sum(i.self_ns) FILTER (WHERE i.kind = 'soft'), 0) AS BIGINT) AS soft_ns,
    CAST(coalesce(sum(i.self_ns) FILTER (WHERE i.kind = 'timer'), 0) AS BIGINT) AS timer_ns,
    max(i.dur_ns) AS longest_ns
FROM interrupts AS i
LEFT JOIN processes AS p ON p.task_id = i.task_id
GROUP BY p.process_id
ORDER BY self_ns DESC, p.process_id
