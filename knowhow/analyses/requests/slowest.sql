-- Slowest requests
-- The slowest requests, with the thread in which they began and its off-CPU time during the request.
-- needs:  requests, processes, recording
-- uses:   run_states, paths
-- param:  most BIGINT = 20   At most this many requests of each kind.
-- column: request VARCHAR    Name of the request.
-- column: start_s DOUBLE     When it began, since the start of the recording [s].
-- column: dur_ns BIGINT      How long it took [ns].
-- column: waited_ns BIGINT   Of that, how long its thread waited [ns]; empty: not recorded.
-- column: cpu_wait_ns BIGINT Of that, how long its thread was runnable without a CPU [ns].
-- column: process VARCHAR    Program and process id.
-- column: tid INTEGER        Thread id.
-- column: args VARCHAR       Arguments of the probe at which it began, or the connection.
-- tags:   time, processes
WITH placed AS (
    SELECT q.request_id, q.request, q.task_id, q.ts_ns, q.dur_ns, q.ts_ns + q.dur_ns AS until_ns, q.args, q.path_id,
        row_number() OVER (PARTITION BY q.request ORDER BY q.dur_ns DESC, q.request_id) AS place
    FROM requests AS q
    WHERE q.dur_ns IS NOT NULL
), slow AS (
    SELECT p.request_id, p.request, p.task_id, p.ts_ns, p.dur_ns, p.until_ns, p.args, p.path_id FROM placed AS p WHERE p.place <= $most
), away AS (
    SELECT s.request_id,
        sum(greatest(0, least(r.ts_ns + r.wait_ns, s.until_ns) - greatest(r.ts_ns, s.ts_ns))) AS waited_ns,
        sum(greatest(0, least(r.ts_ns + r.dur_ns, s.until_ns) - greatest(r.ts_ns + r.wait_ns, s.ts_ns))) AS cpu_wait_ns
    FROM slow AS s
    INNER JOIN run_states AS r ON r.task_id = s.task_id AND r.ts_ns < s.until_ns AND r.ts_ns + r.dur_ns > s.ts_ns
    GROUP BY s.request_id
)
SELECT
    s.request,
    round((s.ts_ns - r.started_ns) / 1e9, 6) AS start_s,
    s.dur_ns,
    CASE WHEN k.number > 0 THEN CAST(coalesce(a.waited_ns, 0) AS BIGINT) END AS waited_ns,
    CASE WHEN k.number > 0 THEN CAST(coalesce(a.cpu_wait_ns, 0) AS BIGINT) END AS cpu_wait_ns,
    concat(coalesce(p.comm, '?'), ' ', CAST(p.pid AS VARCHAR)) AS process,
    p.tid,
    coalesce(s.args, o.path) AS args
FROM slow AS s
CROSS JOIN recording AS r
CROSS JOIN (SELECT count(*) AS number FROM run_states AS n) AS k
LEFT JOIN away AS a ON a.request_id = s.request_id
LEFT JOIN processes AS p ON p.task_id = s.task_id
LEFT JOIN paths AS o ON o.path_id = s.path_id
ORDER BY s.request, s.dur_ns DESC, s.request_id
