-- Many short-lived threads
-- Hundreds of threads are created that live only for a moment, as when each work item gets its own thread.
-- needs:  processes, totals
-- param:  min_starts BIGINT = 500 > 0      Minimum number of threads.
-- param:  short_ns BIGINT = 5000000 > 0    A thread that lives longer does some work [ns].
-- param:  min_share DOUBLE = 0.2           Minimum share of the elapsed time.
-- column: subject VARCHAR       Program and process id that make most of them.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Short-lived threads.
-- column: limit_value DOUBLE    Threshold: reported from this value on.
-- column: cost_ns BIGINT        Time in which at least one of them lived [ns].
-- column: gain_ns BIGINT        Potential saving: their work is in it, too [ns].
-- column: certainty VARCHAR     medium: how much of their lives is work is not known.
-- column: process INTEGER       Process id.
-- column: here BIGINT           How many of them this process makes.
-- column: mean_ns BIGINT        Their mean life [ns].
-- column: threads BIGINT        All threads except the first of each process.
-- says: finding en  {subject} creates {here:thread} that live {mean_ns} on average: creating and ending a thread takes some tens of microseconds, and each end is waited for.
-- says: finding ja  {subject} が平均 {mean_ns} で終わるスレッドを {here} 個作っています。スレッドの作成と終了には数十マイクロ秒かかり、そのたびに終了を待っています。
-- says: ok en       Checked {threads:thread}: few of them are short-lived, or they take little of the time.
-- says: ok ja       {threads} 個のスレッドを調べました。短命なものは少ないか、時間に占める割合がわずかです。
-- says: unknown en  The recording contains no system calls.
-- says: unknown ja  システムコールが記録にありません。
-- at_least: processes min_starts
-- evidence: processes/lifecycle --process {process}
-- tags:   processes, time
WITH short AS (
    SELECT p.process_id, p.start_ts_ns, p.end_ts_ns
    FROM processes AS p
    WHERE p.task_id <> p.process_id AND p.end_ts_ns - p.start_ts_ns <= $short_ns
), reached AS (
    SELECT s.*, max(s.end_ts_ns) OVER (ORDER BY s.start_ts_ns, s.end_ts_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns
    FROM short AS s
), summed AS (
    SELECT count(*) AS starts, CAST(avg(r.end_ts_ns - r.start_ts_ns) AS BIGINT) AS mean_ns,
        CAST(sum(greatest(r.end_ts_ns - greatest(r.start_ts_ns, coalesce(r.reached_ns, r.start_ts_ns)), 0)) AS BIGINT) AS cost_ns
    FROM reached AS r
), by_process AS (
    SELECT s.process_id, count(*) AS starts FROM short AS s GROUP BY s.process_id
), found AS (
    SELECT s.*, (SELECT arg_max(b.process_id, b.starts) FROM by_process AS b) AS process_id, (SELECT max(b.starts) FROM by_process AS b) AS here
    FROM summed AS s
    CROSS JOIN totals AS t
    WHERE s.starts >= $min_starts AND t.has_durations AND s.cost_ns >= $min_share * t.elapsed_ns
), state AS (
    SELECT count(*) AS threads FROM processes AS p WHERE p.task_id <> p.process_id
)
SELECT
    CASE WHEN f.here IS NOT NULL THEN concat(coalesce(p.comm, '?'), ' ', CAST(p.pid AS VARCHAR)) END AS subject,
    CASE WHEN f.here IS NOT NULL THEN 'finding' WHEN t.calls = 0 THEN 'unknown' ELSE 'ok' END AS status,
    CAST(f.starts AS DOUBLE) AS value,
    CAST($min_starts AS DOUBLE) AS limit_value,
    f.cost_ns,
    f.cost_ns AS gain_ns,
    CASE WHEN f.here IS NOT NULL THEN 'medium' END AS certainty,
    p.pid AS process,
    f.here,
    f.mean_ns,
    s.threads
FROM state AS s
CROSS JOIN totals AS t
LEFT JOIN found AS f ON f.here > 0
LEFT JOIN processes AS p ON p.task_id = f.process_id
