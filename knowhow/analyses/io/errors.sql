-- Errors by call and file
-- Calls that fail, with the error and the file. `share` is relative to all calls of that name, on any file.
-- needs:  calls, paths
-- column: call VARCHAR     Name of the system call.
-- column: path VARCHAR     File or other object; empty if the log names none.
-- column: errno VARCHAR    Name of the error.
-- column: calls BIGINT     Calls that failed this way.
-- column: time_ns BIGINT   Time in these calls [ns].
-- column: share DOUBLE     Their share of all calls of this name [%].
-- sums:   calls, time_ns
-- match:  call, path, errno
-- chart:  bars x=path y=calls color=errno title="Failed calls per file" title_ja="ファイルごとの失敗回数"
-- tags:   errors, files, calls
WITH totals AS (
    SELECT c.call, count(*) AS all_calls
    FROM calls AS c
    GROUP BY c.call
), summed AS (
    -- By number first: names are looked up once for each file, not once for each call.
    SELECT c.call, c.path_id, c.errno, count(*) AS calls, sum(c.dur_ns) AS time_ns
    FROM calls AS c
    WHERE c.errno IS NOT NULL
    GROUP BY c.call, c.path_id, c.errno
), failed AS (
    SELECT s.call, p.path, s.errno, CAST(sum(s.calls) AS BIGINT) AS calls, CAST(sum(s.time_ns) AS BIGINT) AS time_ns
    FROM summed AS s
    LEFT JOIN paths AS p ON p.path_id = s.path_id
    GROUP BY s.call, p.path, s.errno
)
SELECT
    f.call,
    f.path,
    f.errno,
    f.calls,
    f.time_ns,
    round(100.0 * f.calls / t.all_calls, 2) AS share
FROM failed AS f
JOIN totals AS t ON t.call = f.call
ORDER BY f.calls DESC, f.call, f.errno, f.path
