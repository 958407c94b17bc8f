-- Kernel locks
-- Kernel locks for which threads waited, and the share of each in the total wait time.
-- needs:  lock_waits, locks, processes
-- column: lock VARCHAR        Name of the lock: a variable, or a member of a kernel structure.
-- column: kind VARCHAR        Kind of the lock.
-- column: named_by VARCHAR    How the name was found; empty: it has none.
-- column: locks BIGINT        Number of locks with this name: one for each inode, process, and so on.
-- column: waits BIGINT        How often a thread had to wait.
-- column: time_ns BIGINT      Time that threads waited; several at the same time count separately [ns].
-- column: share DOUBLE        Share of the time that threads waited for any of these locks.
-- column: avg_ns BIGINT       Mean time of a wait [ns].
-- column: p99_ns BIGINT       99 % of the waits took at most this [ns].
-- column: longest_ns BIGINT   The longest wait [ns].
-- column: readers DOUBLE      Share of the waits for read access only; empty: the lock makes no distinction.
-- column: held_by VARCHAR     Most frequent holder when a wait began: program and process id; empty: unknown for this kind of lock.
-- sums:   waits, time_ns
-- match:  lock, kind
-- chart:  bars x=lock y=time_ns title="Wait time for kernel locks" title_ja="カーネルのロック待ち"
-- tags:   locks, time
WITH waits AS (
    SELECT l.name, l.kind, l.named_by, w.lock_id, w.dur_ns, w.mode,
        CASE WHEN h.task_id IS NULL THEN w.holder ELSE concat(coalesce(h.comm, '?'), ' ', CAST(h.pid AS VARCHAR)) END AS holder,
        row_number() OVER (PARTITION BY l.name, l.kind ORDER BY w.dur_ns) AS place,
        count(*) OVER (PARTITION BY l.name, l.kind) AS number
    FROM lock_waits AS w
    INNER JOIN locks AS l ON l.lock_id = w.lock_id
    LEFT JOIN processes AS h ON h.task_id = w.holder_task_id
    WHERE NOT w.nested
), holders AS (
    SELECT w.name, w.kind, w.holder, count(*) AS number
    FROM waits AS w
    WHERE w.holder IS NOT NULL
    GROUP BY w.name, w.kind, w.holder
), usual AS (
    SELECT h.name, h.kind, arg_max(h.holder, h.number) AS holder FROM holders AS h GROUP BY h.name, h.kind
), whole AS (
    SELECT sum(w.dur_ns) AS ns FROM waits AS w
)
SELECT
    w.name AS lock,
    w.kind,
    max(w.named_by) AS named_by,
    count(DISTINCT w.lock_id) AS locks,
    count(*) AS waits,
    CAST(sum(w.dur_ns) AS BIGINT) AS time_ns,
    round(1e0 * sum(w.dur_ns) / greatest(max(t.ns), 1), 4) AS share,
    CAST(round(avg(w.dur_ns)) AS BIGINT) AS avg_ns,
    min(CASE WHEN w.place * 100 >= w.number * 99 THEN w.dur_ns END) AS p99_ns,
    max(w.dur_ns) AS longest_ns,
    CASE WHEN count(w.mode) > 0 THEN round(1e0 * count(CASE WHEN w.mode = 'read' THEN 1 END) / count(w.mode), 4) END AS readers,
    max(u.holder) AS held_by
FROM waits AS w
LEFT JOIN usual AS u ON u.name = w.name AND u.kind = w.kind
CROSS JOIN whole AS t
GROUP BY w.name, w.kind
ORDER BY time_ns DESC, w.name, w.kind
