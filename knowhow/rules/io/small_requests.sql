-- Small requests
-- Files and pipes that are read or written in many small requests. Reads that found the end of the file (0 bytes) do not count.
-- Operations of libaio are requests too; their cost is unknown, because many are in progress at a time.
-- needs:  calls, emulated_reservations, object_use, paths, processes, totals
-- param:  small_bytes BIGINT = 4096 > 0   A read or write that moves less is small [B].
-- param:  good_bytes BIGINT = 65536 > 0   Size of request to compare with [B].
-- param:  min_calls BIGINT = 200 > 0      Minimum number of small requests to a file.
-- param:  min_share DOUBLE = 0.01         Minimum share of the elapsed time.
-- param:  asked_bytes BIGINT = 512 > 0    A read of a pipe that asks for less is small, whatever it gets [B].
-- param:  pipe_ns BIGINT = 100000         A call on a pipe costs at most this: beyond, it waits for the other end [ns].
-- column: subject VARCHAR       Path of the file.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Average size of the small requests [B].
-- column: limit_value DOUBLE    Size below which a request is small [B].
-- column: cost_ns BIGINT        Time in the small requests [ns].
-- column: gain_ns BIGINT        What larger requests could save at most [ns].
-- column: certainty VARCHAR     high; medium for pipes; low where the log has no durations.
-- column: cost_calls BIGINT     Calls that this cost is the time of.
-- column: file VARCHAR          The file.
-- column: from_s DOUBLE         First of the small requests, since the start of the recording [s].
-- column: until_s DOUBLE        Last of them [s].
-- column: variant VARCHAR       read or write; nameless where the log does not say which file.
-- column: explained_by VARCHAR  Rules whose findings explain this one.
-- column: calls BIGINT          Reads or writes of the file.
-- column: small BIGINT          The small ones among them.
-- column: enough BIGINT         How many requests of good_bytes would do.
-- column: files BIGINT          Files checked.
-- column: nameless BIGINT       Small requests to files that the log does not name.
-- says: finding.read en   {small} of {calls:read} from this file transfer {value} on average; {enough:read} of {good_bytes} would suffice.
-- says: finding.read ja   このファイルの読み込み {calls} 回のうち {small} 回は、平均 {value} しか転送していません。{good_bytes} ずつなら {enough} 回で済みます。
-- says: finding.write en  {small} of {calls:write} to this file transfer {value} on average; {enough:write} of {good_bytes} would suffice.
-- says: finding.write ja  このファイルへの書き込み {calls} 回のうち {small} 回は、平均 {value} しか転送していません。{good_bytes} ずつなら {enough} 回で済みます。
-- says: ok en             Checked {files:file or pipe|files and pipes}: the cost of small requests is negligible.
-- says: ok ja             ファイルとパイプ {files} 個を調べました。小さな読み書きのコストはわずかです。
-- says: unknown en        The recording contains no system calls.
-- says: unknown ja        システムコールが記録にありません。
-- says: unknown.nameless en  {nameless:small request} {nameless?is|are} to files that the log does not name.
-- says: unknown.nameless ja  小さな読み書きのうち {nameless} 回は、どのファイルのものかログからわかりません。
-- at_least: calls min_calls
-- evidence: io/files --file {file}
-- tags:   size, calls, files
WITH small AS (
    SELECT path_id, class, class = 'write' OR coalesce(requested_bytes, 0) < $asked_bytes AS asked_little, count(*) AS small, sum(transferred_bytes) AS bytes,
        sum(CASE WHEN via IS NULL THEN dur_ns END) AS ns, sum(CASE WHEN via IS NULL THEN least(dur_ns, $pipe_ns) END) AS pipe_ns,
        min(ts_ns) AS first_ns, max(ts_ns) AS last_ns
    FROM calls
    -- coalesce: DuckDB then looks for the classes while it decodes; a bare IN it would make ORs, tested on decoded rows.
    WHERE coalesce(class, '') IN ('read', 'write') AND transferred_bytes > 0 AND transferred_bytes < $small_bytes
        AND (class = 'write' OR coalesce(requested_bytes, 0) < $small_bytes)
    GROUP BY path_id, class, class = 'write' OR coalesce(requested_bytes, 0) < $asked_bytes
), suspects AS (
    SELECT p.path, p.kind, s.class, sum(s.small) AS small, sum(s.bytes) AS bytes,
        CAST(sum(CASE WHEN p.kind = 'pipe' THEN s.pipe_ns ELSE s.ns END) AS BIGINT) AS cost_ns,
        min(s.first_ns) AS first_ns, max(s.last_ns) AS last_ns
    FROM small AS s
    JOIN paths AS p ON p.path_id = s.path_id
    -- A read of a pipe that asked for more got what there was: that is up to the writer.
    -- No buffer joins bytes that lie a block apart: io/emulated_reservation.
    WHERE p.kind IN ('file', 'unknown', 'pipe') AND (p.kind <> 'pipe' OR s.asked_little)
        AND NOT (s.class = 'write' AND s.path_id IN (SELECT e.path_id FROM emulated_reservations AS e))
    GROUP BY p.path, p.kind, s.class
    HAVING sum(s.small) >= $min_calls
), objects AS (
    SELECT p.path_id, s.path, s.kind, s.class
    FROM suspects AS s
    JOIN paths AS p ON p.path = s.path AND p.kind = s.kind
), uses AS (
    -- All requests of those files: each file by its number first.
    SELECT c.path_id, c.task_id, c.class, count(*) AS calls
    FROM calls AS c
    JOIN objects AS o ON o.path_id = c.path_id AND o.class = c.class
    WHERE coalesce(c.class, '') IN ('read', 'write') AND c.transferred_bytes > 0
    GROUP BY c.path_id, c.task_id, c.class
), files AS (
    SELECT o.path, o.kind, o.class, sum(u.calls) AS calls, count(DISTINCT r.process_id) AS processes
    FROM uses AS u
    JOIN objects AS o ON o.path_id = u.path_id AND o.class = u.class
    JOIN processes AS r ON r.task_id = u.task_id
    GROUP BY o.path, o.kind, o.class
), found AS (
    -- A file of which each of many processes reads a little is a matter of processes/process_creation and io/repeated_open.
    SELECT s.path, s.kind, s.class, f.calls, s.small, s.bytes, s.cost_ns, ceil(s.bytes * 1e0 / $good_bytes) AS enough,
        round((s.first_ns - t.started_ns) / 1e9, 6) AS from_s, round((s.last_ns - t.started_ns) / 1e9, 6) AS until_s
    FROM suspects AS s
    JOIN files AS f ON f.path = s.path AND f.kind = s.kind AND f.class = s.class
    CROSS JOIN totals AS t
    WHERE s.small >= least(50, $min_calls) * f.processes AND 2 * s.small > f.calls
        AND coalesce(s.cost_ns >= $min_share * t.elapsed_ns, true)
), looked_at AS (
    SELECT DISTINCT o.path, o.kind, o.class
    FROM object_use AS o
    WHERE o.class IN ('read', 'write') AND o.transferred_bytes > 0 AND o.kind IN ('file', 'unknown', 'pipe')
), state AS (
    SELECT (SELECT count(*) FROM looked_at) AS files,
        CAST((SELECT coalesce(sum(small), 0) FROM small WHERE path_id IS NULL) AS BIGINT) AS nameless
)
SELECT
    f.path AS subject,
    CASE WHEN f.path IS NOT NULL THEN 'finding' WHEN t.calls = 0 OR s.nameless >= $min_calls THEN 'unknown' ELSE 'ok' END AS status,
    round(CAST(f.bytes AS DOUBLE) / f.small, 1) AS value,
    CAST($small_bytes AS DOUBLE) AS limit_value,
    f.cost_ns,
    CAST(f.cost_ns * (1 - f.enough / f.small) AS BIGINT) AS gain_ns,
    CASE WHEN f.path IS NULL THEN NULL WHEN f.cost_ns IS NULL THEN 'low' WHEN f.kind = 'pipe' THEN 'medium' ELSE 'high' END AS certainty,
    CAST(f.small AS BIGINT) AS cost_calls,
    f.path AS file,
    f.from_s,
    f.until_s,
    CASE WHEN f.path IS NOT NULL THEN f.class WHEN s.nameless >= $min_calls THEN 'nameless' END AS variant,
    'io/sync_per_write' AS explained_by,
    CAST(f.calls AS BIGINT) AS calls,
    CAST(f.small AS BIGINT) AS small,
    CAST(f.enough AS BIGINT) AS enough,
    s.files,
    s.nameless
FROM state AS s
CROSS JOIN totals AS t
LEFT JOIN found AS f ON f.small > 0
