-- Flush on close
-- Closing a file takes much of the time spent on writing it: the data is sent out at the close.
-- needs:  file_use, paths, totals
-- param:  min_percent DOUBLE = 30.0       Minimum share of the time of writing and closing that closing takes [%].
-- param:  min_close_ns BIGINT = 1000000   Minimum mean time of closing a written file [ns].
-- param:  min_share DOUBLE = 0.05         Minimum share of the elapsed time.
-- column: subject VARCHAR       The file; of many, the one whose close takes longest.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of writing and closing that closing takes [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time in closing written files [ns].
-- column: gain_ns BIGINT        Potential saving, if something else were done meanwhile [ns].
-- column: certainty VARCHAR     low: the data has to go out some time.
-- column: file VARCHAR          The file.
-- column: closes BIGINT         Closes of written files.
-- column: files BIGINT          Written files that were closed.
-- column: bytes BIGINT          Bytes written to them [B].
-- column: rate DOUBLE           Rate of writing and closing together [B/s].
-- column: longest_ns BIGINT     Longest of the closes [ns].
-- says: finding en  Closing {files:written file} took {cost_ns} (longest {longest_ns}), {value} of the time of writing and closing; {bytes} were written at {rate} overall.
-- says: finding ja  書き込んだ {files} 個のファイルの close に {cost_ns}（最長 {longest_ns}）かかり、書き込みと close を合わせた時間の {value} を占めます。書き込みは {bytes}、全体の速度は {rate} です。
-- says: ok en       Checked {files:written file}: the cost of closing is negligible.
-- says: ok ja       書き込んだ {files} 個のファイルを調べました。close のコストはわずかです。
-- says: unknown en  The recording contains no system calls with durations.
-- says: unknown ja  所要時間のある呼び出しが記録にありません。
-- evidence: io/files --file {file}
-- tags:   time, files, bytes
WITH written AS (
    SELECT w.path_id, sum(w.transferred_bytes) AS bytes, sum(w.time_ns) AS write_ns
    FROM file_use AS w
    JOIN paths AS p ON p.path_id = w.path_id
    WHERE w.class IN ('write', 'copy') AND w.transferred_bytes > 0 AND p.kind IN ('file', 'unknown')
    GROUP BY w.path_id
), closed AS (
    SELECT c.path_id, w.bytes, w.write_ns, sum(c.calls) AS closes, sum(c.time_ns) AS close_ns, max(c.longest_ns) AS longest_ns
    FROM file_use AS c
    JOIN written AS w ON w.path_id = c.path_id
    WHERE c.class = 'close'
    GROUP BY c.path_id, w.bytes, w.write_ns
), slow AS (
    SELECT count(*) AS files, sum(bytes) AS bytes, sum(write_ns) AS write_ns, sum(closes) AS closes, sum(close_ns) AS close_ns,
        max(longest_ns) AS longest_ns, arg_max(path_id, longest_ns) AS path_id
    FROM closed
    WHERE close_ns >= $min_close_ns * closes
), found AS (
    SELECT s.*, p.path, 1e2 * s.close_ns / (s.close_ns + s.write_ns) AS percent
    FROM slow AS s
    JOIN paths AS p ON p.path_id = s.path_id
    CROSS JOIN totals AS t
    WHERE 1e2 * s.close_ns >= $min_percent * (s.close_ns + s.write_ns) AND s.close_ns >= $min_share * t.elapsed_ns
), state AS (
    SELECT count(*) AS files, CAST(sum(closes) AS BIGINT) AS closes FROM closed
)
SELECT
    f.path AS subject,
    CASE WHEN f.path IS NOT NULL THEN 'finding' WHEN t.calls = 0 OR NOT t.has_durations THEN 'unknown' ELSE 'ok' END AS status,
    round(CAST(f.percent AS DOUBLE), 1) AS value,
    CAST($min_percent AS DOUBLE) AS limit_value,
    CAST(f.close_ns AS BIGINT) AS cost_ns,
    CAST(f.close_ns AS BIGINT) AS gain_ns,
    CASE WHEN f.path IS NOT NULL THEN 'low' END AS certainty,
    f.path AS file,
    CAST(coalesce(f.closes, s.closes) AS BIGINT) AS closes,
    coalesce(f.files, s.files) AS files,
    CAST(f.bytes AS BIGINT) AS bytes,
    CAST(1e9 * f.bytes / (f.close_ns + f.write_ns) AS DOUBLE) AS rate,
    f.longest_ns
FROM state AS s
CROSS JOIN totals AS t
LEFT JOIN found AS f ON f.files > 0
