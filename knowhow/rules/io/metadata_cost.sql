-- Metadata takes longer than data
-- Opening, closing, listing and querying files takes longer than reading and writing them.
-- needs:  file_use, call_use, paths, totals
-- param:  min_calls BIGINT = 2000 > 0    Minimum number of metadata calls.
-- param:  needed BIGINT = 20 > 0          So many metadata calls a file may need.
-- param:  min_ratio DOUBLE = 1.0 > 0     Time in metadata over time in data from which it is reported.
-- param:  min_share DOUBLE = 0.1         Minimum share of the elapsed time.
-- column: subject VARCHAR       Directory that took most of the time, or the file with most of all of it.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Time in metadata over time in data.
-- column: limit_value DOUBLE    Threshold: reported from this value on.
-- column: cost_ns BIGINT        Time in metadata calls [ns].
-- column: gain_ns BIGINT        Potential saving: the calls that the files do not need; 0: each file has few [ns].
-- column: certainty VARCHAR     medium: whether they are needed, the log cannot tell.
-- column: cost_calls BIGINT     Calls that this cost is the time of.
-- column: explained_by VARCHAR  Rules whose findings explain this one.
-- column: calls BIGINT          Metadata calls.
-- column: data_calls BIGINT     Reads, writes and copies.
-- column: data_ns BIGINT        Time in these [ns].
-- column: each DOUBLE           Metadata calls for each of them.
-- column: files BIGINT          Files and directories that they were about.
-- column: most VARCHAR          The call that took most of the time.
-- says: finding en  {calls:metadata call} on {files:file or directory|files and directories} took {cost_ns}, most of it in {most}; {data_calls:read or write|reads and writes} took {data_ns}.
-- says: finding ja  {files} 個のファイルとディレクトリに対するメタデータの呼び出し {calls} 回に {cost_ns} かかっています（最も長いのは {most}）。読み書き {data_calls} 回は {data_ns} です。
-- says: ok en       Checked {calls:metadata call}: they take less time than the data, or little of the total.
-- says: ok ja       メタデータの呼び出し {calls} 回を調べました。データの読み書きより短いか、全体に対してわずかです。
-- says: unknown en  The recording contains no system calls with durations.
-- says: unknown ja  所要時間のある呼び出しが記録にありません。
-- at_least: calls min_calls
-- evidence: io/files --exclude-dir /proc,/sys
-- tags:   metadata, time, files
WITH used AS (
    SELECT path_id, sum(time_ns) FILTER (WHERE class IN ('open', 'close', 'stat', 'dir', 'name', 'attr')) AS time_ns,
        sum(calls) FILTER (WHERE class IN ('open', 'close', 'stat', 'dir', 'name', 'attr')) AS calls
    FROM file_use
    GROUP BY path_id
), places AS (
    SELECT p.directory, sum(u.time_ns) AS time_ns
    FROM used AS u
    JOIN paths AS p ON p.path_id = u.path_id
    WHERE p.kind IN ('file', 'directory', 'unknown')
    GROUP BY p.directory
), one AS (
    SELECT arg_max(p.path, u.time_ns) AS path, max(u.time_ns) AS time_ns
    FROM used AS u
    JOIN paths AS p ON p.path_id = u.path_id
    WHERE p.kind IN ('file', 'directory', 'unknown')
), by_call AS (
    SELECT c.call, sum(c.time_ns) AS time_ns FROM call_use AS c WHERE c.class IN ('open', 'close', 'stat', 'dir', 'name', 'attr') GROUP BY c.call
), needed AS (
    SELECT count(*) AS files, (SELECT arg_max(b.call, b.time_ns) FROM by_call AS b) AS most FROM used AS u WHERE u.calls > 0
), found AS (
    SELECT t.calls, coalesce(CASE WHEN 2 * o.time_ns > t.metadata_ns THEN o.path END, d.directory) AS place
    FROM totals AS t
    CROSS JOIN (SELECT arg_max(directory, time_ns) AS directory FROM places) AS d
    CROSS JOIN one AS o
    WHERE t.has_durations AND t.metadata_calls >= $min_calls AND t.metadata_ns > $min_ratio * t.data_ns
        AND t.metadata_ns >= $min_share * t.elapsed_ns
)
SELECT
    f.place AS subject,
    CASE WHEN f.calls IS NOT NULL THEN 'finding' WHEN t.calls = 0 OR NOT t.has_durations THEN 'unknown' ELSE 'ok' END AS status,
    CASE WHEN f.calls IS NOT NULL THEN round(CAST(t.metadata_ns AS DOUBLE) / greatest(t.data_ns, 1), 2) END AS value,
    CAST($min_ratio AS DOUBLE) AS limit_value,
    CASE WHEN f.calls IS NOT NULL THEN t.metadata_ns END AS cost_ns,
    CAST(CASE WHEN f.calls IS NOT NULL THEN greatest(0, t.metadata_ns * (1 - 1e0 * $needed * n.files / t.metadata_calls)) END AS BIGINT) AS gain_ns,
    CASE WHEN f.calls IS NOT NULL THEN 'medium' END AS certainty,
    CASE WHEN f.calls IS NOT NULL THEN t.metadata_calls END AS cost_calls,
    'processes/process_creation,io/failed_lookups,io/failing_calls,io/directory_stat,io/repeated_open,io/repeated_stat,calls/storm' AS explained_by,
    t.metadata_calls AS calls,
    t.data_calls,
    t.data_ns,
    round(CAST(t.metadata_calls AS DOUBLE) / greatest(t.data_calls, 1), 1) AS each,
    n.files,
    n.most
FROM totals AS t
CROSS JOIN needed AS n
LEFT JOIN found AS f ON f.calls > 0
