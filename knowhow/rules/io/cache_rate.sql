-- Page-cache speed, not disk speed
-- Files that were read or written faster than the device or the network can be: the rate is that of memory.
-- needs:  file_use, object_use, paths, totals
-- param:  device_rate DOUBLE = 1000000000 > 0  What the device or the network can do at most [B/s].
-- param:  min_bytes BIGINT = 33554432 > 0      Of less, a rate says nothing [B].
-- param:  min_share DOUBLE = 0.01              Minimum share of the elapsed time.
-- column: subject VARCHAR       The file; of many, the one with most bytes.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Rate [B/s].
-- column: limit_value DOUBLE    What the device can do at most [B/s].
-- column: cost_ns BIGINT        Time in moving the bytes [ns].
-- column: gain_ns BIGINT        Nothing can be saved; it is the number that is wrong [ns].
-- column: certainty VARCHAR     medium: what the device can do is assumed.
-- column: file VARCHAR          The file.
-- column: variant VARCHAR       read or write.
-- column: bytes BIGINT          Bytes transferred [B].
-- column: files BIGINT          Files that are so fast, or files checked.
-- says: finding.read en   {bytes} of {files:file} were read at {value}: the data came from memory (page cache), not from the device.
-- says: finding.read ja   {files} 個のファイルの {bytes} が {value} で読まれています。データはデバイスではなくメモリ（ページキャッシュ）から読まれたものです。
-- says: finding.write en  {bytes} were written to {files:file} at {value}: this is the speed of memory (page cache); the data had not reached the device yet.
-- says: finding.write ja  {files} 個のファイルに {bytes} が {value} で書かれています。これはメモリ（ページキャッシュ）の速度で、データはまだデバイスに書かれていません。
-- says: ok en             Checked {files:file}: none transferred much data faster than the device can.
-- says: ok ja             {files} 個のファイルを調べました。多くのデータをデバイスの限界より速く転送したものはありません。
-- says: unknown en        The recording contains no system calls with durations.
-- says: unknown ja        所要時間のある呼び出しが記録にありません。
-- evidence: io/files --file {file}
-- tags:   bytes, time, files
WITH files AS (
    SELECT p.path, u.class, sum(u.transferred_bytes) AS bytes, sum(u.time_ns) AS time_ns
    FROM file_use AS u
    JOIN paths AS p ON p.path_id = u.path_id
    WHERE u.class IN ('read', 'write') AND u.transferred_bytes > 0 AND p.kind IN ('file', 'unknown')
    GROUP BY p.path, u.class
), synced AS (
    SELECT p.path, sum(u.time_ns) FILTER (WHERE u.class = 'close') AS close_ns, count(*) FILTER (WHERE u.class = 'sync') AS syncs
    FROM file_use AS u
    JOIN paths AS p ON p.path_id = u.path_id
    WHERE u.class IN ('sync', 'close')
    GROUP BY p.path
), direct AS (
    -- Past the page cache there is only the device.
    SELECT DISTINCT path FROM object_use WHERE class = 'open' AND open_flags LIKE '%O_DIRECT%' AND open_flags NOT LIKE '%O_DIRECTORY%'
), rated AS (
    -- Whoever waits for the disk has measured it. A close may flush, and then belongs to the time of writing.
    SELECT f.path, f.class, f.bytes, f.time_ns + CASE WHEN f.class = 'write' THEN coalesce(s.close_ns, 0) ELSE 0 END AS time_ns
    FROM files AS f
    LEFT JOIN synced AS s ON s.path = f.path
    WHERE (f.class = 'read' OR coalesce(s.syncs, 0) = 0) AND f.path NOT IN (SELECT path FROM direct WHERE path IS NOT NULL)
), fast AS (
    SELECT class, count(*) AS files, sum(bytes) AS bytes, sum(time_ns) AS time_ns, arg_max(path, bytes) AS path
    FROM rated
    WHERE 1e9 * bytes > $device_rate * time_ns AND bytes >= $min_bytes
    GROUP BY class
), found AS (
    SELECT f.*
    FROM fast AS f
    CROSS JOIN totals AS t
    WHERE f.time_ns >= $min_share * t.elapsed_ns
), state AS (
    SELECT count(*) AS files FROM files
)
SELECT
    f.path AS subject,
    CASE WHEN f.path IS NOT NULL THEN 'finding' WHEN t.calls = 0 OR NOT t.has_durations THEN 'unknown' ELSE 'ok' END AS status,
    round(CAST(1e9 * f.bytes / f.time_ns AS DOUBLE), 0) AS value,
    CAST($device_rate AS DOUBLE) AS limit_value,
    CAST(f.time_ns AS BIGINT) AS cost_ns,
    CASE WHEN f.path IS NOT NULL THEN CAST(0 AS BIGINT) END AS gain_ns,
    CASE WHEN f.path IS NOT NULL THEN 'medium' END AS certainty,
    f.path AS file,
    f.class AS variant,
    CAST(f.bytes AS BIGINT) AS bytes,
    coalesce(f.files, s.files) AS files
FROM state AS s
CROSS JOIN totals AS t
LEFT JOIN found AS f ON f.files > 0
