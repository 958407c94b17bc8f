-- Waiting for a locked file
-- The program waits for a file lock that another process holds (flock, fcntl).
-- needs:  calls, processes, totals
-- uses:   run_states
-- param:  min_share DOUBLE = 0.1         Minimum share of the elapsed time that it waits for one file.
-- param:  min_wait_ns BIGINT = 50000000  Minimum time that it waits [ns].
-- param:  long_ns BIGINT = 1000000       A call of fcntl that takes this long waits for a lock [ns].
-- column: subject VARCHAR       The file.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the elapsed time that it waits, summed over threads [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time that it waits [ns].
-- column: gain_ns BIGINT        Potential saving [ns].
-- column: certainty VARCHAR     high for flock; medium for fcntl, which does other things as well.
-- column: file VARCHAR          The file.
-- column: waits BIGINT          How often it waits.
-- column: longest_ns BIGINT     The longest wait [ns].
-- column: processes BIGINT      Processes that wait.
-- column: call VARCHAR          The system call: flock or fcntl.
-- column: released_by VARCHAR   Who released the lock most often; `not known` where that was not recorded.
-- says: finding en  {processes:process} waited {cost_ns} in {call} for the lock on {subject}: {waits:wait}, the longest {longest_ns}, {value} of the time. Released by: {released_by}.
-- says: finding ja  {processes} 個のプロセスが {call} で {subject} のロックを {waits} 回、合計 {cost_ns}（時間の {value}）待ちました。最長は {longest_ns} です。解放したもの: {released_by:ja}。
-- says: ok en       The time spent waiting for file locks is negligible.
-- says: ok ja       ファイルのロック待ちはほとんどありません。
-- says: unknown en  The recording contains no system calls with durations.
-- says: unknown ja  所要時間のある呼び出しが記録にありません。
-- at_least: thread_time min_wait_ns
-- evidence: io/files --call flock,fcntl
-- tags:   time, locks, files
WITH waits AS (
    SELECT c.path_id, c.path, c.call, c.dur_ns, c.process_id
    FROM calls AS c
    WHERE c.dur_ns >= $long_ns AND c.action = 'file_lock' AND c.path_id IS NOT NULL
), files AS (
    SELECT w.path_id, min(w.path) AS path, sum(w.dur_ns) AS ns, count(*) AS waits, max(w.dur_ns) AS longest_ns, count(DISTINCT w.process_id) AS processes,
        arg_max(w.call, w.dur_ns) AS call
    FROM waits AS w
    GROUP BY w.path_id
), releases AS (
    SELECT r.path_id, coalesce(p.comm, r.waker) AS comm, count(*) AS number
    FROM run_states AS r
    LEFT JOIN processes AS p ON p.task_id = r.waker_task_id
    WHERE r.cause = 'file lock' AND r.wait_ns >= $long_ns
    GROUP BY r.path_id, coalesce(p.comm, r.waker)
), released AS (
    SELECT r.path_id, arg_max(r.comm, r.number) AS comm FROM releases AS r WHERE r.comm IS NOT NULL GROUP BY r.path_id
), judged AS (
    SELECT f.*, t.elapsed_ns, r.comm
    FROM files AS f
    CROSS JOIN totals AS t
    LEFT JOIN released AS r ON r.path_id = f.path_id
    WHERE f.ns >= $min_wait_ns AND f.ns >= $min_share * t.elapsed_ns
)
SELECT
    j.path AS subject,
    CASE WHEN j.ns IS NOT NULL THEN 'finding' WHEN t.calls = 0 OR NOT t.has_durations THEN 'unknown' ELSE 'ok' END AS status,
    round(1e2 * j.ns / t.elapsed_ns, 1) AS value,
    1e2 * $min_share AS limit_value,
    CAST(j.ns AS BIGINT) AS cost_ns,
    CAST(least(j.ns, t.elapsed_ns) AS BIGINT) AS gain_ns,
    CASE WHEN j.ns IS NOT NULL THEN CASE WHEN j.call = 'flock' THEN 'high' ELSE 'medium' END END AS certainty,
    j.path AS file,
    j.waits,
    j.longest_ns,
    j.processes,
    j.call,
    CASE WHEN j.ns IS NOT NULL THEN coalesce(j.comm, 'not known') END AS released_by
FROM totals AS t
LEFT JOIN judged AS j ON j.ns > 0
ORDER BY cost_ns DESC, subject
