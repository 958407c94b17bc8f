-- Effect of tuning
-- Time, CPU time and savings compared with the baseline, for each scenario and workload: medians of the runs, with interval and verdict.
-- needs:  experiment_cases, experiment_runs, experiment_metrics, experiment_verdicts, experiment_case_names
-- column: scenario VARCHAR            The scenario; the first row of each workload is the baseline, A/A is the baseline again.
-- column: workload VARCHAR            The command that was measured.
-- column: parameters VARCHAR          Parameters that differ from case to case; NULL if there are none.
-- column: elapsed_s DOUBLE            Elapsed time [s].
-- column: system_s DOUBLE             CPU time in the kernel [s].
-- column: user_s DOUBLE               CPU time outside the kernel [s].
-- column: cpu_percent DOUBLE          CPU time as a share of the elapsed time [%]; above 100 if several CPUs were used.
-- column: saved_s DOUBLE              Elapsed time of the baseline minus that of the scenario; below zero if the scenario took longer [s].
-- column: saved_percent DOUBLE        Median of the savings in the blocks [%].
-- column: saved_low_percent DOUBLE    Lower end of its interval [%].
-- column: saved_high_percent DOUBLE   Upper end of its interval [%].
-- column: verdict VARCHAR             Of the elapsed time: changed, equivalent, inconclusive or invalid.
-- column: runs BIGINT                 Runs that count.
-- column: reason VARCHAR              Why the verdict is invalid or inconclusive, if there is a further reason [fact].
-- tags:   time
WITH whole AS (
    SELECT r.case_id, r.block, r.attempt
    FROM experiment_runs AS r
    WHERE r.kind = 'measured'
    GROUP BY r.case_id, r.block, r.attempt
    HAVING max(CASE WHEN r.rejected THEN 1 ELSE 0 END) = 0
), times AS (
    SELECT
        r.run_id, r.case_id, r.scenario,
        max(CASE WHEN m.metric = 'elapsed_s' THEN m.value END) AS elapsed_s,
        max(CASE WHEN m.metric = 'system_s' THEN m.value END) AS system_s,
        max(CASE WHEN m.metric = 'user_s' THEN m.value END) AS user_s
    FROM experiment_runs AS r
    JOIN whole AS w ON w.case_id = r.case_id AND w.block = r.block AND w.attempt = r.attempt
    JOIN experiment_metrics AS m ON m.run_id = r.run_id
    WHERE r.kind = 'measured'
    GROUP BY r.run_id, r.case_id, r.scenario
), ranked AS (
    SELECT
        t.case_id, t.scenario, t.elapsed_s, t.system_s, t.user_s, 1e2 * (t.system_s + t.user_s) / t.elapsed_s AS cpu_percent,
        count(*) OVER (PARTITION BY t.case_id, t.scenario) AS n,
        row_number() OVER (PARTITION BY t.case_id, t.scenario ORDER BY t.elapsed_s) AS elapsed_at,
        row_number() OVER (PARTITION BY t.case_id, t.scenario ORDER BY t.system_s) AS system_at,
        row_number() OVER (PARTITION BY t.case_id, t.scenario ORDER BY t.user_s) AS user_at,
        row_number() OVER (PARTITION BY t.case_id, t.scenario ORDER BY (t.system_s + t.user_s) / t.elapsed_s) AS cpu_at
    FROM times AS t
    WHERE t.elapsed_s > 0
), medians AS (
    SELECT
        r.case_id, r.scenario, max(r.n) AS runs,
        avg(CASE WHEN r.elapsed_at IN ((r.n + 1) // 2, r.n // 2 + 1) THEN r.elapsed_s END) AS elapsed_s,
        avg(CASE WHEN r.system_at IN ((r.n + 1) // 2, r.n // 2 + 1) THEN r.system_s END) AS system_s,
        avg(CASE WHEN r.user_at IN ((r.n + 1) // 2, r.n // 2 + 1) THEN r.user_s END) AS user_s,
        avg(CASE WHEN r.cpu_at IN ((r.n + 1) // 2, r.n // 2 + 1) THEN r.cpu_percent END) AS cpu_percent
    FROM ranked AS r
    GROUP BY r.case_id, r.scenario
)
SELECT
    m.scenario, w.value AS workload, n.parameters,
    round(m.elapsed_s, 4) AS elapsed_s, round(m.system_s, 4) AS system_s, round(m.user_s, 4) AS user_s,
    round(m.cpu_percent, 1) AS cpu_percent,
    round(-v.difference, 4) + 0 AS saved_s,
    round(1e2 * (1 - v.ratio), 2) + 0 AS saved_percent,
    round(1e2 * (1 - v.ratio_high), 2) + 0 AS saved_low_percent,
    round(1e2 * (1 - v.ratio_low), 2) + 0 AS saved_high_percent,
    v.verdict, CAST(m.runs AS BIGINT) AS runs, v.reason
FROM medians AS m
JOIN experiment_cases AS w ON w.case_id = m.case_id AND w.parameter = 'workload'
LEFT JOIN experiment_case_names AS n ON n.case_id = m.case_id
LEFT JOIN experiment_verdicts AS v ON v.case_id = m.case_id AND v.scenario = m.scenario AND v.metric = 'elapsed_s'
ORDER BY m.case_id, v.verdict IS NOT NULL, m.scenario
