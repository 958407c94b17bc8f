-- Daily pattern
-- The rate of each item by hour of the day (UTC): a backup each night, or the working day, shows as a valley.
-- needs:  probe_results
-- column: hour BIGINT            Hour of the day, UTC.
-- column: item VARCHAR           Item and operation; control touches no device.
-- column: of_usual DOUBLE        Median rate at that time, of the median of all probes [%].
-- column: probes BIGINT          Measurements at that time.
-- chart:  curves x=hour y=of_usual color=item title="Rate by hour of the day (UTC), of the usual one" title_ja="時刻 (UTC) ごとの速さ、いつもに対する割合"
-- tags:   time
WITH named AS (
    SELECT (r.time_ns // 3600000000000) % 24 AS hour, r.operations_per_s, coalesce(r.length_bytes, -1) AS length_bytes,
        CASE WHEN r.item = 'control' THEN r.item ELSE concat(r.item, ' ', r.operation) END AS item, r.step
    FROM probe_results AS r
    WHERE r.status IN ('measured', 'not_known', 'throttled') AND r.operations_per_s > 0
), ranked AS (
    SELECT n.item, n.length_bytes, n.step, n.operations_per_s, n.hour,
        row_number() OVER (PARTITION BY n.item, n.length_bytes ORDER BY n.operations_per_s) AS of_all,
        count(*) OVER (PARTITION BY n.item, n.length_bytes) AS count_all,
        row_number() OVER (PARTITION BY n.item, n.length_bytes, n.hour ORDER BY n.operations_per_s) AS of_part,
        count(*) OVER (PARTITION BY n.item, n.length_bytes, n.hour) AS count_part
    FROM named AS n
), usual AS (
    SELECT k.item, k.length_bytes, max(k.operations_per_s) AS per_s
    FROM ranked AS k
    WHERE k.of_all = (k.count_all + 1) // 2
    GROUP BY k.item, k.length_bytes
)
SELECT
    k.hour,
    k.item,
    round(1e2 * max(k.operations_per_s) FILTER (WHERE k.of_part = (k.count_part + 1) // 2) / max(u.per_s), 1) AS of_usual,
    count(*) AS probes
FROM ranked AS k
JOIN usual AS u ON u.item = k.item AND u.length_bytes = k.length_bytes
GROUP BY k.hour, k.item, k.length_bytes
ORDER BY k.hour, min(k.step), k.item, k.length_bytes
