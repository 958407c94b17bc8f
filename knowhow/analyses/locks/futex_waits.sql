-- Locks of programs
-- Threads that waited for a lock of the program itself (futex: mutex, condition variable, semaphore): where in the program, who held it, who released it.
-- needs:  run_states, processes
-- uses:   stack_places
-- column: process VARCHAR     Program and process id.
-- column: place VARCHAR       Place in the program where the wait began, for waits of 1 ms or more: function and source line.
-- column: held_by VARCHAR     Program and thread id that held the lock when the wait began; empty: unknown.
-- column: released_by VARCHAR Program and thread id that ended the wait; `interrupt`: a timeout; empty: none, or unknown.
-- column: threads BIGINT      Threads that waited.
-- column: waits BIGINT        Number of times.
-- column: time_ns BIGINT      Time that they waited, summed over threads [ns].
-- column: longest_ns BIGINT   The longest wait [ns].
-- sums:   waits, time_ns
-- match:  process, place
-- chart:  bars x=place y=time_ns title="Wait time for locks of programs" title_ja="プログラムのロックを待った時間"
-- tags:   time, locks
SELECT
    concat(coalesce(p.comm, '?'), ' ', CAST(p.pid AS VARCHAR)) AS process,
    CASE WHEN s.source IS NULL THEN s.function ELSE concat(coalesce(s.function, '?'), ' ', regexp_extract(s.source, '[^/]*$')) END AS place,
    CASE WHEN h.task_id IS NOT NULL THEN concat(coalesce(h.comm, '?'), ' ', CAST(h.tid AS VARCHAR)) END AS held_by,
    CASE WHEN o.task_id IS NULL THEN r.waker ELSE concat(coalesce(o.comm, '?'), ' ', CAST(o.tid AS VARCHAR)) END AS released_by,
    count(DISTINCT r.task_id) AS threads,
    count(*) AS waits,
    CAST(sum(r.wait_ns) AS BIGINT) AS time_ns,
    max(r.wait_ns) AS longest_ns
FROM run_states AS r
INNER JOIN processes AS p ON p.task_id = r.task_id
LEFT JOIN processes AS h ON h.task_id = r.holder_task_id
LEFT JOIN processes AS o ON o.task_id = r.waker_task_id
LEFT JOIN stack_places AS s ON s.stack_id = r.stack_id
WHERE r.cause = 'lock' AND r.wait_ns > 0
GROUP BY p.comm, p.pid, s.function, s.source, h.task_id, h.comm, h.tid, o.task_id, o.comm, o.tid, r.waker
ORDER BY time_ns DESC, process, place, held_by, released_by
