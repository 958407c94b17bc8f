-- Calls that waited
-- What threads waited for, as far as the duration of their calls shows it: by thread, call and object.
-- needs:  calls, processes
-- column: process VARCHAR    Program and process id.
-- column: tid INTEGER        Thread id.
-- column: cause VARCHAR      What the call waits for.
-- column: call VARCHAR       The system call.
-- column: path VARCHAR       Object of the call; empty: none, or unknown.
-- column: place VARCHAR      Empty: not recorded.
-- column: woken_by VARCHAR   Empty: not recorded.
-- column: waits BIGINT       Number of times.
-- column: time_ns BIGINT     Time in the calls [ns].
-- column: longest_ns BIGINT  The longest call [ns].
-- sums:   waits, time_ns
-- match:  process, cause, call, path
-- chart:  bars x=cause y=time_ns title="Wait time by cause" title_ja="待ち時間の原因別内訳"
-- tags:   time, processes
WITH waits AS (
    -- Shorter calls do not wait: under strace, the cheapest takes some 20 us.
    SELECT c.task_id, c.call, c.path, c.dur_ns,
        CASE WHEN c.action = 'sleep' THEN 'timer'
            WHEN c.action = 'child_wait' OR c.call = 'vfork' THEN 'child process'
            WHEN c.class = 'lock' AND c.path_id IS NOT NULL THEN 'file lock'
            WHEN c.class = 'lock' THEN 'lock'
            WHEN c.class = 'sync' THEN 'disk'
            WHEN c.kind = 'pipe' AND c.class IN ('read', 'write', 'copy') THEN 'pipe'
            WHEN (c.kind = 'socket' AND c.class IN ('read', 'write', 'copy')) OR c.action IN ('connect', 'accept') THEN 'socket'
            WHEN c.class = 'wait' OR c.action = 'signal_wait' THEN 'events' END AS cause
    FROM calls AS c
    WHERE c.dur_ns >= 100000 AND c.via IS NULL
)
SELECT
    concat(coalesce(p.comm, '?'), ' ', CAST(p.pid AS VARCHAR)) AS process,
    p.tid,
    w.cause,
    w.call,
    w.path,
    CAST(NULL AS VARCHAR) AS place,
    CAST(NULL AS VARCHAR) AS woken_by,
    count(*) AS waits,
    CAST(sum(w.dur_ns) AS BIGINT) AS time_ns,
    max(w.dur_ns) AS longest_ns
FROM waits AS w
INNER JOIN processes AS p ON p.task_id = w.task_id
WHERE w.cause IS NOT NULL
GROUP BY p.task_id, p.comm, p.pid, p.tid, w.cause, w.call, w.path
ORDER BY time_ns DESC, p.task_id, w.cause, w.call, w.path
