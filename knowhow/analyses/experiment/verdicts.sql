-- Verdicts of an experiment
-- Whether each scenario differs from the baseline, by how much, and with what confidence: for the primary metric and the others.
-- needs:  experiment_verdicts, experiment_case_names
-- column: scenario VARCHAR          The scenario compared with the baseline; A/A is the baseline again.
-- column: workload VARCHAR          The command that was measured.
-- column: parameters VARCHAR        Parameters that differ from case to case; NULL if there are none.
-- column: metric VARCHAR            Name of the metric, including its unit.
-- column: is_primary BOOLEAN        Whether the claim is about this metric.
-- column: verdict VARCHAR           changed, equivalent, inconclusive or invalid.
-- column: ratio DOUBLE              Scenario divided by baseline; NULL if some value is zero.
-- column: ratio_low DOUBLE          Lower end of its interval.
-- column: ratio_high DOUBLE         Upper end of its interval.
-- column: p DOUBLE                  p value of the exact signed-rank test over blocks.
-- column: blocks BIGINT             Number of compared blocks.
-- column: smallest_visible DOUBLE   The smallest change, as a share, that this number of blocks shows nine times out of ten.
-- column: baseline_median DOUBLE    Median of the baseline.
-- column: scenario_median DOUBLE    Median of the scenario.
-- column: reason VARCHAR            Why it is invalid or inconclusive, if there is a further reason [fact].
-- tags:   time
SELECT
    v.scenario, v.workload, n.parameters, v.metric, v.is_primary, v.verdict,
    round(v.ratio, 4) AS ratio, round(v.ratio_low, 4) AS ratio_low, round(v.ratio_high, 4) AS ratio_high,
    v.p, CAST(v.blocks AS BIGINT) AS blocks, round(v.smallest_visible, 4) AS smallest_visible,
    v.baseline_median, v.scenario_median, v.reason
FROM experiment_verdicts AS v
LEFT JOIN experiment_case_names AS n ON n.case_id = v.case_id
ORDER BY v.case_id, v.is_primary DESC, v.metric, v.scenario
