-- Hung tasks of a crashed kernel
-- Tasks in state D: how long each had waited when the kernel stopped, in which function, for which lock, and which task it ultimately waits for.
-- needs:  dump_tasks
-- uses:   dump_locks
-- question: hung Tasks that hang
-- reads:  tasks, stacks, locks
-- param:  min_wait_ns BIGINT = 0    Leave out tasks that had waited for less [ns].
-- column: pid INTEGER              Task that waits.
-- column: comm VARCHAR             Its name.
-- column: wait_ns BIGINT           How long it had not been running [ns].
-- column: wait_function VARCHAR    Kernel function in which it waits.
-- column: kind VARCHAR             Kind of the lock for which it waits; empty: it waits for something else, such as a disk.
-- column: lock VARCHAR             Address of the lock, hexadecimal.
-- column: holder_pid INTEGER       Task that holds the lock.
-- column: holder VARCHAR           Its name.
-- column: depth INTEGER            Number of locks from here to a task that waits for none.
-- column: root_pid INTEGER         Task at the end of the chain.
-- column: root VARCHAR             Its name.
-- column: root_function VARCHAR    Function in which this one waits; empty: it was running.
-- column: status VARCHAR           ok, or why something of the task could not be read.
-- sums:   wait_ns
-- match:  comm, wait_function
-- chart:  bars x=comm y=wait_ns title="Wait time" title_ja="待ち時間"
-- tags:   time, locks
SELECT
    t.pid,
    coalesce(t.full_name, t.comm) AS comm,
    t.wait_ns,
    t.wait_function,
    l.kind,
    l.lock,
    l.holder_pid,
    h.comm AS holder,
    l.depth,
    l.root_pid,
    r.comm AS root,
    r.wait_function AS root_function,
    t.status
FROM dump_tasks AS t
LEFT JOIN dump_locks AS l ON l.waiter_pid = t.pid
LEFT JOIN dump_tasks AS h ON h.pid = l.holder_pid
LEFT JOIN dump_tasks AS r ON r.pid = l.root_pid
WHERE t.state = 'D' AND coalesce(t.wait_ns, 0) >= $min_wait_ns
ORDER BY coalesce(t.wait_ns, 0) DESC, t.pid, t.address
