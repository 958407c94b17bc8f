-- Differential flame graph
-- Where a scenario uses more or less CPU time than the baseline, as complete call stacks, from runs under the recorder.
-- needs:  experiment_stacks, experiment_runs, experiment_cases
-- param:  case_id INTEGER = 1 > 0   The case, as in `experiment_cases`.
-- param:  scenario VARCHAR = ''   The scenario; without one, the first by name that is neither the baseline nor A/A.
-- column: scenario VARCHAR        The scenario.
-- column: stack VARCHAR           Program, then its functions from the outermost to the innermost, then those of the kernel, separated by `;`.
-- column: baseline_ns BIGINT      CPU time in a run of the baseline, per unit of work [ns].
-- column: scenario_ns BIGINT      The same for the scenario [ns].
-- column: mean_ns BIGINT          Their mean: the width of the flame graph [ns].
-- column: difference_ns BIGINT    Scenario minus baseline [ns].
-- chart:  flame_difference x=stack y=mean_ns,difference_ns title="CPU time, mean of both" title_ja="CPU 時間（両者の平均）"
-- tags:   cpu, time
WITH chosen AS (
    SELECT b.value AS baseline, coalesce(
        max(CASE WHEN r.scenario = $scenario THEN r.scenario END),
        min(CASE WHEN r.scenario <> b.value AND r.scenario <> 'A/A' THEN r.scenario END)
    ) AS scenario
    FROM experiment_runs AS r
    INNER JOIN experiment_cases AS b ON b.case_id = r.case_id AND b.parameter = 'baseline'
    WHERE r.case_id = $case_id
    GROUP BY b.value
), runs AS (
    -- Runs of which there are stacks.
    SELECT r.run_id, CASE WHEN r.scenario = c.scenario THEN 1 ELSE 0 END AS is_scenario, c.scenario
    FROM experiment_runs AS r
    CROSS JOIN chosen AS c
    WHERE r.case_id = $case_id AND r.kind = 'explain' AND NOT r.rejected AND r.scenario IN (c.baseline, c.scenario)
), counted AS (
    SELECT sum(r.is_scenario) AS of_scenario, sum(1 - r.is_scenario) AS of_baseline FROM runs AS r
), sums AS (
    SELECT r.scenario, s.stack,
        sum(s.time_ns * (1 - r.is_scenario)) AS baseline,
        sum(s.time_ns * r.is_scenario) AS other
    FROM runs AS r
    INNER JOIN experiment_stacks AS s ON s.run_id = r.run_id
    GROUP BY r.scenario, s.stack
), means AS (
    SELECT s.scenario, s.stack, s.baseline / n.of_baseline AS baseline_ns, s.other / n.of_scenario AS scenario_ns
    FROM sums AS s
    CROSS JOIN counted AS n
    WHERE n.of_baseline > 0 AND n.of_scenario > 0
)
SELECT
    m.scenario, m.stack,
    CAST(round(m.baseline_ns) AS BIGINT) AS baseline_ns, CAST(round(m.scenario_ns) AS BIGINT) AS scenario_ns,
    CAST(round((m.baseline_ns + m.scenario_ns) / 2) AS BIGINT) AS mean_ns,
    CAST(round(m.scenario_ns - m.baseline_ns) AS BIGINT) AS difference_ns
FROM means AS m
ORDER BY mean_ns DESC, m.stack
