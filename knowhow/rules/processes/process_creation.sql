-- Many process starts
-- Processes that are started by the hundred and live only for a moment, as from a shell loop.
-- needs:  processes, totals
-- param:  min_starts BIGINT = 50 > 0      Fewer starts are no finding.
-- param:  short_ns BIGINT = 500000000 > 0  A process that lives longer does some work [ns].
-- param:  min_share DOUBLE = 0.1           Least part of the elapsed time.
-- column: subject VARCHAR       The program that is started most.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Short-lived processes.
-- column: limit_value DOUBLE    From which on it is a finding.
-- column: cost_ns BIGINT        Time in which at least one of them lived [ns].
-- column: gain_ns BIGINT        What starting each program once could save at most [ns].
-- column: certainty VARCHAR     high; low where the log has no times.
-- column: starts BIGINT         Short-lived processes.
-- column: programs BIGINT       Programs they ran.
-- column: here BIGINT           How often the subject was started.
-- column: mean_ns BIGINT        Their mean life [ns].
-- column: processes BIGINT      All processes.
-- says: finding en  {starts} processes of {programs} program(s) lived {mean_ns} on average; this program was started {here} times.
-- says: finding ja  {programs} 種のプログラムのプロセス {starts} 個が平均 {mean_ns} で終わっています。このプログラムは {here} 回起動されました。
-- says: ok en       {processes} process(es) looked at: starting them takes no time worth mentioning.
-- says: ok ja       {processes} 個のプロセスを調べました。起動に目立つ時間は使っていません。
-- says: unknown en  The recording holds no calls.
-- says: unknown ja  システムコールが記録にありません。
-- evidence: processes/tree --process {subject}
-- tags:   processes, time
-- was:    processes/many_starts
WITH short AS (
    SELECT coalesce(comm, '?') AS comm, start_ts_ns, coalesce(end_ts_ns, start_ts_ns) AS end_ts_ns
    FROM processes
    WHERE task_id = process_id AND ppid IS NOT NULL AND coalesce(end_ts_ns - start_ts_ns, 0) <= $short_ns
), reached AS (
    SELECT *, max(end_ts_ns) OVER (ORDER BY start_ts_ns, end_ts_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns
    FROM short
), summed AS (
    -- Of pipelines several live at a time, and a subshell waits for its child: time counts once.
    SELECT count(*) AS starts, count(DISTINCT comm) AS programs,
        CAST(sum(greatest(end_ts_ns - greatest(start_ts_ns, coalesce(reached_ns, start_ts_ns)), 0)) AS BIGINT) AS cost_ns,
        CAST(avg(end_ts_ns - start_ts_ns) AS BIGINT) AS mean_ns
    FROM reached
), by_program AS (
    SELECT comm, count(*) AS starts FROM short GROUP BY comm
), found AS (
    SELECT s.*, (SELECT arg_max(comm, starts) FROM by_program) AS comm, (SELECT max(starts) FROM by_program) AS here
    FROM summed AS s
    CROSS JOIN totals AS t
    WHERE s.starts >= $min_starts AND (NOT t.has_durations OR s.cost_ns >= $min_share * t.elapsed_ns)
), state AS (
    SELECT count(*) AS processes FROM processes WHERE task_id = process_id
)
SELECT
    f.comm AS subject,
    CASE WHEN f.comm IS NOT NULL THEN 'finding' WHEN t.calls = 0 THEN 'unknown' ELSE 'ok' END AS status,
    CAST(f.starts AS DOUBLE) AS value,
    CAST($min_starts AS DOUBLE) AS limit_value,
    CASE WHEN t.has_durations THEN f.cost_ns END AS cost_ns,
    CASE WHEN t.has_durations THEN CAST(f.cost_ns * (1 - 1e0 * f.programs / f.starts) AS BIGINT) END AS gain_ns,
    CASE WHEN f.comm IS NULL THEN NULL WHEN t.has_durations THEN 'high' ELSE 'low' END AS certainty,
    f.starts,
    f.programs,
    f.here,
    f.mean_ns,
    s.processes
FROM state AS s
CROSS JOIN totals AS t
LEFT JOIN found AS f ON f.starts > 0
