-- Speed over time
-- The rate of each item against its own median over all probes, by intervals: 100 is as usual, 70 is 30 % slower.
-- needs:  probe_results, recording
-- param:  interval_h DOUBLE = 24.0 > 0   Length of an interval [h].
-- column: day DOUBLE             Start of the interval, in days since the start of the series.
-- column: item VARCHAR           Item and operation; control touches no device.
-- column: of_usual DOUBLE        Median rate of the interval, of the median of all probes [%].
-- column: per_s DOUBLE           Median rate of the interval [1/s].
-- column: probes BIGINT          Measurements in it.
-- column: load DOUBLE            Load average by CPU, on average.
-- chart:  curves x=day y=of_usual color=item title="Rate, of the usual one" title_ja="いつもの速さに対する割合"
-- tags:   time
WITH named AS (
    SELECT greatest(r.time_ns - s.started_ns, 0) / 3.6e12 AS hour, r.operations_per_s, r.load, coalesce(r.length_bytes, -1) AS length_bytes,
        CASE WHEN r.item = 'control' THEN r.item ELSE concat(r.item, ' ', r.operation) END AS item, r.step
    FROM probe_results AS r
    CROSS JOIN recording AS s
    WHERE r.status IN ('measured', 'not_known', 'throttled') AND r.operations_per_s > 0
), ranked AS (
    SELECT n.item, n.length_bytes, n.step, n.operations_per_s, n.load, floor(n.hour / $interval_h) AS part,
        row_number() OVER (PARTITION BY n.item, n.length_bytes ORDER BY n.operations_per_s) AS of_all,
        count(*) OVER (PARTITION BY n.item, n.length_bytes) AS count_all,
        row_number() OVER (PARTITION BY n.item, n.length_bytes, floor(n.hour / $interval_h) ORDER BY n.operations_per_s) AS of_part,
        count(*) OVER (PARTITION BY n.item, n.length_bytes, floor(n.hour / $interval_h)) AS count_part
    FROM named AS n
), usual AS (
    SELECT k.item, k.length_bytes, max(k.operations_per_s) AS per_s
    FROM ranked AS k
    WHERE k.of_all = (k.count_all + 1) // 2
    GROUP BY k.item, k.length_bytes
)
SELECT
    round(k.part * $interval_h / 24, 4) AS day,
    k.item,
    round(1e2 * max(k.operations_per_s) FILTER (WHERE k.of_part = (k.count_part + 1) // 2) / max(u.per_s), 1) AS of_usual,
    max(k.operations_per_s) FILTER (WHERE k.of_part = (k.count_part + 1) // 2) AS per_s,
    count(*) AS probes,
    round(avg(k.load), 2) AS load
FROM ranked AS k
JOIN usual AS u ON u.item = k.item AND u.length_bytes = k.length_bytes
GROUP BY k.part, k.item, k.length_bytes
ORDER BY k.part, min(k.step), k.item, k.length_bytes
