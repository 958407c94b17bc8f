-- Weekly pattern
-- The rate of each item by day of the week (UTC): weekly activity shows as a valley.
-- needs:  probe_rates
-- column: weekday BIGINT         Day of the week, UTC: 1 is Monday, 7 Sunday.
-- column: item VARCHAR           Item and operation; control uses no device.
-- column: of_usual DOUBLE        Median rate at that time, relative to the median of all probes [%].
-- column: probes BIGINT          Measurements at that time.
-- chart:  curves x=weekday y=of_usual color=item title="Rate by day of the week (1: Monday), relative to the usual rate" title_ja="曜日 (1: 月曜) ごとの速さ、いつもに対する割合"
-- tags:   time
WITH parts AS (
    SELECT (r.time_ns // 86400000000000 + 3) % 7 + 1 AS weekday, r.item, coalesce(r.length_bytes, -1) AS length_key, r.step, r.operations_per_s, r.usual_per_s
    FROM probe_rates AS r
), ranked AS (
    SELECT p.*,
        row_number() OVER (PARTITION BY p.item, p.length_key, p.weekday ORDER BY p.operations_per_s) AS place,
        count(*) OVER (PARTITION BY p.item, p.length_key, p.weekday) AS measured
    FROM parts AS p
)
SELECT
    k.weekday,
    k.item,
    round(1e2 * max(k.operations_per_s) FILTER (WHERE k.place = (k.measured + 1) // 2) / max(k.usual_per_s), 1) AS of_usual,
    count(*) AS probes
FROM ranked AS k
GROUP BY k.weekday, k.item, k.length_key
ORDER BY k.weekday, min(k.step), k.item, k.length_key
