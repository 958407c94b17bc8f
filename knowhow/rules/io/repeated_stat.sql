-- The same path asked about again and again
-- A program asks for the attributes of the same existing path over and over, although each answer is the same.
-- needs:  calls, object_use, processes, totals
-- uses:   paths
-- param:  min_calls BIGINT = 1000 > 0    Minimum number of such calls on a path by a process.
-- param:  min_share DOUBLE = 0.1         Minimum share of the elapsed time that they take.
-- param:  min_part DOUBLE = 0.5          Without durations: minimum share of all calls.
-- param:  min_of_path DOUBLE = 0.8      Minimum share of all calls on the path: with other work on it in between, an answer may change.
-- column: subject VARCHAR       The path.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Number of the calls.
-- column: limit_value DOUBLE    Threshold: reported from this value on.
-- column: cost_ns BIGINT        Time in these calls [ns].
-- column: gain_ns BIGINT        Potential saving: all calls but one [ns].
-- column: certainty VARCHAR     medium; low where the log has no durations.
-- column: cost_calls BIGINT     Calls that this cost is the time of.
-- column: explained_by VARCHAR  Rules whose findings explain this one.
-- column: variant VARCHAR       timed or counted.
-- column: file VARCHAR          The path.
-- column: process INTEGER       Process id.
-- column: asked BIGINT          Number of the calls.
-- column: part DOUBLE           Share of all calls of the recording [%].
-- column: call VARCHAR          The call that is made most.
-- says: finding.timed en    {asked:call} ask about this path ({call}), and none fails: {cost_ns}. One answer, kept for a moment, would do.
-- says: finding.timed ja    このパスへの問い合わせ（{call}）が {asked} 回あり、失敗はありません。{cost_ns} かかっています。1 回の結果をしばらく使い回せば済みます。
-- says: finding.counted en  {asked:call}, {part} of all, ask about this path ({call}), and none fails. The log does not say how long they take.
-- says: finding.counted ja  全呼び出しの {part} にあたる {asked} 回が、このパスへの問い合わせ（{call}）で、失敗はありません。所要時間はログからわかりません。
-- says: ok en               No path is asked about again and again.
-- says: ok ja               同じパスへの問い合わせの繰り返しはありません。
-- says: unknown en          The recording contains no system calls.
-- says: unknown ja          システムコールが記録にありません。
-- at_least: calls min_calls
-- evidence: io/files --file {file}
-- tags:   calls, metadata, files
WITH asked AS (
    SELECT c.path_id, c.process_id, c.call, count(*) AS calls, sum(c.dur_ns) AS ns, max(c.task_id) AS task_id
    FROM calls AS c
    WHERE coalesce(c.class, '') = 'stat' AND c.path_id IS NOT NULL AND c.errno IS NULL AND c.via IS NULL AND coalesce(c.kind, 'file') IN ('file', 'directory', 'unknown')
        AND coalesce(c.action, '') <> 'link_read'
    GROUP BY c.path_id, c.process_id, c.call
), by_path AS (
    SELECT a.path_id, max(a.task_id) AS task_id, sum(a.calls) AS calls, sum(a.ns) AS ns, arg_max(a.call, a.calls) AS call
    FROM asked AS a
    GROUP BY a.path_id, a.process_id
), on_path AS (
    SELECT o.path_id, sum(o.calls) AS calls, sum(CASE WHEN o.class = 'stat' THEN o.calls ELSE 0 END) AS questions
    FROM object_use AS o
    WHERE o.path_id IS NOT NULL AND o.via IS NULL
    GROUP BY o.path_id
), judged AS (
    SELECT b.*, t.calls AS all_calls, t.has_durations
    FROM by_path AS b
    INNER JOIN on_path AS o ON o.path_id = b.path_id AND o.questions >= $min_of_path * o.calls
    CROSS JOIN totals AS t
    WHERE b.calls >= $min_calls AND CASE WHEN b.ns IS NULL THEN b.calls >= $min_part * t.calls ELSE b.ns >= $min_share * t.elapsed_ns END
)
SELECT
    coalesce(o.path, 'not known') AS subject,
    'finding' AS status,
    CAST(j.calls AS DOUBLE) AS value,
    CAST($min_calls AS DOUBLE) AS limit_value,
    CAST(j.ns AS BIGINT) AS cost_ns,
    CAST(j.ns * (1 - 1e0 / j.calls) AS BIGINT) AS gain_ns,
    CASE WHEN j.ns IS NULL THEN 'low' ELSE 'medium' END AS certainty,
    CAST(j.calls AS BIGINT) AS cost_calls,
    'io/directory_stat' AS explained_by,
    CASE WHEN j.ns IS NULL THEN 'counted' ELSE 'timed' END AS variant,
    o.path AS file,
    p.pid AS process,
    CAST(j.calls AS BIGINT) AS asked,
    round(1e2 * j.calls / j.all_calls, 1) AS part,
    j.call
FROM judged AS j
LEFT JOIN paths AS o ON o.path_id = j.path_id
LEFT JOIN processes AS p ON p.task_id = j.task_id
UNION ALL
SELECT NULL, CASE WHEN t.calls = 0 THEN 'unknown' ELSE 'ok' END, NULL, CAST($min_calls AS DOUBLE), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM totals AS t
WHERE (SELECT count(*) FROM judged) = 0
ORDER BY cost_ns DESC, subject
