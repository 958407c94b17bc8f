-- Validity of an experiment
-- The checks of each case: baseline against itself, order within blocks, drift, rejected runs, and state that was not restored.
-- needs:  experiment_checks
-- column: case_id BIGINT      The case.
-- column: name VARCHAR        a/a, order, drift, rejected, steady, missing or state.
-- column: effect DOUBLE       Its size, as a share of the metric; for rejected, steady and missing: share of the runs.
-- column: p DOUBLE            p value of the signed-rank test; NULL: not tested.
-- column: is_valid BOOLEAN    Whether the case may be compared as far as this check goes.
-- column: note VARCHAR        What was found [fact].
-- tags:   time
SELECT CAST(c.case_id AS BIGINT) AS case_id, c.name, round(c.effect, 5) AS effect, c.p, c.is_valid, c.note
FROM experiment_checks AS c
ORDER BY c.case_id, c.name
