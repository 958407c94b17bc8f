-- Operation latency of a load
-- Distribution of the latency of the operations of an item, in power-of-two classes.
-- needs:  load_results, load_latencies
-- param:  item VARCHAR = 'log'      Only this item.
-- param:  operation VARCHAR = ''    Only this operation; empty: all.
-- column: measurement VARCHAR       Operation, bytes of a request, how, processes.
-- column: from_ns BIGINT            Shortest latency of the class [ns].
-- column: to_ns BIGINT              Longest latency of the class [ns].
-- column: operations BIGINT         Operations in this class.
-- column: share DOUBLE              Share of the operations of this measurement.
-- chart:  classes x=to_ns y=operations color=measurement title="Operations by latency" title_ja="遅延ごとの操作数"
-- match:  measurement, from_ns
-- sums:   operations, share
-- tags:   time, disk
WITH classed AS (
    SELECT r.result_id,
        concat(r.operation, coalesce(concat(' ', CAST(r.length_bytes AS VARCHAR), ' B'), ''), CASE WHEN r.direct THEN ' direct' ELSE '' END,
            CASE WHEN coalesce(r.sync, 'end') = 'end' THEN '' ELSE concat(' ', r.sync) END, ', ', CAST(r.processes AS VARCHAR)) AS measurement,
        CAST(floor(log2(greatest(l.high_ns, 1))) AS BIGINT) AS power, l.operations
    FROM load_results AS r
    JOIN load_latencies AS l ON l.result_id = r.result_id
    WHERE r.item = $item AND ($operation = '' OR r.operation = $operation)
), whole AS (
    SELECT c.result_id, sum(c.operations) AS operations
    FROM classed AS c
    GROUP BY c.result_id
)
SELECT
    c.measurement,
    CAST(power(2, c.power) AS BIGINT) AS from_ns,
    CAST(power(2, c.power + 1) - 1 AS BIGINT) AS to_ns,
    CAST(sum(c.operations) AS BIGINT) AS operations,
    round(sum(c.operations) / max(w.operations), 6) AS share
FROM classed AS c
JOIN whole AS w ON w.result_id = c.result_id
GROUP BY c.result_id, c.measurement, c.power
ORDER BY c.result_id, c.power
