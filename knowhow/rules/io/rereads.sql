-- Same data read repeatedly
-- The same bytes of a file are read again and again.
-- needs:  calls, file_use, paths, totals
-- param:  min_factor DOUBLE = 2.0 > 1    Bytes read over distinct bytes from which it is reported.
-- param:  min_reads BIGINT = 50 > 0      Minimum number of reads of a file.
-- param:  min_share DOUBLE = 0.01        Minimum share of the elapsed time that reading known bytes takes.
-- column: subject VARCHAR       Path of the file.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Bytes read over distinct bytes.
-- column: limit_value DOUBLE    Threshold for the Factor: reported from this value on.
-- column: cost_ns BIGINT        Time in reading the file [ns].
-- column: gain_ns BIGINT        What reading each byte once could save at most; 0: each of several programs reads it once [ns].
-- column: certainty VARCHAR     high where one process reads again; medium where several read the same; low without durations.
-- column: cost_calls BIGINT     Calls that this cost is the time of.
-- column: file VARCHAR          The file.
-- column: from_s DOUBLE         First read, since the start of the recording [s].
-- column: until_s DOUBLE        Last read [s].
-- column: variant VARCHAR       own: a process reads again what it has read. shared: each of many processes reads it about once.
-- column: explained_by VARCHAR  Rules whose findings explain this one.
-- column: reads BIGINT          Reads of the file.
-- column: bytes BIGINT          Bytes read [B].
-- column: distinct_bytes BIGINT Distinct bytes among them [B].
-- column: processes BIGINT      Processes that read it.
-- column: files BIGINT          Files checked.
-- says: finding.own en     {bytes} were read from {distinct_bytes} of data: each byte {value} times on average, in {reads:read}.
-- says: finding.own ja     {distinct_bytes} のデータを {reads} 回に分けて計 {bytes} 読んでいます。同じバイトを平均 {value} 回読んだことになります。
-- says: finding.shared en  {processes:process} read the same {distinct_bytes}, {bytes} in total: each byte {value} times.
-- says: finding.shared ja  {processes} 個のプロセスが同じ {distinct_bytes} を合計 {bytes} 読んでいます。同じバイトが {value} 回読まれました。
-- says: ok en              Checked {files:file}: the cost of rereading is negligible.
-- says: ok ja              {files} 個のファイルを調べました。読み直しのコストはわずかです。
-- says: unknown en         The recording contains no read whose file offset is known.
-- says: unknown ja         ファイル内の位置がわかる読み込みが記録にありません。
-- at_least: calls min_reads
-- evidence: io/offsets --file {file}
-- tags:   bytes, offsets, files
WITH candidates AS (
    SELECT u.path_id, sum(u.time_ns) AS time_ns
    FROM file_use AS u
    JOIN paths AS p ON p.path_id = u.path_id
    CROSS JOIN totals AS t
    WHERE u.class = 'read' AND p.kind IN ('file', 'unknown', 'device') AND u.transferred_bytes > 0
    GROUP BY u.path_id, t.elapsed_ns
    HAVING sum(u.calls) >= $min_reads AND coalesce(sum(u.time_ns) >= $min_share * t.elapsed_ns, true)
), pieces AS (
    SELECT c.path_id, c.process_id, c.offset_bytes AS from_byte, min(c.comm) AS comm, max(c.offset_bytes + c.transferred_bytes) AS to_byte,
        count(*) AS reads, sum(c.transferred_bytes) AS bytes, sum(c.dur_ns) AS ns, min(c.ts_ns) AS first_ns, max(c.ts_ns) AS last_ns
    FROM calls AS c
    JOIN candidates AS f ON f.path_id = c.path_id
    WHERE c.class = 'read' AND c.transferred_bytes > 0 AND c.offset_bytes IS NOT NULL AND c.via IS NULL
    GROUP BY c.path_id, c.process_id, c.offset_bytes
), reached AS (
    SELECT *,
        max(to_byte) OVER (PARTITION BY path_id ORDER BY from_byte, process_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached,
        max(to_byte) OVER (PARTITION BY path_id, process_id ORDER BY from_byte ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
            AS reached_by_it
    FROM pieces
), files AS (
    SELECT path_id, sum(reads) AS reads, sum(bytes) AS bytes, CAST(sum(ns) AS BIGINT) AS cost_ns, count(DISTINCT process_id) AS processes, count(DISTINCT comm) AS programs,
        sum(greatest(to_byte - greatest(from_byte, coalesce(reached, 0)), 0)) AS distinct_bytes,
        sum(greatest(to_byte - greatest(from_byte, coalesce(reached_by_it, 0)), 0)) AS distinct_of_each,
        min(first_ns) AS first_ns, max(last_ns) AS last_ns
    FROM reached
    GROUP BY path_id
), found AS (
    SELECT p.path, f.*, CAST(f.bytes AS DOUBLE) / f.distinct_bytes AS factor,
        CAST(f.cost_ns * (1 - CAST(f.distinct_bytes AS DOUBLE) / f.bytes) AS BIGINT) AS gain_ns,
        -- Each process reads little twice, but there are many of them.
        f.bytes < greatest($min_factor, f.processes) * f.distinct_of_each AS shared,
        f.processes = f.programs AND f.bytes < $min_factor * f.distinct_of_each AS one_each,
        round((f.first_ns - t.started_ns) / 1e9, 6) AS from_s, round((f.last_ns - t.started_ns) / 1e9, 6) AS until_s
    FROM files AS f
    JOIN paths AS p ON p.path_id = f.path_id
    CROSS JOIN totals AS t
    WHERE f.bytes >= $min_factor * f.distinct_bytes
        AND coalesce(f.cost_ns * (1 - CAST(f.distinct_bytes AS DOUBLE) / f.bytes) >= $min_share * t.elapsed_ns, true)
), state AS (
    SELECT count(DISTINCT CASE WHEN offset_bytes IS NOT NULL THEN path_id END) AS files,
        count(*) FILTER (WHERE offset_bytes IS NULL AND coalesce(kind, 'file') IN ('file', 'unknown')) AS placeless
    FROM calls
    WHERE class = 'read' AND transferred_bytes > 0
)
SELECT
    f.path AS subject,
    CASE WHEN f.path IS NOT NULL THEN 'finding' WHEN t.calls = 0 OR (s.files = 0 AND s.placeless > 0) THEN 'unknown' ELSE 'ok' END AS status,
    round(f.factor, 2) AS value,
    CAST($min_factor AS DOUBLE) AS limit_value,
    f.cost_ns,
    CASE WHEN f.one_each THEN 0 ELSE f.gain_ns END AS gain_ns,
    CASE WHEN f.path IS NULL THEN NULL WHEN f.cost_ns IS NULL THEN 'low' WHEN f.shared THEN 'medium' ELSE 'high' END AS certainty,
    CAST(f.reads AS BIGINT) AS cost_calls,
    f.path AS file,
    f.from_s,
    f.until_s,
    CASE WHEN f.shared THEN 'shared' WHEN f.path IS NOT NULL THEN 'own' END AS variant,
    CASE WHEN f.shared THEN 'processes/process_creation' END AS explained_by,
    CAST(f.reads AS BIGINT) AS reads,
    CAST(f.bytes AS BIGINT) AS bytes,
    CAST(f.distinct_bytes AS BIGINT) AS distinct_bytes,
    f.processes,
    s.files
FROM state AS s
CROSS JOIN totals AS t
LEFT JOIN found AS f ON f.reads > 0
