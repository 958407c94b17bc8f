-- Kernel locks in an experiment
-- Kernel locks for which the threads of a scenario waited, and the functions that requested them: means of the runs under the recorder.
-- needs:  experiment_runs, experiment_profiles
-- column: case_id BIGINT          The case.
-- column: scenario VARCHAR        The scenario.
-- column: lock VARCHAR            Name of the lock.
-- column: caller VARCHAR          The kernel function or system call that requested it; ? if unknown.
-- column: time_ns DOUBLE          Time that all threads waited, per unit of work; mean of the runs [ns].
-- column: share DOUBLE            Share of the time that the threads of the scenario waited for any lock.
-- column: lock_share DOUBLE       The same for the lock, for all requesting functions together.
-- column: runs BIGINT             Runs under the recorder.
-- tags:   locks, time
WITH explained AS (
    SELECT r.run_id, r.case_id, r.scenario
    FROM experiment_runs AS r
    WHERE r.kind = 'explain' AND NOT r.rejected
), counted AS (
    SELECT e.case_id, e.scenario, count(*) AS runs FROM explained AS e GROUP BY e.case_id, e.scenario
), times AS (
    -- A run that did not wait for a lock has no row of it.
    SELECT e.case_id, e.scenario, regexp_extract(p.name, '^(.*), in ([^,]*)$', 1) AS lock,
        regexp_extract(p.name, '^(.*), in ([^,]*)$', 2) AS caller, sum(p.value) AS ns
    FROM explained AS e
    JOIN experiment_profiles AS p ON p.run_id = e.run_id
    WHERE p.kind = 'lock_waits'
    GROUP BY e.case_id, e.scenario, lock, caller
), shares AS (
    SELECT t.case_id, t.scenario, t.lock, t.caller, t.ns,
        sum(t.ns) OVER (PARTITION BY t.case_id, t.scenario) AS whole,
        sum(t.ns) OVER (PARTITION BY t.case_id, t.scenario, t.lock) AS of_lock
    FROM times AS t
)
SELECT
    CAST(s.case_id AS BIGINT) AS case_id, s.scenario, s.lock, s.caller,
    round(s.ns / c.runs, 1) AS time_ns,
    CASE WHEN s.whole > 0 THEN round(s.ns / s.whole, 4) END AS share,
    CASE WHEN s.whole > 0 THEN round(s.of_lock / s.whole, 4) END AS lock_share,
    CAST(c.runs AS BIGINT) AS runs
FROM shares AS s
JOIN counted AS c ON c.case_id = s.case_id AND c.scenario = s.scenario
ORDER BY s.case_id, s.scenario, s.of_lock DESC, s.lock, s.ns DESC, s.caller
