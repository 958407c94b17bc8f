-- Incomplete log
-- What the log lacks, so that other rules may miss something: lines not understood, lost events, no durations, I/O without system calls.
-- needs:  recording, captures, import_issues, totals
-- column: subject VARCHAR       What is missing.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          How much is there, or is missing.
-- column: limit_value DOUBLE    How much there should be.
-- column: cost_ns BIGINT        Not a matter of time: NULL [ns].
-- column: gain_ns BIGINT        Nothing: it is something to know [ns].
-- column: certainty VARCHAR     high.
-- column: variant VARCHAR       lines, lost, cut, durations, hidden or halves.
-- column: missing BIGINT        Lines, events or calls that are missing.
-- column: total BIGINT          Of how many.
-- column: line BIGINT           First line that shows it.
-- says: finding.lines en      {missing} of {total:line} could not be parsed; the first is line {line}.
-- says: finding.lines ja      {total} 行のうち {missing} 行を解釈できませんでした（最初は {line} 行目）。
-- says: finding.lost en       The recorder lost {missing:event}.
-- says: finding.lost ja       レコーダーが {missing} 個のイベントを取りこぼしました。
-- says: finding.cut en        The recording stops before the end of the program.
-- says: finding.cut ja        プログラムの終わりまで記録されていません。
-- says: finding.durations en  The log has no durations: rules can only count calls.
-- says: finding.durations ja  ログに所要時間がありません。呼び出しの回数しか調べられません。
-- says: finding.hidden en     io_uring was set up {missing:time} (first at line {line}). Its I/O makes no system calls and is not in the log.
-- says: finding.hidden ja     io_uring が {missing} 回準備されています（最初は {line} 行目）。io_uring の入出力はシステムコールを使わないため、ログにありません。
-- says: finding.halves en     The log contains only the start or the end of {missing:call}, first at line {line}.
-- says: finding.halves ja     {missing} 回の呼び出しは、開始か終了の片方しかログにありません（最初は {line} 行目）。
-- says: ok en                 {total:line} {total?was|were} parsed; nothing is known to be missing.
-- says: ok ja                 {total} 行すべてを解釈しました。欠落は見つかっていません。
-- says: unknown en            The recording contains no system calls.
-- says: unknown ja            システムコールが記録にありません。
-- tags:   errors
WITH seen AS (
    SELECT sum(total) AS total, sum(understood) AS understood, sum(lost) AS lost, max(CASE WHEN complete THEN 0 ELSE 1 END) AS cut
    FROM captures WHERE about = 'calls'
),
gaps AS (
    SELECT 'lines' AS variant, s.total - s.understood AS missing, s.total AS total,
        (SELECT min(i.line) FROM import_issues AS i WHERE NOT i.understood) AS line
    FROM seen AS s
    WHERE s.understood < s.total
    UNION ALL
    SELECT 'lost' AS variant, s.lost AS missing, NULL AS total, NULL AS line FROM seen AS s WHERE s.lost > 0
    UNION ALL
    SELECT 'cut' AS variant, NULL AS missing, NULL AS total, NULL AS line FROM seen AS s WHERE s.cut = 1
    UNION ALL
    SELECT 'durations' AS variant, NULL AS missing, s.total AS total, NULL AS line FROM recording AS r
    CROSS JOIN seen AS s
    CROSS JOIN totals AS t
    WHERE NOT r.has_durations AND t.calls > 0
    UNION ALL
    SELECT 'hidden' AS variant, count(*) AS missing, NULL AS total, min(line) AS line FROM import_issues
    WHERE issue = 'invisible_io' HAVING count(*) > 0
    UNION ALL
    SELECT 'halves' AS variant, count(*) AS missing, NULL AS total, min(line) AS line FROM import_issues
    WHERE issue IN ('resumed_without_start', 'start_without_end') HAVING count(*) > 0
)
SELECT
    CASE g.variant WHEN 'lines' THEN 'lines' WHEN 'lost' THEN 'events' WHEN 'cut' THEN 'the end' WHEN 'durations' THEN 'durations'
        WHEN 'hidden' THEN 'I/O without calls' WHEN 'halves' THEN 'halves of calls' END AS subject,
    CASE WHEN g.variant IS NOT NULL THEN 'finding' WHEN t.calls = 0 THEN 'unknown' ELSE 'ok' END AS status,
    CAST(coalesce(g.missing, 0) AS DOUBLE) AS value,
    CAST(0 AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CASE WHEN g.variant IS NOT NULL THEN CAST(0 AS BIGINT) END AS gain_ns,
    CASE WHEN g.variant IS NOT NULL THEN 'high' END AS certainty,
    g.variant,
    CAST(g.missing AS BIGINT) AS missing,
    CAST(coalesce(g.total, s.total) AS BIGINT) AS total,
    CAST(g.line AS BIGINT) AS line
FROM seen AS s
CROSS JOIN totals AS t
LEFT JOIN gaps AS g ON g.variant <> ''
