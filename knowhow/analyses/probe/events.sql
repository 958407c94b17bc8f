-- Machine events during a series of probes
-- Reboots, kernel changes, clock changes, gaps, and changes of the file system or its mount options, which may explain a change.
-- needs:  probe_results, probe_targets, recording
-- param:  clock_s DOUBLE = 2.0 > 0   Report a clock that was set by more than this [s].
-- param:  gap DOUBLE = 3.0 > 1       Report a gap of this many times the planned time between probes.
-- column: probe_id INTEGER    The first probe after it.
-- column: time_s DOUBLE       When that probe began, since the start of the series [s].
-- column: event VARCHAR       kernel, boot, clock, gap, target.
-- column: before VARCHAR      Previous value; empty: none.
-- column: after VARCHAR       New value.
-- column: by_s DOUBLE         By how much a clock was set (below 0: back), or how long there was no probe [s].
-- tags:   time
WITH probes AS (
    SELECT r.probe_id, min(r.time_ns) AS time_ns, min(r.since_boot_ns) AS since_boot_ns, min(r.boot_id) AS boot_id, min(r.kernel) AS kernel
    FROM probe_results AS r
    GROUP BY r.probe_id
), pairs AS (
    SELECT p.probe_id, p.time_ns, p.boot_id, p.kernel,
        lag(p.boot_id, 1, p.boot_id) OVER (ORDER BY p.probe_id) AS boot_before,
        lag(p.kernel, 1, p.kernel) OVER (ORDER BY p.probe_id) AS kernel_before,
        p.time_ns - lag(p.time_ns, 1, p.time_ns) OVER (ORDER BY p.probe_id) AS by_clock_ns,
        p.since_boot_ns - lag(p.since_boot_ns, 1, p.since_boot_ns) OVER (ORDER BY p.probe_id) AS by_boot_ns
    FROM probes AS p
), planned AS (
    SELECT max(t.every_ns) AS every_ns FROM probe_targets AS t
), systems AS (
    SELECT t.probe_id, t.time_ns, concat(t.fs_type, ' on ', t.source, ' at ', t.mount_point, ' (', t.options, ')') AS what,
        lag(concat(t.fs_type, ' on ', t.source, ' at ', t.mount_point, ' (', t.options, ')'), 1, '') OVER (ORDER BY t.probe_id, t.time_ns) AS what_before
    FROM probe_targets AS t
), found AS (
    SELECT p.probe_id, p.time_ns, 'kernel' AS event, p.kernel_before AS before, p.kernel AS after, CAST(NULL AS DOUBLE) AS by_s
    FROM pairs AS p
    WHERE p.kernel <> p.kernel_before
    UNION ALL
    SELECT p.probe_id, p.time_ns, 'boot', p.boot_before, p.boot_id, CAST(NULL AS DOUBLE)
    FROM pairs AS p
    WHERE p.boot_id <> p.boot_before
    UNION ALL
    SELECT p.probe_id, p.time_ns, 'clock', CAST(NULL AS VARCHAR), CAST(NULL AS VARCHAR),
        round(CASE WHEN p.boot_id = p.boot_before THEN p.by_clock_ns - p.by_boot_ns ELSE p.by_clock_ns END / 1e9, 0)
    FROM pairs AS p
    WHERE (p.boot_id = p.boot_before AND abs(p.by_clock_ns - p.by_boot_ns) > $clock_s * 1e9) OR (p.boot_id <> p.boot_before AND p.by_clock_ns < 0)
    UNION ALL
    SELECT p.probe_id, p.time_ns, 'gap', CAST(NULL AS VARCHAR), CAST(NULL AS VARCHAR),
        round(CASE WHEN p.boot_id = p.boot_before THEN p.by_boot_ns ELSE p.by_clock_ns END / 1e9, 0)
    FROM pairs AS p
    CROSS JOIN planned AS e
    WHERE CASE WHEN p.boot_id = p.boot_before THEN p.by_boot_ns ELSE p.by_clock_ns END > $gap * e.every_ns
    UNION ALL
    SELECT s.probe_id, s.time_ns, 'target', s.what_before, s.what, CAST(NULL AS DOUBLE)
    FROM systems AS s
    WHERE s.what_before NOT IN ('', s.what)
)
SELECT f.probe_id, round((f.time_ns - r.started_ns) / 1e9, 0) + 0e0 AS time_s, f.event, f.before, f.after, f.by_s
FROM found AS f
CROSS JOIN recording AS r
ORDER BY f.probe_id, f.event
