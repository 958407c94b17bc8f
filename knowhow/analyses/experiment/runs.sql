-- Runs of an experiment
-- Each run with its block, position and scenario, its measurements, and why it was rejected, if it was.
-- needs:  experiment_runs, experiment_metrics, experiment_verdicts
-- column: run_id BIGINT             Number of the run, from 1.
-- column: case_id BIGINT            The case.
-- column: block BIGINT              The block; 0 and below: the dry run.
-- column: position BIGINT           Position in the block.
-- column: scenario VARCHAR          The scenario.
-- column: kind VARCHAR              measured, dry or explain.
-- column: primary_metric VARCHAR    The metric of the claim.
-- column: primary_value DOUBLE      Its value in this run.
-- column: elapsed_s DOUBLE          Time of the run [s].
-- column: cpu_s DOUBLE              CPU time of all its processes [s].
-- column: run_delay_s DOUBLE        Time its threads waited for a CPU [s].
-- column: device_requests BIGINT    Requests that the devices of the experiment completed.
-- column: rejected BOOLEAN          Whether the run does not count.
-- column: reason VARCHAR            Why [fact].
-- tags:   time
WITH primaries AS (
    SELECT v.case_id, min(v.metric) AS metric
    FROM experiment_verdicts AS v
    WHERE v.is_primary
    GROUP BY v.case_id
), wide AS (
    SELECT m.run_id,
        max(CASE WHEN m.metric = 'elapsed_s' THEN m.value END) AS elapsed_s,
        max(CASE WHEN m.metric = 'cpu_s' THEN m.value END) AS cpu_s,
        max(CASE WHEN m.metric = 'run_delay_s' THEN m.value END) AS run_delay_s,
        sum(CASE WHEN m.metric IN ('device_reads', 'device_writes') THEN m.value END) AS device_requests
    FROM experiment_metrics AS m
    GROUP BY m.run_id
)
SELECT
    CAST(r.run_id AS BIGINT) AS run_id, CAST(r.case_id AS BIGINT) AS case_id, CAST(r.block AS BIGINT) AS block,
    CAST(r.position AS BIGINT) AS position, r.scenario, r.kind,
    p.metric AS primary_metric, m.value AS primary_value, w.elapsed_s, w.cpu_s, w.run_delay_s,
    CAST(w.device_requests AS BIGINT) AS device_requests, r.rejected, r.reason
FROM experiment_runs AS r
LEFT JOIN primaries AS p ON p.case_id = r.case_id
LEFT JOIN experiment_metrics AS m ON m.run_id = r.run_id AND m.metric = p.metric
LEFT JOIN wide AS w ON w.run_id = r.run_id
ORDER BY r.run_id
