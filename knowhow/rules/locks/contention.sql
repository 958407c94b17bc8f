-- Contended kernel locks
-- The command waited for kernel locks that other threads held, such as that of an inode or of an address space.
-- needs:  lock_waits, locks, critical_path, processes
-- param:  min_share DOUBLE = 0.1        Minimum share of the time of the command that it waits for one lock.
-- param:  min_wait_ns BIGINT = 20000000 Minimum time that it waits for it [ns].
-- column: subject VARCHAR       Name of the lock; empty: none is contended.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the time of the command that it waited for the lock [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time that it waited for the lock, or depended on who had it, along its critical path [ns].
-- column: gain_ns BIGINT        Potential saving [ns].
-- column: certainty VARCHAR     high; medium where the name of the lock is a guess.
-- column: waits BIGINT          How often a thread waited for it, also off that path.
-- column: threads_ns BIGINT     Time that all threads together waited for it [ns].
-- column: calls VARCHAR         The system call that waited longest for it.
-- column: holder VARCHAR        Who had it most often when a wait began.
-- says: finding en   The command waited {cost_ns} for the kernel lock {subject}, {value} of its time, mostly in {calls}. All threads: {waits:wait}, {threads_ns}. Held by: {holder}.
-- says: finding ja   カーネルのロック {subject} を {cost_ns}（実行時間の {value}）待ちました。主に {calls:ja} の中です。全スレッドでは {waits} 回、{threads_ns} です。保持していたもの: {holder:ja}。
-- says: ok en        The command waited {cost_ns} for kernel locks, {value} of its time.
-- says: ok ja        カーネルのロック待ちは {cost_ns}、実行時間の {value} です。
-- says: unknown en   The recording does not contain waits for kernel locks (`--what io,sched,locks`).
-- says: unknown ja   コマンドのカーネルのロック待ちが記録にありません（`--what io,sched,locks`）。
-- at_least: duration min_wait_ns
-- evidence: locks/share_by_lock
-- tags:   time, locks
WITH waits AS (
    SELECT w.task_id, w.lock_id, w.ts_ns, w.end_ts_ns, w.dur_ns, coalesce(w.call, 'page faults') AS call,
        CASE WHEN p.task_id IS NULL THEN w.holder ELSE concat(coalesce(p.comm, '?'), ' ', CAST(p.pid AS VARCHAR)) END AS holder,
        row_number() OVER (ORDER BY w.task_id, w.ts_ns) AS number
    FROM lock_waits AS w
    LEFT JOIN processes AS p ON p.task_id = w.holder_task_id
    WHERE NOT w.nested AND w.task_id IS NOT NULL
), moments AS (
    -- Waits of a thread, and its parts of the critical path that are there for no lock, begin and end: who spins is on a CPU.
    SELECT c.task_id, c.ts_ns AS at_ns, 1 AS path, 0 AS waiting, NULL AS number FROM critical_path AS c WHERE c.lock_id IS NULL
    UNION ALL
    SELECT c.task_id, c.ts_ns + c.dur_ns, -1, 0, NULL FROM critical_path AS c WHERE c.lock_id IS NULL
    UNION ALL
    SELECT w.task_id, w.ts_ns, 0, 1, w.number FROM waits AS w
    UNION ALL
    SELECT w.task_id, w.end_ts_ns, 0, -1, NULL FROM waits AS w
), stretches AS (
    -- Over all threads at once, which the engine does several times as fast: with each of them both sums begin and end at zero.
    SELECT m.at_ns - lag(m.at_ns, 1, m.at_ns) OVER (ORDER BY m.task_id, m.at_ns, m.path, m.waiting, m.number) AS ns,
        sum(m.path) OVER (ORDER BY m.task_id, m.at_ns, m.path, m.waiting, m.number ROWS UNBOUNDED PRECEDING) - m.path AS path,
        sum(m.waiting) OVER (ORDER BY m.task_id, m.at_ns, m.path, m.waiting, m.number ROWS UNBOUNDED PRECEDING) - m.waiting AS waiting,
        max(m.number) OVER (ORDER BY m.task_id, m.at_ns, m.path, m.waiting, m.number ROWS UNBOUNDED PRECEDING) AS number
    FROM moments AS m
), costs AS (
    SELECT w.lock_id, s.ns
    FROM stretches AS s INNER JOIN waits AS w ON w.number = s.number
    WHERE s.path > 0 AND s.waiting > 0
    UNION ALL
    -- Time in which the end of the command depended on who had the lock.
    SELECT c.lock_id, c.dur_ns FROM critical_path AS c WHERE c.lock_id IS NOT NULL
), cost_of AS (
    SELECT l.name, sum(c.ns) AS ns FROM costs AS c INNER JOIN locks AS l ON l.lock_id = c.lock_id GROUP BY l.name
), by_call AS (
    SELECT l.name, w.call, sum(w.dur_ns) AS ns FROM waits AS w INNER JOIN locks AS l ON l.lock_id = w.lock_id GROUP BY l.name, w.call
), by_holder AS (
    SELECT l.name, w.holder, count(*) AS number
    FROM waits AS w INNER JOIN locks AS l ON l.lock_id = w.lock_id
    WHERE w.holder IS NOT NULL
    GROUP BY l.name, w.holder
), calls_of AS (
    SELECT b.name, arg_max(b.call, b.ns) AS call FROM by_call AS b GROUP BY b.name
), holders_of AS (
    SELECT b.name, arg_max(b.holder, b.number) AS holder FROM by_holder AS b GROUP BY b.name
), by_lock AS (
    SELECT l.name, max(l.named_by) AS named_by, count(*) AS waits, sum(w.dur_ns) AS threads_ns, coalesce(max(c.ns), 0) AS cost_ns
    FROM waits AS w
    INNER JOIN locks AS l ON l.lock_id = w.lock_id
    LEFT JOIN cost_of AS c ON c.name = l.name
    GROUP BY l.name
), path AS (
    SELECT sum(c.dur_ns) AS all_ns FROM critical_path AS c
), judged AS (
    SELECT b.name, b.named_by, b.waits, b.threads_ns, b.cost_ns, p.all_ns, c.call, coalesce(h.holder, 'not known') AS holder
    FROM by_lock AS b
    CROSS JOIN path AS p
    LEFT JOIN calls_of AS c ON c.name = b.name
    LEFT JOIN holders_of AS h ON h.name = b.name
    WHERE p.all_ns > 0 AND b.cost_ns >= $min_wait_ns AND b.cost_ns >= $min_share * p.all_ns
), whole AS (
    SELECT p.all_ns, (SELECT coalesce(sum(b.cost_ns), 0) FROM by_lock AS b) AS cost_ns, (SELECT count(*) FROM judged) AS findings
    FROM path AS p
)
SELECT
    j.name AS subject,
    'finding' AS status,
    round(1e2 * j.cost_ns / j.all_ns, 1) AS value,
    1e2 * $min_share AS limit_value,
    CAST(j.cost_ns AS BIGINT) AS cost_ns,
    CAST(j.cost_ns AS BIGINT) AS gain_ns,
    CASE WHEN j.named_by IS NULL OR j.named_by = 'functions' THEN 'medium' ELSE 'high' END AS certainty,
    j.waits,
    CAST(j.threads_ns AS BIGINT) AS threads_ns,
    j.call AS calls,
    j.holder
FROM judged AS j
UNION ALL
SELECT
    NULL,
    CASE WHEN w.all_ns > 0 THEN 'ok' ELSE 'unknown' END,
    CASE WHEN w.all_ns > 0 THEN round(1e2 * w.cost_ns / w.all_ns, 1) END,
    1e2 * $min_share,
    CASE WHEN w.all_ns > 0 THEN CAST(w.cost_ns AS BIGINT) END,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL
FROM whole AS w
WHERE w.findings = 0
ORDER BY cost_ns DESC, subject
