-- Methods
-- How often methods of the program were called, and their shares of the time and of the CPU time, from the program's own profiler.
-- needs:  experiment_methods, experiment_runs, experiment_cases, experiment_case_names
-- param:  most BIGINT = 15 > 0   Maximum number of methods of each scenario.
-- column: workload VARCHAR       The command that was measured.
-- column: parameters VARCHAR     Parameters that differ from case to case; NULL if there are none.
-- column: scenario VARCHAR       The scenario; A/A is the baseline again.
-- column: method VARCHAR         The method, as written by the profiler.
-- column: calls DOUBLE           How often a run called it; NULL: it was not counted.
-- column: mean_ns DOUBLE         Mean time of a call, including what it called and waited for [ns].
-- column: time_share DOUBLE      Time of all calls, as a share of that of the method with the most time, which contains the others.
-- column: cpu_share DOUBLE       Share of the samples in it or in methods it called.
-- column: own_cpu_share DOUBLE   Share of the samples in its own code.
-- column: samples BIGINT         Samples of the scenario, in all methods.
-- column: runs BIGINT            Runs that were profiled.
-- tags:   time, cpu
WITH used AS (
    SELECT m.run_id, r.case_id, r.scenario, m.method, m.calls, m.time_ns, m.samples, m.samples_within
    FROM experiment_methods AS m
    INNER JOIN experiment_runs AS r ON r.run_id = m.run_id
    WHERE r.kind = 'measured' AND NOT r.rejected
), totals AS (
    SELECT u.case_id, u.scenario, count(DISTINCT u.run_id) AS runs, sum(u.samples) AS samples
    FROM used AS u
    GROUP BY u.case_id, u.scenario
), sums AS (
    SELECT u.case_id, u.scenario, u.method, sum(u.calls) AS calls, sum(u.time_ns) AS time_ns,
        sum(u.samples) AS samples, sum(u.samples_within) AS samples_within
    FROM used AS u
    GROUP BY u.case_id, u.scenario, u.method
), parts AS (
    SELECT s.case_id, s.scenario, s.method, s.calls, s.time_ns, s.samples, s.samples_within,
        max(s.time_ns) OVER (PARTITION BY s.case_id, s.scenario) AS longest_ns,
        row_number() OVER (
            PARTITION BY s.case_id, s.scenario
            ORDER BY coalesce(s.time_ns, 0) DESC, coalesce(s.samples, 0) DESC, coalesce(s.samples_within, 0) DESC, s.method
        ) AS place
    FROM sums AS s
)
SELECT
    w.value AS workload, n.parameters, p.scenario, p.method,
    CASE WHEN p.calls IS NOT NULL THEN round(1e0 * p.calls / t.runs, 1) END AS calls,
    CASE WHEN p.calls > 0 THEN round(1e0 * p.time_ns / p.calls) END AS mean_ns,
    CASE WHEN p.longest_ns > 0 THEN round(1e0 * p.time_ns / p.longest_ns, 4) END AS time_share,
    CASE WHEN t.samples > 0 THEN round(1e0 * p.samples_within / t.samples, 4) END AS cpu_share,
    CASE WHEN t.samples > 0 THEN round(1e0 * p.samples / t.samples, 4) END AS own_cpu_share,
    CAST(t.samples AS BIGINT) AS samples, CAST(t.runs AS BIGINT) AS runs
FROM parts AS p
INNER JOIN totals AS t ON t.case_id = p.case_id AND t.scenario = p.scenario
LEFT JOIN experiment_cases AS w ON w.case_id = p.case_id AND w.parameter = 'workload'
LEFT JOIN experiment_case_names AS n ON n.case_id = p.case_id
WHERE p.place <= $most
ORDER BY p.case_id, p.scenario, p.place
