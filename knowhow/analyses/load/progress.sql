-- Progress of a load
-- What all processes of each item did over time: shows stalls, full caches, and processes that end early or start late.
-- needs:  load_results, load_intervals, recording
-- param:  item VARCHAR = ''            Only this item, such as transfer or log; empty: all.
-- param:  operation VARCHAR = ''       Only this operation, such as write; empty: all.
-- param:  interval_s DOUBLE = 0.1 > 0  Length of an interval [s]; steps of 0.1 s were recorded.
-- column: from_s DOUBLE            Start of the interval, since the start of the recording [s].
-- column: until_s DOUBLE           End of the interval [s].
-- column: item VARCHAR             What was measured.
-- column: operation VARCHAR        What the processes did.
-- column: result_id INTEGER        The measurement, a key of `load_results`.
-- column: bytes_per_s DOUBLE       Rate of all processes in it; empty if no data is transferred [B/s].
-- column: operations_per_s DOUBLE  Operations of all processes per second [1/s].
-- column: workers BIGINT           Processes that ended an operation in it.
-- chart:  lines x=from_s x2=until_s y=bytes_per_s color=item gaps=break title="Data over time" title_ja="転送速度の推移"
-- chart:  lines x=from_s x2=until_s y=operations_per_s color=item gaps=break y_scale=log title="Operations over time" title_ja="操作の推移"
-- tags:   time, bytes, disk
WITH parts AS (
    SELECT r.result_id, r.item, r.operation, i.worker, i.bytes, i.operations,
        floor((i.ts_ns - s.started_ns) / 1e9 / $interval_s + 1e-6) AS step
    FROM load_results AS r
    JOIN load_intervals AS i ON i.result_id = r.result_id
    CROSS JOIN recording AS s
    WHERE ($item = '' OR r.item = $item) AND ($operation = '' OR r.operation = $operation) AND i.operations > 0
)
SELECT
    round(p.step * $interval_s, 6) AS from_s,
    round((p.step + 1) * $interval_s, 6) AS until_s,
    p.item,
    p.operation,
    p.result_id,
    CASE WHEN sum(p.bytes) > 0 THEN sum(p.bytes) / $interval_s END AS bytes_per_s,
    sum(p.operations) / $interval_s AS operations_per_s,
    count(DISTINCT p.worker) AS workers
FROM parts AS p
GROUP BY p.step, p.item, p.operation, p.result_id
ORDER BY p.step, p.result_id
