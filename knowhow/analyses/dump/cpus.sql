-- Processors of a crashed kernel
-- What each processor was running, how many tasks were runnable, and how its time was spent since boot.
-- needs:  dump_cpus, dump_tasks
-- question: cpu-use What the processors did
-- reads:  tasks, processors
-- column: cpu INTEGER            Number.
-- column: current_pid INTEGER    Task that was running on it; 0: it was idle.
-- column: comm VARCHAR           Name of that task.
-- column: ready_tasks INTEGER    Tasks that were running on it or ready to run.
-- column: user_ns BIGINT         In user code, including niced tasks [ns].
-- column: system_ns BIGINT       In the kernel, for tasks [ns].
-- column: irq_ns BIGINT          In interrupts and soft interrupts [ns].
-- column: idle_ns BIGINT         Idle, including waiting for I/O [ns].
-- column: behind_ns BIGINT       How long before the latest one its run queue was last used: long if it hung or was idle [ns].
-- column: status VARCHAR         ok, or why something could not be read.
-- sums:   user_ns, system_ns, irq_ns, idle_ns
-- match:  cpu
-- tags:   cpu, time
WITH last AS (
    SELECT max(c.clock_ns) AS ns FROM dump_cpus AS c
), names AS (
    SELECT t.pid, min(coalesce(t.full_name, t.comm)) AS comm FROM dump_tasks AS t WHERE t.pid > 0 GROUP BY t.pid
)

SELECT
    c.cpu,
    c.current_pid,
    CASE WHEN c.current_pid = 0 THEN 'idle' ELSE n.comm END AS comm,
    c.ready_tasks,
    coalesce(c.user_ns, 0) + coalesce(c.nice_ns, 0) AS user_ns,
    c.system_ns,
    coalesce(c.irq_ns, 0) + coalesce(c.softirq_ns, 0) AS irq_ns,
    coalesce(c.idle_ns, 0) + coalesce(c.iowait_ns, 0) AS idle_ns,
    l.ns - c.clock_ns AS behind_ns,
    c.status
FROM dump_cpus AS c
CROSS JOIN last AS l
LEFT JOIN names AS n ON n.pid = c.current_pid
ORDER BY c.cpu
