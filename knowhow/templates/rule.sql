-- {title}
-- Time in calls that wait until data is on disk. Say here, in plain words, what the rule looks for.
-- needs:  calls, totals
-- param:  limit_ns BIGINT = 100000000   Time from which on it is a finding [ns].
-- column: subject VARCHAR       What it is about; here all files together, so there is none.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Calls that wait.
-- column: limit_value DOUBLE    From which on it is a finding; here it is the time that counts.
-- column: cost_ns BIGINT        Time in them [ns].
-- column: gain_ns BIGINT        What could be saved at most [ns].
-- column: certainty VARCHAR     high, medium or low.
-- column: calls BIGINT          Calls checked.
-- says: finding en  {value} calls waited {cost_ns} for the disk.
-- says: finding ja  {value} 回の呼び出しが合計 {cost_ns} ディスクを待ちました。
-- says: ok en       Checked {calls} calls: those that wait for the disk took {cost_ns}.
-- says: ok ja       システムコール {calls} 回を調べました。ディスク待ちは合計 {cost_ns} です。
-- says: unknown en  The log holds no durations of calls.
-- says: unknown ja  ログに呼び出しの所要時間がありません。
-- evidence: io/files --call fsync,fdatasync,sync
-- tags:   time
WITH waits AS (
    SELECT count(*) AS calls, CAST(coalesce(sum(dur_ns), 0) AS BIGINT) AS time_ns
    FROM calls
    WHERE class = 'sync'
), judged AS (
    SELECT w.calls AS waits, w.time_ns, t.calls,
        CASE
            WHEN t.calls = 0 OR NOT t.has_durations THEN 'unknown'
            WHEN w.time_ns > $limit_ns THEN 'finding'
            ELSE 'ok'
        END AS status
    FROM waits AS w
    CROSS JOIN totals AS t
)
SELECT
    CAST(NULL AS VARCHAR) AS subject,
    status,
    CASE WHEN status <> 'unknown' THEN CAST(waits AS DOUBLE) END AS value,
    CAST(NULL AS DOUBLE) AS limit_value,
    CASE WHEN status <> 'unknown' THEN time_ns END AS cost_ns,
    CASE WHEN status = 'finding' THEN time_ns END AS gain_ns,
    CASE WHEN status = 'finding' THEN 'medium' END AS certainty,
    calls
FROM judged
