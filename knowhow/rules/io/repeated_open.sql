-- Files opened again and again
-- A process opens the same file again and again: open, a little work, close, and repeat.
-- Files that many processes open about once each are reported together, and so are files of which none takes much time by itself.
-- needs:  calls, file_use, paths, totals
-- param:  min_opens BIGINT = 100 > 0     Minimum number of opens of a file.
-- param:  min_share DOUBLE = 0.01        Minimum share of the elapsed time.
-- column: subject VARCHAR       Path of the file; of many opened alike, the costliest.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Times it was opened.
-- column: limit_value DOUBLE    Threshold for the Times: reported from this value on.
-- column: cost_ns BIGINT        Time in opening, closing and asking for attributes of the file [ns].
-- column: gain_ns BIGINT        What opening it once could save at most [ns].
-- column: certainty VARCHAR     high where one process does it; medium where many do; low where the log has no durations.
-- column: cost_calls BIGINT     Calls that this cost is the time of.
-- column: file VARCHAR          The file.
-- column: variant VARCHAR       one: few processes, many opens each. several: such files, of which none takes much time by itself. many: a program that is started again and again.
-- column: explained_by VARCHAR  Rules whose findings explain this one.
-- column: opens BIGINT          Times it was opened.
-- column: processes BIGINT      Processes that opened it.
-- column: alike BIGINT          Other files that are opened in the same way, and count with it.
-- column: files BIGINT          Opened files checked.
-- says: finding.one en   Opened {opens:time} by {processes:process}.
-- says: finding.one ja   {processes} 個のプロセスが合わせて {opens} 回開いています。
-- says: finding.several en  Opened {opens:time} by {processes:process}. {alike:other file} {alike?is|are} opened repeatedly as well; the times are totals.
-- says: finding.several ja  {processes} 個のプロセスが合わせて {opens} 回開いています。ほかに {alike} 個のファイルも繰り返し開かれています。時間はすべてのファイルの合計です。
-- says: finding.many en  Opened {opens:time} by {processes:process}, and {alike:other file} likewise: the same program is started again and again.
-- says: finding.many ja  {processes} 個のプロセスが合わせて {opens} 回開きました。ほかに {alike} 個のファイルも同様です。同じプログラムが何度も起動されています。
-- says: ok en            Checked {files:opened file}: the cost of opening them repeatedly is negligible.
-- says: ok ja            開かれた {files} 個のファイルを調べました。繰り返しオープンのコストはわずかです。
-- says: unknown en       The recording contains no system calls.
-- says: unknown ja       システムコールが記録にありません。
-- at_least: calls min_opens
-- evidence: io/files --file {file}
-- tags:   files, calls, metadata
WITH files AS (
    SELECT path_id, coalesce(sum(calls - errors) FILTER (WHERE class = 'open'), 0) AS opens, sum(calls) AS calls,
        CAST(sum(time_ns) AS BIGINT) AS cost_ns,
        max(longest_ns) AS longest_ns
    FROM file_use
    WHERE class IN ('open', 'close', 'stat')
    GROUP BY path_id
), openers AS (
    SELECT c.path_id, count(DISTINCT c.process_id) AS processes
    FROM calls AS c
    JOIN files AS f ON f.path_id = c.path_id
    WHERE c.class = 'open' AND c.errno IS NULL AND f.opens >= $min_opens
    GROUP BY c.path_id
), often AS (
    SELECT CASE WHEN 2 * o.processes > f.opens THEN '' WHEN f.cost_ns < $min_share * t.elapsed_ns THEN '*' ELSE p.path END AS pattern, p.path, f.opens, f.calls, o.processes, f.cost_ns, f.longest_ns,
        coalesce(f.cost_ns, f.opens) AS weight
    FROM files AS f
    JOIN paths AS p ON p.path_id = f.path_id
    JOIN openers AS o ON o.path_id = f.path_id
    CROSS JOIN totals AS t
    WHERE f.opens >= $min_opens AND p.kind IN ('file', 'unknown', 'directory', 'virtual')
), patterns AS (
    SELECT pattern, arg_max(path, weight) AS path, arg_max(opens, weight) AS opens, arg_max(processes, weight) AS processes,
        count(*) - 1 AS alike, CAST(sum(calls) AS BIGINT) AS calls, CAST(sum(cost_ns) AS BIGINT) AS cost_ns,
        -- A single long call is a matter of io/outliers.
        CAST(sum((cost_ns - longest_ns) * (1 - 1e0 / opens)) AS BIGINT) AS gain_ns
    FROM often
    GROUP BY pattern
), found AS (
    SELECT o.*
    FROM patterns AS o
    CROSS JOIN totals AS t
    WHERE coalesce(o.cost_ns >= $min_share * t.elapsed_ns, true)
), state AS (
    SELECT count(*) AS files FROM files WHERE opens > 0
)
SELECT
    f.path AS subject,
    CASE WHEN f.path IS NOT NULL THEN 'finding' WHEN t.calls = 0 THEN 'unknown' ELSE 'ok' END AS status,
    CAST(f.opens AS DOUBLE) AS value,
    CAST($min_opens AS DOUBLE) AS limit_value,
    f.cost_ns,
    f.gain_ns,
    CASE WHEN f.path IS NULL THEN NULL WHEN f.cost_ns IS NULL THEN 'low' WHEN f.pattern = '' THEN 'medium' ELSE 'high' END AS certainty,
    f.calls AS cost_calls,
    f.path AS file,
    CASE WHEN f.pattern = '' THEN 'many' WHEN f.alike > 0 THEN 'several' WHEN f.path IS NOT NULL THEN 'one' END AS variant,
    CASE WHEN f.pattern = '' THEN 'processes/process_creation' ELSE 'io/rereads,io/sync_per_write' END AS explained_by,
    CAST(f.opens AS BIGINT) AS opens,
    f.processes,
    f.alike,
    s.files
FROM state AS s
CROSS JOIN totals AS t
LEFT JOIN found AS f ON f.opens > 0
