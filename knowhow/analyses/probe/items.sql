-- Items of a series of probes
-- The usual speed of a file system, by item: medians over all probes, and how often it was far from them.
-- needs:  probe_results
-- param:  times DOUBLE = 10.0 > 1   A probe is an outlier if an operation took this many times as long as usual.
-- column: item VARCHAR           Item and operation; control uses no device.
-- column: length_bytes BIGINT    Bytes of each request; empty: none are transferred [B].
-- column: probes BIGINT          Number of measurements; the control item is measured twice in a probe.
-- column: failed BIGINT          Number of failed measurements.
-- column: per_s DOUBLE           Operations per second, median [1/s].
-- column: p50_ns BIGINT          Typical latency of an operation, median of the probes [ns].
-- column: p99_ns BIGINT          Latency of the slowest in a hundred, median of the probes [ns].
-- column: singular BIGINT        Outliers.
-- tags:   time, bytes
WITH named AS (
    SELECT CASE WHEN r.item = 'control' THEN r.item ELSE concat(r.item, ' ', r.operation) END AS item, r.length_bytes, r.step,
        r.operations_per_s, r.p50_ns, r.p99_ns, r.status IN ('measured', 'not_known', 'throttled') AND r.operations_per_s > 0 AS usable
    FROM probe_results AS r
    WHERE r.item <> 'probe'
), ranked AS (
    SELECT n.item, n.length_bytes, n.step, n.operations_per_s, n.p50_ns, n.p99_ns,
        row_number() OVER (PARTITION BY n.item, n.length_bytes ORDER BY n.operations_per_s) AS by_rate,
        row_number() OVER (PARTITION BY n.item, n.length_bytes ORDER BY n.p50_ns) AS by_p50,
        row_number() OVER (PARTITION BY n.item, n.length_bytes ORDER BY n.p99_ns) AS by_p99,
        count(*) OVER (PARTITION BY n.item, n.length_bytes) AS measured
    FROM named AS n
    WHERE n.usable
), usual AS (
    SELECT k.item, k.length_bytes, min(k.step) AS step, count(*) AS measured,
        max(k.operations_per_s) FILTER (WHERE k.by_rate = (k.measured + 1) // 2) AS per_s,
        max(k.p50_ns) FILTER (WHERE k.by_p50 = (k.measured + 1) // 2) AS p50_ns,
        max(k.p99_ns) FILTER (WHERE k.by_p99 = (k.measured + 1) // 2) AS p99_ns
    FROM ranked AS k
    GROUP BY k.item, k.length_bytes
)
SELECT
    n.item,
    n.length_bytes,
    count(*) FILTER (WHERE n.usable) AS probes,
    count(*) FILTER (WHERE NOT n.usable) AS failed,
    round(max(u.per_s), 1) AS per_s,
    max(u.p50_ns) AS p50_ns,
    max(u.p99_ns) AS p99_ns,
    count(*) FILTER (WHERE n.usable AND (n.operations_per_s * $times < u.per_s OR n.p50_ns > u.p50_ns * $times)) AS singular
FROM named AS n
LEFT JOIN usual AS u ON u.item = n.item AND coalesce(u.length_bytes, -1) = coalesce(n.length_bytes, -1)
GROUP BY n.item, n.length_bytes
ORDER BY min(n.step), n.item, n.length_bytes
