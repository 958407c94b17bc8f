-- Sync after each write
-- Programs that wait for the disk after each write, in fsync or a similar call, or in the write itself.
-- needs:  call_use, file_use, object_use, paths, totals
-- param:  min_waits BIGINT = 30 > 0        Minimum number of waits.
-- param:  min_ratio DOUBLE = 0.2 > 0       Syncs for each write from which it is reported.
-- param:  slow_write_ns BIGINT = 1000000   A small write that takes longer on average waits for the device [ns].
-- param:  good_bytes BIGINT = 1048576 > 0  Writes of this size may take long [B].
-- param:  min_share DOUBLE = 0.02          Minimum share of the elapsed time.
-- column: subject VARCHAR       The file.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Waits for the disk for each write.
-- column: limit_value DOUBLE    Threshold: reported from this value on.
-- column: cost_ns BIGINT        Time in waiting for the disk [ns].
-- column: gain_ns BIGINT        What waiting once, at the end, could save at most [ns].
-- column: certainty VARCHAR     high for sync calls; medium where the writes themselves are slow; low where the log has no durations.
-- column: cost_calls BIGINT     Calls that this cost is the time of.
-- column: file VARCHAR          The file.
-- column: variant VARCHAR       sync: by sync calls. opened: with O_SYNC. alone, untimed: without writes, times in the log. write: in the writes. nameless.
-- column: explained_by VARCHAR  Rules whose findings explain this one.
-- column: waits BIGINT          Waits for the disk.
-- column: writes BIGINT         Writes of the file.
-- column: bytes BIGINT          Bytes of one write on average [B].
-- column: each_ns BIGINT        Mean time of a wait [ns].
-- column: files BIGINT          Written files checked.
-- column: nameless BIGINT       Syncs of files that the log does not name.
-- says: finding.sync en   {waits:sync} for {writes:write} of {bytes} on average, {each_ns} each.
-- says: finding.sync ja   書き込み {writes} 回（平均 {bytes}）に対し、同期が {waits} 回あります。1 回 {each_ns} かかっています。
-- says: finding.alone en  {waits:sync}, {each_ns} each; what was written between them is not in the log.
-- says: finding.alone ja  同期が {waits} 回あり、1 回 {each_ns} かかっています。その間に書かれたものはログにありません。
-- says: finding.untimed en  {waits:sync} for {writes:write}; the log does not show how long they took.
-- says: finding.untimed ja  書き込み {writes} 回に対し、同期が {waits} 回あります。かかった時間はログにありません。
-- says: finding.opened en  The file was opened with O_SYNC or O_DSYNC: each of {waits:write} of {bytes} on average waits for the disk, {each_ns} each.
-- says: finding.opened ja  O_SYNC か O_DSYNC で開かれています。平均 {bytes} の書き込み {waits} 回が、1 回 {each_ns} ディスクを待っています。
-- says: finding.write en  Each of {waits:write} of {bytes} on average takes {each_ns}: it waits for the device or the server.
-- says: finding.write ja  平均 {bytes} の書き込み {waits} 回が 1 回 {each_ns} かかっています。デバイスかサーバーを待っています。
-- says: ok en             Checked {files:written file}: none waits for the disk again and again.
-- says: ok ja             書き込まれた {files} 個のファイルを調べました。ディスク待ちを繰り返すファイルはありません。
-- says: unknown en        The recording contains no system calls.
-- says: unknown ja        システムコールが記録にありません。
-- says: unknown.nameless en  {nameless:sync} {nameless?is|are} of files that the log does not name.
-- says: unknown.nameless ja  同期のうち {nameless} 回は、どのファイルのものかログからわかりません。
-- at_least: calls min_waits
-- evidence: io/files --file {file}
-- tags:   time, calls, files
WITH synced AS (
    SELECT DISTINCT path FROM object_use WHERE class = 'open' AND (open_flags LIKE '%O_SYNC%' OR open_flags LIKE '%O_DSYNC%') AND errno IS NULL AND path IS NOT NULL
), files AS (
    SELECT p.path, coalesce(sum(u.calls) FILTER (WHERE u.class = 'sync'), 0) AS syncs,
        sum(u.time_ns) FILTER (WHERE u.class = 'sync') AS sync_ns,
        coalesce(sum(u.calls - u.errors) FILTER (WHERE u.class = 'write'), 0) AS writes,
        sum(u.time_ns) FILTER (WHERE u.class = 'write') AS write_ns, sum(u.transferred_bytes) FILTER (WHERE u.class = 'write') AS bytes
    FROM file_use AS u
    JOIN paths AS p ON p.path_id = u.path_id
    WHERE u.class IN ('sync', 'write') AND p.kind IN ('file', 'unknown', 'device', 'directory')
    GROUP BY p.path
), waits AS (
    SELECT path, CASE WHEN writes > 0 THEN 'sync' ELSE 'alone' END AS variant, syncs AS waits, writes, bytes, sync_ns AS cost_ns
    FROM files
    WHERE syncs >= $min_waits AND syncs >= $min_ratio * writes
    UNION ALL
    SELECT path, CASE WHEN path IN (SELECT path FROM synced) THEN 'opened' ELSE 'write' END AS variant, writes AS waits, writes, bytes,
        write_ns AS cost_ns
    FROM files
    WHERE writes >= $min_waits AND bytes < $good_bytes * writes AND (write_ns >= $slow_write_ns * writes OR path IN (SELECT path FROM synced))
), found AS (
    SELECT w.*
    FROM waits AS w
    CROSS JOIN totals AS t
    WHERE coalesce(w.cost_ns >= $min_share * t.elapsed_ns, true)
), state AS (
    SELECT (SELECT count(*) FROM files WHERE writes > 0 OR syncs > 0) AS files,
        (SELECT coalesce(sum(calls), 0) FROM call_use WHERE class = 'sync' AND kind IS NULL AND coalesce(action, '') <> 'sync_all') AS nameless
)
SELECT
    f.path AS subject,
    CASE WHEN f.path IS NOT NULL THEN 'finding' WHEN t.calls = 0 OR s.nameless >= $min_waits THEN 'unknown' ELSE 'ok' END AS status,
    CASE WHEN f.writes > 0 THEN round(CAST(f.waits AS DOUBLE) / f.writes, 2) END AS value,
    CAST($min_ratio AS DOUBLE) AS limit_value,
    CAST(f.cost_ns AS BIGINT) AS cost_ns,
    CAST(f.cost_ns * (1 - 1e0 / f.waits) AS BIGINT) AS gain_ns,
    CASE WHEN f.path IS NULL THEN NULL WHEN f.cost_ns IS NULL THEN 'low' WHEN f.variant = 'write' THEN 'medium' ELSE 'high' END AS certainty,
    CAST(f.waits AS BIGINT) AS cost_calls,
    f.path AS file,
    CASE WHEN f.waits IS NOT NULL AND f.cost_ns IS NULL THEN 'untimed' WHEN f.path IS NOT NULL THEN f.variant WHEN s.nameless >= $min_waits THEN 'nameless' END AS variant,
    CASE WHEN f.variant = 'write' THEN 'io/shared_file' END AS explained_by,
    CAST(f.waits AS BIGINT) AS waits,
    CAST(f.writes AS BIGINT) AS writes,
    CASE WHEN f.writes > 0 THEN CAST(f.bytes / f.writes AS BIGINT) END AS bytes,
    CAST(f.cost_ns / f.waits AS BIGINT) AS each_ns,
    s.files,
    CAST(s.nameless AS BIGINT) AS nameless
FROM state AS s
CROSS JOIN totals AS t
LEFT JOIN found AS f ON f.waits > 0
