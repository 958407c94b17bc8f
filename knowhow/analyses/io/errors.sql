-- Errors by call and file
-- Which calls fail, with which error, on which file. `share` compares with all calls of that name, on any file.
-- needs:  object_use
-- column: call VARCHAR     Name of the system call.
-- column: path VARCHAR     File or other object worked on; empty where the log names none.
-- column: errno VARCHAR    Name of the error.
-- column: calls BIGINT     Calls that failed this way.
-- column: time_ns BIGINT   Time in these calls [ns].
-- column: share DOUBLE     Their share of all calls of this name [%].
-- chart:  bars x=path y=calls color=errno title="Failed calls per file" title_ja="ファイルごとの失敗回数"
-- tags:   errors, files, calls
WITH totals AS (
    SELECT o.call, sum(o.calls) AS all_calls
    FROM object_use AS o
    GROUP BY o.call
), failed AS (
    SELECT o.call, o.path, o.errno, CAST(sum(o.calls) AS BIGINT) AS calls, CAST(sum(o.time_ns) AS BIGINT) AS time_ns
    FROM object_use AS o
    WHERE o.errno IS NOT NULL
    GROUP BY o.call, o.path, o.errno
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
