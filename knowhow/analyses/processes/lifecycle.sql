-- Process lifecycle
-- When each process started and ended, how long creating, running and ending it took, and how it ended.
-- needs:  processes, calls, recording
-- column: process VARCHAR      Program and process id.
-- column: parent VARCHAR       The process that created it; empty: not recorded.
-- column: start_s DOUBLE       When it was created, since the start of the recording [s].
-- column: lived_ns BIGINT      Time from then to its end; empty: no end was recorded [ns].
-- column: made_in_ns BIGINT    Time of the call that created it; empty: not recorded [ns].
-- column: to_exec_ns BIGINT    Time from its creation until it executed a program itself; empty: it executed none [ns].
-- column: execs BIGINT         Programs that it ran.
-- column: threads BIGINT       Number of its threads, one after another or together.
-- column: children BIGINT      Processes that it created.
-- column: cpu_ns BIGINT        CPU time of its threads; empty: not known for all [ns].
-- column: ended VARCHAR        exit STATUS, or the signal; empty: no end was recorded.
-- sums:   cpu_ns
-- match:  process
-- tags:   processes, time
WITH firsts AS (
    SELECT p.process_id, p.pid, p.ppid, p.comm, p.start_ts_ns, p.exit_code, p.exit_signal, p.log
    FROM processes AS p
    WHERE p.task_id = p.process_id
), wholes AS (
    SELECT p.process_id, count(*) AS threads, max(p.execs) AS execs,
        CASE WHEN count(p.end_ts_ns) = count(*) THEN max(p.end_ts_ns) END AS end_ts_ns,
        CASE WHEN count(p.user_ns) = count(*) THEN sum(p.user_ns + p.system_ns) END AS cpu_ns
    FROM processes AS p
    GROUP BY p.process_id
), births AS (
    SELECT c.process_id, c.result AS child, c.ts_ns, max(c.dur_ns) AS dur_ns
    FROM calls AS c
    WHERE c.action = 'fork' AND c.result > 0
    GROUP BY c.process_id, c.result, c.ts_ns
), starts AS (
    SELECT c.process_id, min(c.ts_ns) AS ts_ns FROM calls AS c WHERE c.action = 'exec' AND c.errno IS NULL GROUP BY c.process_id
), parents AS (
    -- A number may be used again: of several the last that began before the child.
    SELECT f.process_id, max(q.process_id) AS parent_id
    FROM firsts AS f
    INNER JOIN firsts AS q ON q.pid = f.ppid AND q.start_ts_ns <= f.start_ts_ns AND q.process_id <> f.process_id
    GROUP BY f.process_id
), made AS (
    SELECT t.process_id, t.parent_id, max(b.dur_ns) AS dur_ns
    FROM parents AS t
    INNER JOIN firsts AS f ON f.process_id = t.process_id
    LEFT JOIN births AS b ON b.process_id = t.parent_id AND b.child = f.pid AND b.ts_ns <= f.start_ts_ns + 1000000000
    GROUP BY t.process_id, t.parent_id
), families AS (
    SELECT m.parent_id, count(*) AS children FROM made AS m GROUP BY m.parent_id
)
SELECT
    concat(coalesce(f.comm, '?'), ' ', CAST(f.pid AS VARCHAR)) AS process,
    CASE WHEN q.process_id IS NOT NULL THEN concat(coalesce(q.comm, '?'), ' ', CAST(q.pid AS VARCHAR)) END AS parent,
    round((f.start_ts_ns - r.started_ns) / 1e9, 6) AS start_s,
    w.end_ts_ns - f.start_ts_ns AS lived_ns,
    m.dur_ns AS made_in_ns,
    s.ts_ns - f.start_ts_ns AS to_exec_ns,
    CAST(w.execs AS BIGINT) AS execs,
    w.threads,
    coalesce(n.children, 0) AS children,
    CAST(w.cpu_ns AS BIGINT) AS cpu_ns,
    CASE WHEN f.exit_signal IS NOT NULL THEN CAST(f.exit_signal AS VARCHAR)
        WHEN f.exit_code IS NOT NULL THEN concat('exit ', CAST(f.exit_code AS VARCHAR)) END AS ended
FROM firsts AS f
INNER JOIN wholes AS w ON w.process_id = f.process_id
CROSS JOIN recording AS r
LEFT JOIN made AS m ON m.process_id = f.process_id
LEFT JOIN firsts AS q ON q.process_id = m.parent_id
LEFT JOIN starts AS s ON s.process_id = f.process_id
LEFT JOIN families AS n ON n.parent_id = f.process_id
ORDER BY f.start_ts_ns, f.process_id
