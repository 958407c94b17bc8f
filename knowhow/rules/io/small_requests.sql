-- Small requests
-- Files and pipes that are read or written in many small pieces. Reads that found the end of the file (0 bytes) do not count.
-- Operations of libaio are requests too; what they cost is not known, as many are under way at a time.
-- needs:  calls, paths, processes, totals
-- param:  small_bytes BIGINT = 4096 > 0   A read or write that moves less is small [B].
-- param:  good_bytes BIGINT = 65536 > 0   Size of request to compare with [B].
-- param:  min_calls BIGINT = 200 > 0      Fewer small requests to a file are no finding.
-- param:  min_share DOUBLE = 0.01         Least part of the elapsed time.
-- param:  pipe_ns BIGINT = 100000         A call on a pipe costs at most this: beyond, it waits for the other end [ns].
-- column: subject VARCHAR       Path of the file.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Average size of the small requests [B].
-- column: limit_value DOUBLE    Size below which a request is small [B].
-- column: cost_ns BIGINT        Time in the small requests [ns].
-- column: gain_ns BIGINT        What larger requests could save at most [ns].
-- column: certainty VARCHAR     high; medium for pipes; low where the log has no durations.
-- column: file VARCHAR          The file.
-- column: from_s DOUBLE         First of the small requests, since the start of the recording [s].
-- column: until_s DOUBLE        Last of them [s].
-- column: variant VARCHAR       read or write; nameless where the log does not say which file.
-- column: explained_by VARCHAR  Rules whose findings explain this one.
-- column: calls BIGINT          Reads or writes of the file.
-- column: small BIGINT          The small ones among them.
-- column: enough BIGINT         How many requests of good_bytes would do.
-- column: files BIGINT          Files looked at.
-- column: nameless BIGINT       Small requests to files that the log does not name.
-- says: finding.read en   {small} of the {calls} reads of this file bring {value} on average; {enough} of {good_bytes} would do.
-- says: finding.read ja   このファイルの読み込み {calls} 回のうち {small} 回は、平均 {value} しか運んでいません。{good_bytes} ずつなら {enough} 回で済みます。
-- says: finding.write en  {small} of the {calls} writes to this file carry {value} on average; {enough} of {good_bytes} would do.
-- says: finding.write ja  このファイルへの書き込み {calls} 回のうち {small} 回は、平均 {value} しか運んでいません。{good_bytes} ずつなら {enough} 回で済みます。
-- says: ok en             {files} file(s) and pipe(s) looked at: small requests to none of them take time worth mentioning.
-- says: ok ja             ファイルとパイプ {files} 個を調べました。小さな読み書きに目立つ時間を使うものはありません。
-- says: unknown en        The recording holds no calls.
-- says: unknown ja        システムコールが記録にありません。
-- says: unknown.nameless en  {nameless} small reads and writes are of files that the log does not name.
-- says: unknown.nameless ja  小さな読み書きのうち {nameless} 回は、どのファイルのものかログからわかりません。
-- evidence: io/files --file {file}
-- tags:   size, calls, files
WITH uses AS (
    SELECT life_id, path_id, class, count(*) AS calls, count(*) FILTER (WHERE moved_bytes < $small_bytes) AS small,
        sum(moved_bytes) FILTER (WHERE moved_bytes < $small_bytes) AS bytes,
        sum(CASE WHEN via IS NULL THEN dur_ns END) FILTER (WHERE moved_bytes < $small_bytes) AS ns,
        sum(CASE WHEN via IS NULL THEN least(dur_ns, $pipe_ns) END) FILTER (WHERE moved_bytes < $small_bytes) AS pipe_ns,
        min(ts_ns) FILTER (WHERE moved_bytes < $small_bytes) AS first_ns,
        max(ts_ns) FILTER (WHERE moved_bytes < $small_bytes) AS last_ns
    FROM calls
    WHERE class IN ('read', 'write') AND moved_bytes > 0 AND path_id IS NOT NULL
    GROUP BY life_id, path_id, class
), files AS (
    SELECT p.path, p.kind, u.class, sum(u.calls) AS calls, sum(u.small) AS small, count(DISTINCT r.process_id) AS processes, sum(u.bytes) AS bytes,
        CAST(sum(CASE WHEN p.kind = 'pipe' THEN u.pipe_ns ELSE u.ns END) AS BIGINT) AS cost_ns,
        min(u.first_ns) AS first_ns, max(u.last_ns) AS last_ns
    FROM uses AS u
    JOIN paths AS p ON p.path_id = u.path_id
    JOIN processes AS r ON r.life_id = u.life_id
    WHERE p.kind IN ('file', 'unknown', 'pipe')
    GROUP BY p.path, p.kind, u.class
), found AS (
    -- A file of which each of many processes reads a little is a matter of processes/many_starts and io/repeated_open.
    SELECT f.path, f.kind, f.class, f.calls, f.small, f.bytes, f.cost_ns, ceil(f.bytes * 1e0 / $good_bytes) AS enough,
        round((f.first_ns - t.started_ns) / 1e9, 6) AS from_s, round((f.last_ns - t.started_ns) / 1e9, 6) AS until_s
    FROM files AS f
    CROSS JOIN totals AS t
    WHERE f.small >= $min_calls AND f.small >= least(50, $min_calls) * f.processes AND 2 * f.small > f.calls
        AND coalesce(f.cost_ns >= $min_share * t.elapsed_ns, true)
), state AS (
    SELECT (SELECT count(*) FROM files) AS files, (SELECT count(*) FROM calls
        WHERE class IN ('read', 'write') AND path_id IS NULL AND moved_bytes > 0 AND moved_bytes < $small_bytes) AS nameless
)
SELECT
    f.path AS subject,
    CASE WHEN f.path IS NOT NULL THEN 'finding' WHEN t.calls = 0 OR s.nameless >= $min_calls THEN 'unknown' ELSE 'ok' END AS status,
    round(CAST(f.bytes AS DOUBLE) / f.small, 1) AS value,
    CAST($small_bytes AS DOUBLE) AS limit_value,
    f.cost_ns,
    CAST(f.cost_ns * (1 - f.enough / f.small) AS BIGINT) AS gain_ns,
    CASE WHEN f.path IS NULL THEN NULL WHEN f.cost_ns IS NULL THEN 'low' WHEN f.kind = 'pipe' THEN 'medium' ELSE 'high' END AS certainty,
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
