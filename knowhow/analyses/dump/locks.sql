-- Locks of a crashed kernel
-- Which task waits for which lock, and which task holds it.
-- needs:  dump_locks
-- question: lock-graph Who waits for which lock
-- reads:  tasks, stacks, locks
-- column: kind VARCHAR            mutex, or rwsem: a reader-writer semaphore.
-- column: lock VARCHAR            Address of the lock, hexadecimal.
-- column: holder_pid INTEGER      Task that holds it; empty: none, or a task that is in no list.
-- column: waiter_pid INTEGER      Task that waits.
-- column: wait_function VARCHAR   Kernel function in which it waits.
-- column: depth INTEGER           Number of locks from here to a task that waits for none; empty: a deadlock.
-- column: root_pid INTEGER        Task at the end of the chain, which waits for none; empty: unknown, or a deadlock.
-- column: status VARCHAR          ok, held by readers, no holder, deadlock.
-- tags:   locks, time
SELECT
    l.kind,
    l.lock,
    l.holder_pid,
    l.waiter_pid,
    l.wait_function,
    l.depth,
    l.root_pid,
    l.status
FROM dump_locks AS l
ORDER BY coalesce(l.depth, 0), l.lock, l.waiter_pid
