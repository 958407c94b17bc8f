-- Daily pattern
-- The rate of each item by hour of the day (UTC): a nightly backup, or the working day, shows as a valley.
-- needs:  probe_rates
-- column: hour BIGINT            Hour of the day, UTC.
-- column: item VARCHAR           Item and operation; control uses no device.
-- column: of_usual DOUBLE        Median rate at that time, relative to the median of all probes [%].
-- column: probes BIGINT          Measurements at that time.
-- chart:  curves x=hour y=of_usual color=item title="Rate by hour of the day (UTC), relative to the usual rate" title_ja="時刻 (UTC) ごとの速さ、いつもに対する割合"
-- tags:   time
WITH parts AS (
    SELECT (r.time_ns // 3600000000000) % 24 AS hour, r.item, coalesce(r.length_bytes, -1) AS length_key, r.step, r.operations_per_s, r.usual_per_s
    FROM probe_rates AS r
), ranked AS (
    SELECT p.*,
        row_number() OVER (PARTITION BY p.item, p.length_key, p.hour ORDER BY p.operations_per_s) AS place,
        count(*) OVER (PARTITION BY p.item, p.length_key, p.hour) AS measured
    FROM parts AS p
)
SELECT
    k.hour,
    k.item,
    round(1e2 * max(k.operations_per_s) FILTER (WHERE k.place = (k.measured + 1) // 2) / max(k.usual_per_s), 1) AS of_usual,
    count(*) AS probes
FROM ranked AS k
GROUP BY k.hour, k.item, k.length_key
ORDER BY k.hour, min(k.step), k.item, k.length_key
