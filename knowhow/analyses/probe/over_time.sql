-- Speed over time
-- The rate of each item relative to its median over all probes, by interval: 100 is as usual, 70 is 30 % slower.
-- needs:  probe_rates, recording
-- param:  interval_h DOUBLE = 24.0 > 0   Length of an interval [h].
-- column: day DOUBLE             Start of the interval, in days since the start of the series.
-- column: item VARCHAR           Item and operation; control uses no device.
-- column: of_usual DOUBLE        Median rate of the interval, relative to the median of all probes [%].
-- column: per_s DOUBLE           Median rate of the interval [1/s].
-- column: probes BIGINT          Measurements in it.
-- column: load DOUBLE            Average load per CPU.
-- chart:  curves x=day y=of_usual color=item title="Rate, relative to the usual rate" title_ja="いつもの速さに対する割合"
-- tags:   time
WITH parts AS (
    SELECT floor(greatest(r.time_ns - s.started_ns, 0) / 3.6e12 / $interval_h) AS part, r.item, coalesce(r.length_bytes, -1) AS length_key, r.step,
        r.operations_per_s, r.usual_per_s, r.load
    FROM probe_rates AS r
    CROSS JOIN recording AS s
), ranked AS (
    SELECT p.*,
        row_number() OVER (PARTITION BY p.item, p.length_key, p.part ORDER BY p.operations_per_s) AS place,
        count(*) OVER (PARTITION BY p.item, p.length_key, p.part) AS measured
    FROM parts AS p
)
SELECT
    round(k.part * $interval_h / 24, 4) AS day,
    k.item,
    round(1e2 * max(k.operations_per_s) FILTER (WHERE k.place = (k.measured + 1) // 2) / max(k.usual_per_s), 1) AS of_usual,
    max(k.operations_per_s) FILTER (WHERE k.place = (k.measured + 1) // 2) AS per_s,
    count(*) AS probes,
    round(avg(k.load), 2) AS load
FROM ranked AS k
GROUP BY k.part, k.item, k.length_key
ORDER BY k.part, min(k.step), k.item, k.length_key
