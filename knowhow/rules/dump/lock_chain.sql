-- Lock blocks other tasks
-- A task of a crashed kernel holds a lock that others wait for, directly or through a chain of locks.
-- needs:  dump_locks, dump_tasks
-- param:  min_waiters BIGINT = 2 > 0    A task for which fewer wait is not reported.
-- column: subject VARCHAR       The task: its name and number; of a deadlock, one of its tasks.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Tasks that wait.
-- column: limit_value DOUBLE    Threshold: reported from this value on.
-- column: cost_ns BIGINT        What they have waited, added up; empty: the kernel does not say [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     high; medium where readers hold a lock of the chain: only the last of them is known.
-- column: locks BIGINT          Locks that they wait for.
-- column: depth INTEGER         Locks between the last of them and the task; 0: a deadlock.
-- column: at VARCHAR            Function of the kernel that it waits in; running; or deadlock.
-- says: finding en  {subject} blocks {value} tasks. Locks: {locks}; longest chain: {depth}; now in: {at}.
-- says: finding ja  {subject} が {value} 個のタスクを止めています。ロック {locks} 個、連鎖は最大 {depth} 段、現在位置: {at:ja}。
-- says: ok en  No task blocks {limit_value} or more others.
-- says: ok ja  {limit_value} 個以上のタスクを止めているタスクはありません。
-- says: unknown en  The tasks in the dump could not be read.
-- says: unknown ja  ダンプのタスクを読み取れませんでした。
-- evidence: dump/locks
-- tags:   locks
WITH chains AS (
    SELECT
        CASE WHEN l.status = 'deadlock' THEN -1 ELSE l.root_pid END AS root,
        count(*) AS waiters,
        count(DISTINCT l.lock) AS locks,
        coalesce(max(l.depth), 0) AS depth,
        min(CASE WHEN l.status = 'deadlock' THEN l.waiter_pid ELSE l.root_pid END) AS pid,
        max(CASE WHEN l.status = 'held by readers' THEN 1 ELSE 0 END) AS readers,
        sum(w.wait_ns) AS wait_ns
    FROM dump_locks AS l
    LEFT JOIN dump_tasks AS w ON w.pid = l.waiter_pid
    WHERE l.status = 'deadlock' OR l.root_pid IS NOT NULL
    GROUP BY CASE WHEN l.status = 'deadlock' THEN -1 ELSE l.root_pid END
), found AS (
    SELECT c.* FROM chains AS c WHERE c.waiters >= $min_waiters OR c.depth = 0
), state AS (
    SELECT count(*) AS tasks FROM dump_tasks
)

SELECT
    CASE WHEN f.pid IS NOT NULL THEN concat(coalesce(t.comm, '?'), ' (', f.pid, ')') END AS subject,
    CASE WHEN f.pid IS NOT NULL THEN 'finding' WHEN s.tasks > 0 THEN 'ok' ELSE 'unknown' END AS status,
    CAST(f.waiters AS DOUBLE) AS value,
    CAST($min_waiters AS DOUBLE) AS limit_value,
    CAST(f.wait_ns AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN f.pid IS NULL THEN NULL WHEN f.readers = 1 THEN 'medium' ELSE 'high' END AS certainty,
    f.locks,
    f.depth,
    CASE WHEN f.depth = 0 THEN 'deadlock' ELSE coalesce(t.wait_function, 'running') END AS at
FROM state AS s
LEFT JOIN found AS f ON s.tasks > 0
LEFT JOIN dump_tasks AS t ON t.pid = f.pid
ORDER BY f.waiters DESC, f.pid
