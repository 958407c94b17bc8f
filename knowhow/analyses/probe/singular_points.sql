-- Outliers in a series of probes
-- Probes in which an operation took more than ten times as long as usual, or only a tenth was done: a stall, a device reset, a full cache.
-- needs:  probe_rates, recording
-- param:  times DOUBLE = 10.0 > 1   Minimum ratio to the usual time.
-- column: time_s DOUBLE          When the probe began, since the start of the series [s].
-- column: probe_id INTEGER       Number of the probe.
-- column: item VARCHAR           Item and operation.
-- column: per_s DOUBLE           Operations per second [1/s].
-- column: usual_per_s DOUBLE     Their median over all probes [1/s].
-- column: p50_ns BIGINT          Typical latency in this probe [ns].
-- column: usual_p50_ns BIGINT    Its median over all probes [ns].
-- column: times_as_long DOUBLE   How many times as long operations took, by rate or by latency, whichever is larger.
-- column: load DOUBLE            Load average per CPU.
-- tags:   time
SELECT
    round((r.time_ns - s.started_ns) / 1e9, 0) AS time_s,
    r.probe_id,
    r.item,
    r.operations_per_s AS per_s,
    r.usual_per_s,
    r.p50_ns,
    r.usual_p50_ns,
    round(greatest(r.usual_per_s / r.operations_per_s, coalesce(1e0 * r.p50_ns / r.usual_p50_ns, 0e0)), 1) AS times_as_long,
    r.load
FROM probe_rates AS r
CROSS JOIN recording AS s
WHERE r.operations_per_s * $times < r.usual_per_s OR r.p50_ns > r.usual_p50_ns * $times
ORDER BY r.probe_id, r.step, r.item
