-- Last tasks scheduled on each processor
-- Which task was scheduled on which processor last, and how long before the kernel stopped.
-- needs:  dump_tasks, dump_panic
-- question: wakeups The last second
-- reads:  tasks, stacks, panic
-- param:  last_ns BIGINT = 1000000000 > 0    Length of the period before the end [ns].
-- column: at_s DOUBLE              When it was scheduled, before the end: a negative number [s].
-- column: before_ns BIGINT         The same as a duration [ns].
-- column: pid INTEGER              Task.
-- column: comm VARCHAR             Its name.
-- column: cpu INTEGER              Processor.
-- column: state VARCHAR            Its state when the kernel stopped.
-- column: wait_function VARCHAR    Kernel function in which it was waiting then; empty: it was running.
-- chart:  points x=at_s y=cpu color=comm title="Last tasks scheduled, by processor" title_ja="プロセッサへの最後の到着"
-- tags:   time, processes
SELECT
    round((t.arrived_ts_ns - p.ts_ns) / 1e9, 6) AS at_s,
    p.ts_ns - t.arrived_ts_ns AS before_ns,
    t.pid,
    coalesce(t.full_name, t.comm) AS comm,
    t.cpu,
    t.state,
    t.wait_function
FROM dump_tasks AS t
CROSS JOIN dump_panic AS p
WHERE p.ts_ns - t.arrived_ts_ns <= $last_ns
ORDER BY before_ns, t.pid, t.address
