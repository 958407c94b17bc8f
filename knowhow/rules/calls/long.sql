-- Few long calls
-- Single calls that take seconds, of a kind that other rules do not look at.
-- needs:  calls, processes, paths, totals
-- param:  min_share DOUBLE = 0.2           Minimum share of the elapsed time that such calls of one thread take.
-- param:  min_call_ns BIGINT = 100000000 > 0  A call that takes less is not long [ns].
-- column: subject VARCHAR       The call.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the elapsed time [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time in these calls, of the thread that spends most in them [ns].
-- column: gain_ns BIGINT        Empty: it depends on why the kernel takes so long [ns].
-- column: certainty VARCHAR     high: the calls were recorded; why they take so long is not known.
-- column: explained_by VARCHAR  Rules whose findings explain this one: they know why.
-- column: variant VARCHAR       random for getrandom, remove for files and directories that are removed, unmount, or call.
-- column: process INTEGER       The process.
-- column: times BIGINT          Number of these calls.
-- column: longest_ns BIGINT     The longest [ns].
-- column: object VARCHAR        The object of the longest, as far as it is known.
-- says: finding.call en    {subject} takes {cost_ns} in {times:call}, {value} of the elapsed time; the longest {longest_ns} ({object}).
-- says: finding.call ja    {subject} が {times} 回で {cost_ns}（経過時間の {value}）かかっています。最長は {longest_ns} で、対象は {object:ja} です。
-- says: finding.random en  {subject} takes {cost_ns} in {times:call}, {value} of the elapsed time: the kernel has no random numbers yet, as after a start of the machine.
-- says: finding.random ja  {subject} が {times} 回で {cost_ns}（経過時間の {value}）かかっています。起動直後などで、カーネルの乱数がまだ用意できていません。
-- says: finding.remove en  {subject} takes {cost_ns} in {times:call}, {value} of the elapsed time; the longest {longest_ns} ({object}): the file system frees what the files occupied.
-- says: finding.remove ja  {subject} が {times} 回で {cost_ns}（経過時間の {value}）かかっています。最長は {longest_ns} で、対象は {object:ja} です。ファイルシステムがファイルの領域を解放しています。
-- says: finding.unmount en {subject} takes {cost_ns} in {times:call}, {value} of the elapsed time; the longest {longest_ns} ({object}): all that was written to the file system goes to the disk first.
-- says: finding.unmount ja {subject} が {times} 回で {cost_ns}（経過時間の {value}）かかっています。最長は {longest_ns} で、対象は {object:ja} です。書き込まれたデータをすべてディスクに書き出してから終わります。
-- says: ok en              No thread spends much of the time in a few long calls.
-- says: ok ja              少数の長い呼び出しに多くの時間を使うスレッドはありません。
-- says: unknown en         The recording contains no system calls with durations.
-- says: unknown ja         所要時間のある呼び出しが記録にありません。
-- at_least: duration min_call_ns
-- evidence: io/outliers --process {process}
-- tags:   time, calls
WITH whole AS (
    SELECT t.started_ns, t.elapsed_ns FROM totals AS t WHERE t.has_durations AND t.calls > 0
), made AS (
    -- A call that has not returned lasts until the end. Calls that wait for others, that move data, or that end the program are judged elsewhere.
    SELECT c.task_id, c.call, c.action, c.path_id, coalesce(c.dur_ns, w.started_ns + w.elapsed_ns - c.ts_ns) AS ns
    FROM calls AS c
    CROSS JOIN whole AS w
    WHERE c.class NOT IN ('wait', 'lock', 'time', 'signal', 'socket', 'read', 'write', 'copy', 'sync')
        AND coalesce(c.kind, '') NOT IN ('pipe', 'socket', 'anonymous', 'device')
        AND coalesce(c.action, '') NOT IN ('child_wait', 'fork', 'exit', 'trace')
        AND (c.dur_ns IS NOT NULL OR (c.result IS NULL AND c.errno IS NULL))
        AND coalesce(c.dur_ns, w.started_ns + w.elapsed_ns - c.ts_ns) >= $min_call_ns
), by_task AS (
    SELECT m.task_id, m.call, min(m.action) AS action, count(*) AS times, sum(m.ns) AS ns, max(m.ns) AS longest_ns, arg_max(m.path_id, m.ns) AS path_id
    FROM made AS m
    GROUP BY m.task_id, m.call
), by_call AS (
    SELECT b.call, min(b.action) AS action, arg_max(b.task_id, b.ns) AS task_id, max(b.ns) AS ns, arg_max(b.times, b.ns) AS times, arg_max(b.longest_ns, b.ns) AS longest_ns,
        arg_max(b.path_id, b.ns) AS path_id
    FROM by_task AS b
    GROUP BY b.call
), judged AS (
    SELECT b.*, w.elapsed_ns, CASE WHEN b.action = 'random' THEN 'random' WHEN b.action = 'unmount' THEN 'unmount'
        WHEN b.action = 'remove' THEN 'remove' ELSE 'call' END AS variant
    FROM by_call AS b
    CROSS JOIN whole AS w
    WHERE b.ns >= $min_share * w.elapsed_ns
)
SELECT
    j.call AS subject,
    'finding' AS status,
    round(1e2 * j.ns / j.elapsed_ns, 1) AS value,
    round(1e2 * $min_share, 1) AS limit_value,
    CAST(j.ns AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    'high' AS certainty,
    'io/metadata_cost,io/failed_lookups,io/directory_stat,io/flush_on_close,memory/new_memory,locks/file_locks' AS explained_by,
    j.variant,
    p.pid AS process,
    j.times,
    CAST(j.longest_ns AS BIGINT) AS longest_ns,
    coalesce(o.path, 'not known') AS object
FROM judged AS j
INNER JOIN processes AS p ON p.task_id = j.task_id
LEFT JOIN paths AS o ON o.path_id = j.path_id
UNION ALL
SELECT NULL, CASE WHEN (SELECT count(*) FROM whole) = 0 THEN 'unknown' ELSE 'ok' END, NULL, round(1e2 * $min_share, 1), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
WHERE (SELECT count(*) FROM judged) = 0
ORDER BY cost_ns DESC, subject
