-- Lock held for too long
-- A task of a crashed kernel has waited for a lock for longer than locks are normally held.
-- needs:  dump_locks, dump_tasks
-- param:  min_wait_ns BIGINT = 10000000000 > 0    Minimum duration of a wait [ns].
-- column: subject VARCHAR       The task that holds the lock: its name and number.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Tasks that wait for the lock.
-- column: limit_value DOUBLE    Not used.
-- column: cost_ns BIGINT        What they have waited, added up [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     high; medium where readers hold the lock: only the last of them is known; low where its holder is not known.
-- column: wait_ns BIGINT        The longest of their waits [ns].
-- column: kind VARCHAR          mutex or rwsem.
-- column: lock VARCHAR          Where it lies, hexadecimal.
-- column: at VARCHAR            Function of the kernel that the holder waits in; running.
-- says: finding en  A task has waited {wait_ns} for a lock ({kind}) held by {subject}. Waiting tasks: {value}; the holder is in: {at}.
-- says: finding ja  {subject} が {kind} を保持し、最長 {wait_ns} 待たせています。待ちタスク {value} 個、保持者の位置: {at:ja}。
-- says: ok en  No task has waited {min_wait_ns} for a lock.
-- says: ok ja  ロックを {min_wait_ns} 以上待っているタスクはありません。
-- says: unknown en  The tasks in the dump could not be read.
-- says: unknown ja  ダンプのタスクを読み取れませんでした。
-- evidence: dump/hung
-- tags:   locks, time
WITH held AS (
    SELECT
        l.kind,
        l.lock,
        max(l.holder_pid) AS holder_pid,
        count(*) AS waiters,
        sum(coalesce(t.wait_ns, 0)) AS sum_ns,
        max(coalesce(t.wait_ns, 0)) AS longest_ns,
        max(CASE WHEN l.status = 'held by readers' THEN 1 ELSE 0 END) AS readers
    FROM dump_locks AS l
    INNER JOIN dump_tasks AS t ON t.pid = l.waiter_pid
    GROUP BY l.kind, l.lock
), state AS (
    SELECT count(*) AS tasks FROM dump_tasks
)

SELECT
    CASE
        WHEN h.lock IS NULL THEN NULL
        WHEN h.holder_pid IS NULL THEN 'an unknown task'
        ELSE concat(coalesce(t.comm, '?'), ' (', h.holder_pid, ')')
    END AS subject,
    CASE WHEN h.lock IS NOT NULL THEN 'finding' WHEN s.tasks > 0 THEN 'ok' ELSE 'unknown' END AS status,
    CAST(h.waiters AS DOUBLE) AS value,
    CAST(NULL AS DOUBLE) AS limit_value,
    CAST(h.sum_ns AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN h.lock IS NULL THEN NULL WHEN h.holder_pid IS NULL THEN 'low' WHEN h.readers = 1 THEN 'medium' ELSE 'high' END AS certainty,
    h.longest_ns AS wait_ns,
    h.kind,
    h.lock,
    CASE WHEN h.lock IS NOT NULL THEN coalesce(t.wait_function, CASE WHEN h.holder_pid IS NULL THEN 'not known' ELSE 'running' END) END AS at
FROM state AS s
LEFT JOIN held AS h ON h.longest_ns >= $min_wait_ns AND s.tasks > 0
LEFT JOIN dump_tasks AS t ON t.pid = h.holder_pid
ORDER BY h.longest_ns DESC, h.lock
