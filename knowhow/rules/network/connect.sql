-- Connections that fail or come late
-- The program waits for connections that fail, that are closed before they carried anything, or that are established only after a long time.
-- needs:  calls, processes, totals
-- uses:   sockets
-- param:  min_share DOUBLE = 0.05             Minimum share of the elapsed time that it waits for such connections.
-- param:  min_time_ns BIGINT = 500000000      Minimum time that it waits for them [ns].
-- param:  min_wait_ns BIGINT = 100000000 > 0  A connection that takes less is not late [ns].
-- column: subject VARCHAR       Program, process id, and the error, if there was one.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the elapsed time [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time that the thread waited for these connections [ns].
-- column: gain_ns BIGINT        Potential saving: all of it, except for connections that took less than 0.9 s, which may be far away [ns].
-- column: certainty VARCHAR     high where `connect` itself waited; medium where the thread polled for the connection.
-- column: variant VARCHAR       failed, abandoned (closed without data), or late.
-- column: process INTEGER       Process id.
-- column: attempts BIGINT       Number of such connections.
-- column: mean_ns BIGINT        Time that one of them took, on average [ns].
-- column: errno VARCHAR         Name of the error.
-- column: remotes VARCHAR       Addresses of the other ends: one, or two, or the one that took longest.
-- column: again VARCHAR         Packets of these connections that were sent again; `not known` in logs.
-- says: finding.failed en     {subject}: {attempts:connection} failed with {errno}, after {mean_ns} on average: {cost_ns}, {value} of the elapsed time. To: {remotes}.
-- says: finding.failed ja     {subject}: 接続 {attempts} 回が、平均 {mean_ns} 後に {errno} で失敗し、{cost_ns}（経過時間の {value}）かかっています。接続先: {remotes:ja}。
-- says: finding.abandoned en  {subject}: {attempts:connection} {attempts?was|were} closed before {attempts?it|they} carried any data, after a wait of {mean_ns} on average: {cost_ns}, {value} of the elapsed time. To: {remotes}. Packets sent again: {again}.
-- says: finding.abandoned ja  {subject}: 接続 {attempts} 回が、平均 {mean_ns} 待ったあとデータを送受信せずに閉じられ、{cost_ns}（経過時間の {value}）かかっています。接続先: {remotes:ja}。再送されたパケット: {again:ja}。
-- says: finding.late en       {subject}: {attempts:connection} {attempts?was|were} established only after {mean_ns} on average: {cost_ns}, {value} of the elapsed time. To: {remotes}. Packets sent again: {again}.
-- says: finding.late ja       {subject}: 接続 {attempts} 回の確立に平均 {mean_ns}、合計 {cost_ns}（経過時間の {value}）かかっています。接続先: {remotes:ja}。再送されたパケット: {again:ja}。
-- says: ok en                 No thread waits long for connections.
-- says: ok ja                 接続の確立を長く待っているスレッドはありません。
-- says: unknown en            The recording contains no system calls with durations.
-- says: unknown ja            所要時間のある呼び出しが記録にありません。
-- at_least: duration min_time_ns
-- evidence: time/calls
-- tags:   time, calls
WITH begun AS (
    SELECT c.task_id, c.process_id, c.fd, c.path_id, c.path, c.ts_ns, c.dur_ns, coalesce(c.errno, '') AS errno
    FROM calls AS c
    WHERE c.action = 'connect' AND c.dur_ns IS NOT NULL AND c.via IS NULL
), started AS (
    -- It goes on while the thread does something else, mostly poll.
    SELECT b.* FROM begun AS b WHERE b.errno = 'EINPROGRESS'
), used AS (
    SELECT s.task_id, s.ts_ns, c.ts_ns AS used_ns, CASE WHEN c.class IN ('read', 'write', 'copy') AND c.transferred_bytes > 0 THEN 1 ELSE 0 END AS carries,
        row_number() OVER (PARTITION BY s.task_id, s.ts_ns ORDER BY c.ts_ns) AS place
    FROM started AS s
    INNER JOIN calls AS c ON c.process_id = s.process_id AND c.fd = s.fd AND c.ts_ns > s.ts_ns
    -- Its first data, or its end.
    WHERE c.class = 'close' OR c.action = 'connect' OR (c.class IN ('read', 'write', 'copy') AND c.transferred_bytes > 0)
), polls AS (
    -- One poll may wait for several connections: it counts for the one that began first.
    SELECT s.task_id, s.ts_ns, c.dur_ns, row_number() OVER (PARTITION BY c.task_id, c.ts_ns ORDER BY s.ts_ns) AS place
    FROM started AS s
    LEFT JOIN used AS u ON u.task_id = s.task_id AND u.ts_ns = s.ts_ns AND u.place = 1
    INNER JOIN calls AS c ON c.task_id = s.task_id AND c.action = 'poll' AND c.ts_ns > s.ts_ns AND (u.used_ns IS NULL OR c.ts_ns < u.used_ns)
), polled AS (
    SELECT p.task_id, p.ts_ns, sum(p.dur_ns) AS ns FROM polls AS p WHERE p.place = 1 GROUP BY p.task_id, p.ts_ns
), attempts AS (
    SELECT b.task_id, b.path_id, b.path, b.dur_ns AS ns, b.errno, CASE WHEN b.errno = '' THEN 'late' ELSE 'failed' END AS variant, 'high' AS certainty
    FROM begun AS b
    WHERE b.dur_ns >= $min_wait_ns AND b.errno NOT IN ('EINPROGRESS', 'EALREADY', 'EISCONN', 'EINTR', 'EAGAIN')
    UNION ALL
    SELECT s.task_id, s.path_id, s.path, p.ns, '', CASE WHEN u.carries = 1 THEN 'late' ELSE 'abandoned' END, 'medium'
    FROM started AS s
    INNER JOIN polled AS p ON p.task_id = s.task_id AND p.ts_ns = s.ts_ns
    INNER JOIN used AS u ON u.task_id = s.task_id AND u.ts_ns = s.ts_ns AND u.place = 1
    WHERE p.ns >= $min_wait_ns
), named AS (
    SELECT a.*, e.retransmits, coalesce(e.remote, CASE WHEN regexp_extract(a.path, '->.*[]]$') <> '' THEN substr(regexp_extract(a.path, '->.*[]]$'), 3, length(regexp_extract(a.path, '->.*[]]$')) - 3) END, a.path) AS remote
    FROM attempts AS a
    LEFT JOIN sockets AS e ON e.path_id = a.path_id
), grouped AS (
    SELECT n.task_id, n.variant, n.errno, min(n.certainty) AS certainty, count(*) AS attempts, sum(n.ns) AS ns, sum(n.retransmits) AS again,
        count(DISTINCT n.remote) AS ends, min(n.remote) AS one, max(n.remote) AS other, arg_max(n.remote, n.ns) AS longest
    FROM named AS n
    GROUP BY n.task_id, n.variant, n.errno
), judged AS (
    SELECT g.*, t.elapsed_ns
    FROM grouped AS g
    CROSS JOIN totals AS t
    WHERE g.ns >= $min_time_ns AND g.ns >= $min_share * t.elapsed_ns
)
SELECT
    concat(coalesce(p.comm, '?'), ' ', CAST(p.pid AS VARCHAR), CASE WHEN j.errno = '' THEN '' ELSE concat(' ', j.errno) END) AS subject,
    'finding' AS status,
    round(1e2 * j.ns / j.elapsed_ns, 1) AS value,
    1e2 * $min_share AS limit_value,
    CAST(j.ns AS BIGINT) AS cost_ns,
    CASE WHEN j.variant <> 'late' OR j.ns >= 900000000 * j.attempts THEN CAST(j.ns AS BIGINT) END AS gain_ns,
    CASE WHEN j.certainty = 'high' THEN 'high' ELSE 'medium' END AS certainty,
    j.variant,
    p.pid AS process,
    j.attempts,
    CAST(j.ns // j.attempts AS BIGINT) AS mean_ns,
    j.errno,
    CASE WHEN j.ends = 0 THEN 'not known' WHEN j.ends = 1 THEN j.one WHEN j.ends = 2 THEN concat(j.one, ', ', j.other) ELSE concat(j.longest, ', ...') END AS remotes,
    coalesce(CAST(j.again AS VARCHAR), 'not known') AS again
FROM judged AS j
INNER JOIN processes AS p ON p.task_id = j.task_id
UNION ALL
SELECT NULL, CASE WHEN t.calls = 0 OR NOT t.has_durations THEN 'unknown' ELSE 'ok' END, NULL, 1e2 * $min_share, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM totals AS t
WHERE (SELECT count(*) FROM judged) = 0
ORDER BY cost_ns DESC, subject
