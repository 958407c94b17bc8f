-- Tasks of a crashed kernel
-- Tasks that were running or waiting when the kernel stopped, one row per task, with CPU time, memory and I/O.
-- needs:  dump_tasks
-- question: ps-cpu CPU time of tasks
-- reads:  tasks, stacks
-- param:  state VARCHAR = ''          Only tasks in this state, such as D; empty: all.
-- column: pid INTEGER               Id of the task.
-- column: tgid INTEGER              Id of its process.
-- column: ppid INTEGER              Id of the parent process.
-- column: comm VARCHAR              Name.
-- column: state VARCHAR             R running or ready, S sleeping, D uninterruptible wait, I idle kernel thread, Z zombie.
-- column: cpu INTEGER               Processor on which it last ran.
-- column: user_ns BIGINT            CPU time in user code, as ps shows it [ns].
-- column: system_ns BIGINT          CPU time in the kernel, as ps shows it [ns].
-- column: run_ns BIGINT             CPU time as measured by the scheduler [ns].
-- column: rss_bytes BIGINT          Memory of its process in RAM [B].
-- column: read_bytes BIGINT         Read from storage [B].
-- column: write_bytes BIGINT        Written to storage [B].
-- column: wait_function VARCHAR     Kernel function in which it waits; empty: it was running.
-- column: status VARCHAR            ok, or why something could not be read.
-- sums:   user_ns, system_ns, run_ns, read_bytes, write_bytes
-- match:  comm, wait_function
-- chart:  bars x=comm y=run_ns title="CPU time by task" title_ja="タスクごとの CPU 時間"
-- tags:   time
SELECT
    t.pid,
    t.tgid,
    t.ppid,
    t.comm,
    t.state,
    t.cpu,
    t.user_ns,
    t.system_ns,
    t.run_ns,
    t.rss_bytes,
    t.read_bytes,
    t.write_bytes,
    t.wait_function,
    t.status
FROM dump_tasks AS t
WHERE $state = '' OR t.state = $state
ORDER BY coalesce(t.run_ns, 0) DESC, t.pid, t.address
