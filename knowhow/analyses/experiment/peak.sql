-- Peaks of an experiment
-- The highest value of the primary metric over all cases, by scenario: at which load, what remains under the largest load, and the speedup over one CPU.
-- needs:  experiment_cases, experiment_runs, experiment_metrics, experiment_verdicts, experiment_case_names
-- param:  all_end VARCHAR = '_all'    Suffix of the names of scenarios with all CPUs.
-- param:  one_end VARCHAR = '_one'    Suffix of the names of scenarios with one CPU.
-- column: scenario VARCHAR        The scenario.
-- column: workload VARCHAR        The command that was measured.
-- column: metric VARCHAR          What is compared.
-- column: peak DOUBLE             The highest of the medians of its cases.
-- column: at VARCHAR              Parameters of the case of the peak; NULL if no parameter differs.
-- column: last DOUBLE             Median of the last case, which has the largest load.
-- column: kept DOUBLE             Share of the peak that remains there.
-- column: one_cpu VARCHAR         The same on one CPU; NULL: there is no such scenario.
-- column: ratio DOUBLE            Peak divided by that on one CPU.
-- column: to_baseline DOUBLE      Peak divided by that of the baseline.
-- column: runs BIGINT             Runs that count, in the case of the peak.
-- tags:   time
WITH primaries AS (
    SELECT v.case_id, min(v.metric) AS metric FROM experiment_verdicts AS v WHERE v.is_primary GROUP BY v.case_id
), whole AS (
    SELECT r.case_id, r.block, r.attempt
    FROM experiment_runs AS r
    WHERE r.kind = 'measured'
    GROUP BY r.case_id, r.block, r.attempt
    HAVING max(CASE WHEN r.rejected THEN 1 ELSE 0 END) = 0
), ranked AS (
    SELECT r.case_id, r.scenario, p.metric, m.value,
        count(*) OVER (PARTITION BY r.case_id, r.scenario) AS n,
        row_number() OVER (PARTITION BY r.case_id, r.scenario ORDER BY m.value) AS place
    FROM experiment_runs AS r
    JOIN whole AS w ON w.case_id = r.case_id AND w.block = r.block AND w.attempt = r.attempt
    JOIN primaries AS p ON p.case_id = r.case_id
    JOIN experiment_metrics AS m ON m.run_id = r.run_id AND m.metric = p.metric
    WHERE r.kind = 'measured' AND m.value IS NOT NULL
), medians AS (
    SELECT r.case_id, r.scenario, c.value AS workload, r.metric, max(r.n) AS runs,
        avg(CASE WHEN r.place IN ((r.n + 1) // 2, r.n // 2 + 1) THEN r.value END) AS median
    FROM ranked AS r
    JOIN experiment_cases AS c ON c.case_id = r.case_id AND c.parameter = 'workload'
    GROUP BY r.case_id, r.scenario, c.value, r.metric
), peaks AS (
    SELECT m.scenario, m.workload, m.metric, max(m.median) AS peak, arg_max(m.case_id, m.median) AS case_id,
        arg_max(m.runs, m.median) AS runs, arg_max(m.median, m.case_id) AS last
    FROM medians AS m
    GROUP BY m.scenario, m.workload, m.metric
), baselines AS (
    SELECT c.case_id, c.value AS scenario FROM experiment_cases AS c WHERE c.parameter = 'baseline'
)
SELECT
    p.scenario, p.workload, p.metric, round(p.peak, 4) AS peak, n.parameters AS at, round(p.last, 4) AS last,
    CASE WHEN p.peak > 0 THEN round(p.last / p.peak, 3) END AS kept,
    o.scenario AS one_cpu,
    CASE WHEN o.peak > 0 THEN round(p.peak / o.peak, 3) END AS ratio,
    CASE WHEN b.peak > 0 THEN round(p.peak / b.peak, 3) END AS to_baseline,
    CAST(p.runs AS BIGINT) AS runs
FROM peaks AS p
LEFT JOIN experiment_case_names AS n ON n.case_id = p.case_id
LEFT JOIN peaks AS o ON o.workload = p.workload AND o.metric = p.metric AND o.scenario LIKE concat('%', $one_end)
    AND concat(substr(o.scenario, 1, length(o.scenario) - length($one_end)), $all_end) = p.scenario
LEFT JOIN baselines AS s ON s.case_id = p.case_id
LEFT JOIN peaks AS b ON b.workload = p.workload AND b.metric = p.metric AND b.scenario = s.scenario
ORDER BY p.workload, p.metric, p.scenario
