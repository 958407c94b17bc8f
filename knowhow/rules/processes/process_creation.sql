-- Many short-lived processes
-- Hundreds of processes are started that live only for a moment, as in a shell loop.
-- needs:  processes, totals
-- uses:   samples, stack_places
-- param:  min_starts BIGINT = 50 > 0      Minimum number of starts.
-- param:  min_same BIGINT = 20 > 0        So often one program is started at least: a build or a set-up starts many different ones, each when it is needed.
-- param:  short_ns BIGINT = 500000000 > 0  A process that lives longer does some work [ns].
-- param:  min_share DOUBLE = 0.1           Minimum share of the elapsed time.
-- param:  much_work DOUBLE = 0.5           Share of their lives from which on they do work of their own, and starting them is the smaller part.
-- param:  least_samples BIGINT = 20 > 0    With fewer samples nothing is said of that.
-- column: subject VARCHAR       The program that is started most.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Short-lived processes.
-- column: limit_value DOUBLE    Threshold: reported from this value on.
-- column: cost_ns BIGINT        Time in which at least one of them lived [ns].
-- column: gain_ns BIGINT        What starting each program once could save at most: of their CPU time, where it is known, what is no work of their own; empty: most of it is [ns].
-- column: certainty VARCHAR     high; low where the log has no times, and where they work.
-- column: cost_calls BIGINT     Calls that this cost is the time of.
-- column: variant VARCHAR       starts, or work: most of their lives they do work of their own.
-- column: often VARCHAR         The programs that are started most, with counts.
-- column: work DOUBLE           Share of their lives that they do work of their own, by samples [%].
-- column: busiest VARCHAR       The program among them that takes most CPU time; where that is not known, the one that lives longest in all.
-- column: starts BIGINT         Short-lived processes.
-- column: programs BIGINT       Programs they ran.
-- column: mean_ns BIGINT        Their mean life [ns].
-- column: processes BIGINT      All processes.
-- says: finding.starts en  {starts:process} of {programs:program} lived {mean_ns} on average. Most frequent: {often}.
-- says: finding.starts ja  {programs} 種のプログラムのプロセス {starts} 個が平均 {mean_ns} で終わっています。起動回数の多いもの: {often}。
-- says: finding.work en    {starts:process} of {programs:program} lived {mean_ns} on average. Most frequent: {often}. They work for {work} of that time, mostly {busiest}: starting them is the smaller part.
-- says: finding.work ja    {programs} 種のプログラムのプロセス {starts} 個が平均 {mean_ns} で終わっています。起動回数の多いもの: {often}。その時間の {work} は各プログラム自身の処理（最も多いのは {busiest}）で、起動にかかる時間はそれより少なくなります。
-- says: ok en       Checked {processes:process}: the cost of starting them is negligible.
-- says: ok ja       {processes} 個のプロセスを調べました。起動のコストはわずかです。
-- says: unknown en  The recording contains no system calls.
-- says: unknown ja  システムコールが記録にありません。
-- at_least: processes min_starts
-- evidence: processes/tree --process {subject}
-- tags:   processes, time
-- was:    processes/many_starts
WITH short AS (
    SELECT task_id, calls, user_ns + system_ns AS cpu_ns, coalesce(comm, '?') AS comm, start_ts_ns, coalesce(end_ts_ns, start_ts_ns) AS end_ts_ns
    FROM processes
    WHERE task_id = process_id AND ppid IS NOT NULL AND coalesce(end_ts_ns - start_ts_ns, 0) <= $short_ns
), reached AS (
    SELECT *, max(end_ts_ns) OVER (ORDER BY start_ts_ns, end_ts_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns
    FROM short
), summed AS (
    -- Of pipelines several live at a time, and a subshell waits for its child: time counts once.
    SELECT count(*) AS starts, count(DISTINCT comm) AS programs,
        CAST(sum(greatest(end_ts_ns - greatest(start_ts_ns, coalesce(reached_ns, start_ts_ns)), 0)) AS BIGINT) AS cost_ns,
        CAST(avg(end_ts_ns - start_ts_ns) AS BIGINT) AS mean_ns, CAST(sum(cpu_ns) AS BIGINT) AS cpu_ns, CAST(sum(calls) AS BIGINT) AS calls
    FROM reached
), by_program AS (
    SELECT comm, count(*) AS starts, coalesce(sum(cpu_ns), sum(end_ts_ns - start_ts_ns)) AS ns, row_number() OVER (ORDER BY count(*) DESC, comm) AS place
    FROM short
    GROUP BY comm
), named AS (
    SELECT concat(max(CASE WHEN place = 1 THEN concat(comm, ' (', CAST(starts AS VARCHAR), ')') END),
        max(CASE WHEN place = 2 THEN concat(', ', comm, ' (', CAST(starts AS VARCHAR), ')') ELSE '' END),
        max(CASE WHEN place = 3 THEN concat(', ', comm, ' (', CAST(starts AS VARCHAR), ')') ELSE '' END)) AS often
    FROM by_program
), places AS (
    SELECT stack_id, min(object) AS object FROM stack_places GROUP BY stack_id
), met AS (
    -- Loading a program is work of the dynamic linker, of page faults and of some calls; interpreters read their own library at each start.
    SELECT count(*) AS samples, avg(CASE WHEN s.in_kernel
            THEN CASE WHEN coalesce(s.class, 'process') IN ('process', 'map', 'memory', 'open', 'stat') THEN 0 ELSE 1 END
            ELSE CASE WHEN regexp_extract(coalesce(p.object, 'ld-'), '(^|/)(ld-|python|perl|ruby|node|bash|dash|sh$|libpython|libperl|libjvm|libnode)') = ''
                THEN 1 ELSE 0 END END) AS work
    FROM samples AS s
    INNER JOIN short AS h ON h.task_id = s.task_id
    LEFT JOIN places AS p ON p.stack_id = s.stack_id
), found AS (
    SELECT s.*, (SELECT comm FROM by_program WHERE place = 1) AS comm, (SELECT arg_max(comm, ns) FROM by_program) AS busiest,
        n.often, m.work, CASE WHEN m.samples >= $least_samples THEN m.work ELSE 0 END AS own, coalesce(m.samples >= $least_samples AND m.work >= $much_work, false) AS works
    FROM summed AS s
    CROSS JOIN totals AS t
    CROSS JOIN named AS n
    CROSS JOIN met AS m
    WHERE s.starts >= $min_starts AND (SELECT max(starts) FROM by_program) >= least($min_same, $min_starts) AND (NOT t.has_durations OR s.cost_ns >= $min_share * t.elapsed_ns)
), state AS (
    SELECT count(*) AS processes FROM processes WHERE task_id = process_id
)
SELECT
    f.comm AS subject,
    CASE WHEN f.comm IS NOT NULL THEN 'finding' WHEN t.calls = 0 THEN 'unknown' ELSE 'ok' END AS status,
    CAST(f.starts AS DOUBLE) AS value,
    CAST($min_starts AS DOUBLE) AS limit_value,
    CASE WHEN t.has_durations THEN f.cost_ns END AS cost_ns,
    CASE WHEN t.has_durations AND NOT f.works THEN CAST(least(f.cost_ns, coalesce(f.cpu_ns, f.cost_ns)) * (1 - 1e0 * f.programs / f.starts) * (1 - f.own) AS BIGINT) END AS gain_ns,
    CASE WHEN f.comm IS NULL THEN NULL WHEN t.has_durations AND NOT f.works THEN 'high' ELSE 'low' END AS certainty,
    f.calls AS cost_calls,
    CASE WHEN f.comm IS NOT NULL THEN CASE WHEN f.works THEN 'work' ELSE 'starts' END END AS variant,
    f.often,
    round(1e2 * f.work, 1) AS work,
    f.busiest,
    f.starts,
    f.programs,
    f.mean_ns,
    s.processes
FROM state AS s
CROSS JOIN totals AS t
LEFT JOIN found AS f ON f.starts > 0
