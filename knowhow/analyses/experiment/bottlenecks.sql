-- Bottlenecks of scenarios
-- How the time of each scenario was spent, from runs under the recorder: computing, the kernel, a disk, locks, waiting for a CPU or for something else.
-- needs:  experiment_profiles, experiment_runs, experiment_cases
-- column: workload VARCHAR     The command that was measured.
-- column: scenario VARCHAR     The scenario; A/A is the baseline again.
-- column: case_id INTEGER      The case, as in `experiment_cases`.
-- column: bottleneck VARCHAR   What takes the largest part of the time.
-- column: computing DOUBLE     Share of the time in code of the program.
-- column: kernel DOUBLE        Part on a CPU in system calls, page faults and other work of the kernel.
-- column: disk DOUBLE          Part waiting for a disk.
-- column: locks DOUBLE         Part waiting for locks.
-- column: cpu_wait DOUBLE      Part ready to run, without a CPU.
-- column: other_waits DOUBLE   Part waiting for something else: peers, timers, child processes.
-- column: elapsed_ns DOUBLE    Time along the critical path, per unit of work [ns].
-- column: runs BIGINT          Runs under the recorder.
-- tags:   time
WITH times AS (
    SELECT r.case_id, r.scenario, r.run_id,
        sum(CASE WHEN p.kind = 'total' THEN p.value ELSE 0 END) AS total,
        sum(CASE WHEN p.kind = 'function' THEN p.value ELSE 0 END) AS computing,
        sum(CASE WHEN p.kind = 'lock' OR (p.kind = 'wait' AND p.name LIKE '%lock%') THEN p.value ELSE 0 END) AS locks,
        sum(CASE WHEN p.kind = 'wait' AND starts_with(p.name, 'disk') THEN p.value ELSE 0 END) AS disk,
        sum(CASE WHEN p.kind = 'wait' AND starts_with(p.name, 'for a CPU') THEN p.value ELSE 0 END) AS cpu_wait,
        sum(CASE WHEN p.kind = 'wait' THEN p.value ELSE 0 END) AS waits,
        sum(CASE WHEN p.kind = 'lock' THEN p.value ELSE 0 END) AS named_locks
    FROM experiment_runs AS r
    INNER JOIN experiment_profiles AS p ON p.run_id = r.run_id
    WHERE NOT r.rejected
    GROUP BY r.case_id, r.scenario, r.run_id
), parts AS (
    SELECT t.case_id, t.scenario, count(*) AS runs, avg(t.total) AS elapsed_ns,
        avg(t.computing / t.total) AS computing,
        -- What is left of the path is time on a CPU in the kernel.
        avg((t.total - t.computing - t.waits - t.named_locks) / t.total) AS kernel,
        avg(t.disk / t.total) AS disk,
        avg(t.locks / t.total) AS locks,
        avg(t.cpu_wait / t.total) AS cpu_wait,
        avg((t.waits + t.named_locks - t.disk - t.locks - t.cpu_wait) / t.total) AS other_waits
    FROM times AS t
    WHERE t.total > 0
    GROUP BY t.case_id, t.scenario
)
SELECT
    w.value AS workload, p.scenario, p.case_id,
    CASE greatest(p.computing, p.kernel, p.disk, p.locks, p.cpu_wait, p.other_waits)
        WHEN p.computing THEN 'computing'
        WHEN p.kernel THEN 'kernel'
        WHEN p.disk THEN 'disk'
        WHEN p.locks THEN 'locks'
        WHEN p.cpu_wait THEN 'waiting for a CPU'
        ELSE 'other waits'
    END AS bottleneck,
    round(p.computing, 4) AS computing, round(p.kernel, 4) AS kernel, round(p.disk, 4) AS disk,
    round(p.locks, 4) AS locks, round(p.cpu_wait, 4) AS cpu_wait, round(p.other_waits, 4) AS other_waits,
    p.elapsed_ns, p.runs
FROM parts AS p
LEFT JOIN experiment_cases AS w ON w.case_id = p.case_id AND w.parameter = 'workload'
ORDER BY p.case_id, p.scenario
