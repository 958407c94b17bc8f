-- Causes of a difference
-- Why a scenario differs from the baseline: what its runs did more or less, per unit of work, from runs under the recorder.
-- needs:  experiment_causes, experiment_cases, experiment_case_names
-- column: scenario VARCHAR            The scenario compared with the baseline; A/A is the baseline again.
-- column: workload VARCHAR            The command that was measured.
-- column: parameters VARCHAR          Parameters that differ from case to case; NULL if there are none.
-- column: kind VARCHAR                function, stack, call, fault, kernel, lock or wait (time); calls, requests, transferred (counts); remainder.
-- column: name VARCHAR                The function, call, lock, cause of waiting, or device and operation.
-- column: difference_per_unit DOUBLE  Scenario minus baseline.
-- column: unit VARCHAR                ns, calls, requests or B, per unit of work.
-- column: share DOUBLE                Share of the difference in elapsed time; NULL: it is not a time, or elapsed time does not differ.
-- column: p DOUBLE                    p value of the exact signed-rank test over blocks.
-- column: p_adjusted DOUBLE           The same, adjusted for the number of items.
-- column: blocks BIGINT               Blocks with runs under the recorder.
-- tags:   time
SELECT
    c.scenario, w.value AS workload, n.parameters, c.kind, c.name, c.difference_per_unit, c.unit,
    round(c.share, 4) AS share, c.p, c.p_adjusted, CAST(c.blocks AS BIGINT) AS blocks
FROM experiment_causes AS c
LEFT JOIN experiment_cases AS w ON w.case_id = c.case_id AND w.parameter = 'workload'
LEFT JOIN experiment_case_names AS n ON n.case_id = c.case_id
ORDER BY c.case_id, c.scenario, c.rank
