-- Singular points of a series of probes
-- Probes in which an operation took more than ten times as long as usual, or only a tenth was done: a stall, a device that is reset, a full cache.
-- needs:  probe_results, recording
-- param:  times DOUBLE = 10.0 > 1   So many times as long as usual.
-- column: time_s DOUBLE          When the probe began, since the start of the series [s].
-- column: probe_id INTEGER       Which probe.
-- column: item VARCHAR           Item and operation.
-- column: per_s DOUBLE           Operations in a second [1/s].
-- column: usual_per_s DOUBLE     Their median over all probes [1/s].
-- column: p50_ns BIGINT          Typical latency in this probe [ns].
-- column: usual_p50_ns BIGINT    Its median over all probes [ns].
-- column: times_as_long DOUBLE   How many times as long operations took, by the rate or by the latency, whichever says more.
-- column: load DOUBLE            Load average by CPU.
-- tags:   time
WITH named AS (
    SELECT r.probe_id, r.step, r.time_ns, r.length_bytes, r.load, r.operations_per_s, r.p50_ns,
        CASE WHEN r.item = 'control' THEN r.item ELSE concat(r.item, ' ', r.operation) END AS item
    FROM probe_results AS r
    WHERE r.status IN ('measured', 'not_known', 'throttled') AND r.operations_per_s > 0
), ranked AS (
    SELECT n.item, n.length_bytes, n.operations_per_s, n.p50_ns,
        row_number() OVER (PARTITION BY n.item, n.length_bytes ORDER BY n.operations_per_s) AS by_rate,
        row_number() OVER (PARTITION BY n.item, n.length_bytes ORDER BY n.p50_ns) AS by_p50,
        count(*) OVER (PARTITION BY n.item, n.length_bytes) AS measured
    FROM named AS n
), usual AS (
    SELECT k.item, k.length_bytes,
        max(k.operations_per_s) FILTER (WHERE k.by_rate = (k.measured + 1) // 2) AS per_s,
        max(k.p50_ns) FILTER (WHERE k.by_p50 = (k.measured + 1) // 2) AS p50_ns
    FROM ranked AS k
    GROUP BY k.item, k.length_bytes
)
SELECT
    round((n.time_ns - s.started_ns) / 1e9, 0) AS time_s,
    n.probe_id,
    n.item,
    n.operations_per_s AS per_s,
    u.per_s AS usual_per_s,
    n.p50_ns,
    u.p50_ns AS usual_p50_ns,
    round(greatest(u.per_s / n.operations_per_s, coalesce(1e0 * n.p50_ns / u.p50_ns, 0e0)), 1) AS times_as_long,
    n.load
FROM named AS n
JOIN usual AS u ON u.item = n.item AND coalesce(u.length_bytes, -1) = coalesce(n.length_bytes, -1)
CROSS JOIN recording AS s
WHERE n.operations_per_s * $times < u.per_s OR n.p50_ns > u.p50_ns * $times
ORDER BY n.probe_id, n.step, n.item
