-- Shared file
-- Files that several processes write, or write and read, at the same time.
-- needs:  calls, file_use, paths, totals
-- param:  min_processes BIGINT = 2 > 1   Minimum number of processes at a time.
-- param:  min_calls BIGINT = 50 > 0      A process that reads or writes the file less often does not count.
-- param:  min_share DOUBLE = 0.05        Minimum share of the elapsed time.
-- column: subject VARCHAR       The file.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Processes that work on it at the same time.
-- column: limit_value DOUBLE    Threshold: reported from this value on.
-- column: cost_ns BIGINT        Time of all of them in reading, writing and locking it [ns].
-- column: gain_ns BIGINT        What a file for each could save at most [ns].
-- column: certainty VARCHAR     high where they lock; medium where they do not; low where the log has no durations.
-- column: file VARCHAR          The file.
-- column: variant VARCHAR       lock: they take locks. plain: they do not.
-- column: processes BIGINT      Processes that work on it at the same time.
-- column: writers BIGINT        Those that write.
-- column: moves BIGINT          Their reads and writes.
-- column: lock_ns BIGINT        Time in taking and giving locks [ns].
-- column: files BIGINT          Files checked.
-- says: finding.lock en   {processes:process} use it at the same time, {writers} of them writing: {moves:read or write|reads and writes}, and {lock_ns} for locks.
-- says: finding.lock ja   {processes} 個のプロセスが同時に使い、うち {writers} 個が書いています。読み書き {moves} 回、ロックに {lock_ns} かかっています。
-- says: finding.plain en  {processes:process} use it at the same time, {writers} of them writing, without locks: {moves:read or write|reads and writes}.
-- says: finding.plain ja  {processes} 個のプロセスが同時に使い、うち {writers} 個がロックなしで書いています。読み書き {moves} 回です。
-- says: ok en             Checked {files:written file}: none is used by several processes at the same time.
-- says: ok ja             書き込みのある {files} 個のファイルを調べました。複数のプロセスが同時に使うものはありません。
-- says: unknown en        The recording contains no system calls.
-- says: unknown ja        システムコールが記録にありません。
-- at_least: calls min_calls
-- evidence: io/offsets --file {file}
-- tags:   processes, files, time
WITH written AS (
    SELECT path_id
    FROM file_use
    WHERE class IN ('read', 'write') AND kind IN ('file', 'unknown')
    GROUP BY path_id
    HAVING sum(calls) FILTER (WHERE class = 'write') > 0
), uses AS (
    SELECT c.path_id, c.process_id, count(*) FILTER (WHERE c.class IN ('read', 'write')) AS moves,
        count(*) FILTER (WHERE c.class = 'write') AS writes, sum(c.dur_ns) FILTER (WHERE c.class IN ('read', 'write')) AS move_ns,
        coalesce(sum(c.dur_ns) FILTER (WHERE c.class IN ('lock', 'control')), 0) AS lock_ns,
        count(*) FILTER (WHERE c.class IN ('lock', 'control')) AS locks,
        min(c.ts_ns) FILTER (WHERE c.class IN ('read', 'write')) AS first_ns,
        max(c.ts_ns + coalesce(c.dur_ns, 0)) FILTER (WHERE c.class IN ('read', 'write')) AS last_ns
    FROM calls AS c
    JOIN written AS w ON w.path_id = c.path_id
    WHERE c.class IN ('read', 'write', 'lock', 'control') AND c.via IS NULL
    GROUP BY c.path_id, c.process_id
), reached AS (
    SELECT *,
        max(last_ns) OVER (PARTITION BY path_id ORDER BY first_ns, process_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns,
        min(first_ns) OVER (PARTITION BY path_id ORDER BY first_ns, process_id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS after_ns
    FROM uses
    WHERE moves >= $min_calls
), files AS (
    -- A process counts where another one has begun before it ends, or ends after it has begun.
    SELECT path_id, count(*) AS processes, count(*) FILTER (WHERE writes > 0) AS writers, sum(moves) AS moves, sum(move_ns) AS move_ns,
        sum(lock_ns) AS lock_ns, sum(locks) AS locks
    FROM reached
    WHERE before_ns > first_ns OR after_ns < last_ns
    GROUP BY path_id
), found AS (
    SELECT p.path, f.*, CAST(f.move_ns + f.lock_ns AS BIGINT) AS cost_ns
    FROM files AS f
    JOIN paths AS p ON p.path_id = f.path_id
    CROSS JOIN totals AS t
    WHERE f.processes >= $min_processes AND f.writers > 0 AND coalesce(f.move_ns + f.lock_ns >= $min_share * t.elapsed_ns, true)
), state AS (
    SELECT count(*) AS files FROM written
)
SELECT
    f.path AS subject,
    CASE WHEN f.path IS NOT NULL THEN 'finding' WHEN t.calls = 0 THEN 'unknown' ELSE 'ok' END AS status,
    CAST(f.processes AS DOUBLE) AS value,
    CAST($min_processes AS DOUBLE) AS limit_value,
    f.cost_ns,
    CAST(f.lock_ns + f.move_ns * (1 - 1e0 / f.processes) AS BIGINT) AS gain_ns,
    CASE WHEN f.path IS NULL THEN NULL WHEN f.cost_ns IS NULL THEN 'low' WHEN f.locks > 0 THEN 'high' ELSE 'medium' END AS certainty,
    f.path AS file,
    CASE WHEN f.path IS NULL THEN NULL WHEN f.locks >= f.writers THEN 'lock' ELSE 'plain' END AS variant,
    f.processes,
    f.writers,
    CAST(f.moves AS BIGINT) AS moves,
    CAST(f.lock_ns AS BIGINT) AS lock_ns,
    s.files
FROM state AS s
CROSS JOIN totals AS t
LEFT JOIN found AS f ON f.processes > 0
