-- One host is the limit
-- One host gets less from the file system than several hosts with the same number of processes: the host is the limit, not the server.
-- needs:  load_results
-- param:  min_gain DOUBLE = 2.0                 How many times as much several hosts must reach for one of them to be the limit.
-- column: subject VARCHAR       What it is about.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          How many times as much all hosts reach.
-- column: limit_value DOUBLE    Threshold: reported from this value on.
-- column: cost_ns BIGINT        Not known: a load is no program [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     medium; low where a measurement was shorter than a second.
-- column: variant VARCHAR       requests where these have a length.
-- column: operation VARCHAR     The operation.
-- column: length_bytes BIGINT   Length of the requests that gain most [B].
-- column: processes INTEGER     Processes, of one host or of all together.
-- column: hosts VARCHAR         Names of all hosts.
-- column: one_rate DOUBLE       Operations per second of one host.
-- column: all_rate DOUBLE       Operations per second of all hosts.
-- says: finding en  {processes:process} on one host reach {one_rate} operations per second, on {hosts} together {all_rate}: the host is the limit, not the server.
-- says: finding ja  {processes} プロセスで、1 ホストでは {one_rate} 回/秒、{hosts} では {all_rate} 回/秒です。限界はサーバーではなくホストにあります。
-- says: finding.requests en  With requests of {length_bytes}, {processes:process} on one host reach {one_rate} operations per second, on {hosts} together {all_rate}: the host is the limit, not the server.
-- says: finding.requests ja  {length_bytes} の要求、{processes} プロセスで、1 ホストでは {one_rate} 回/秒、{hosts} では {all_rate} 回/秒です。限界はサーバーではなくホストにあります。
-- says: ok en  {processes:process} on one host reach {one_rate} operations per second, on {hosts} together {all_rate}.
-- says: ok ja  {processes} プロセスで、1 ホストでは {one_rate} 回/秒、{hosts} では {all_rate} 回/秒です。
-- says: ok.requests en  With requests of {length_bytes}, {processes:process} on one host reach {one_rate} operations per second, on {hosts} together {all_rate}.
-- says: ok.requests ja  {length_bytes} の要求、{processes} プロセスで、1 ホストでは {one_rate} 回/秒、{hosts} では {all_rate} 回/秒です。
-- says: unknown en  No measurement used the same number of processes on one host and on several.
-- says: unknown ja  同じプロセス数で、1 ホストと複数ホストの両方で測ったものがありません。
-- evidence: load/results --operation {operation}
-- tags:   disk, bytes, time
WITH usable AS (
    SELECT item, operation, length_bytes, direct, layout, coalesce(sync, '') AS sync, processes, operations_per_s AS rate,
        1e0 * operations / operations_per_s AS seconds, hosts
    FROM load_results
    WHERE status IN ('measured', 'throttled', 'reported') AND operations_per_s > 0 AND hosts IS NOT NULL AND processes > 1
), compared AS (
    SELECT item, operation, length_bytes, direct, processes, min(seconds) AS seconds, max(CASE WHEN hosts LIKE '%,%' THEN hosts END) AS hosts,
        max(CASE WHEN hosts NOT LIKE '%,%' THEN rate END) AS one_rate,
        max(CASE WHEN hosts LIKE '%,%' THEN rate END) AS all_rate
    FROM usable
    GROUP BY item, operation, length_bytes, direct, layout, sync, processes
), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY item, operation, direct ORDER BY all_rate / one_rate DESC) AS place
    FROM compared
    WHERE one_rate > 0 AND all_rate > 0
), state AS (
    SELECT count(*) AS measured FROM ranked
)
SELECT
    CASE WHEN r.item IS NOT NULL THEN concat(r.item, ' ', r.operation, CASE WHEN r.direct THEN ' direct' ELSE '' END) END AS subject,
    CASE WHEN r.item IS NULL THEN 'unknown' WHEN r.all_rate >= $min_gain * r.one_rate THEN 'finding' ELSE 'ok' END AS status,
    round(r.all_rate / r.one_rate, 2) AS value,
    CAST($min_gain AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN r.all_rate >= $min_gain * r.one_rate THEN CASE WHEN r.seconds < 1 THEN 'low' ELSE 'medium' END END AS certainty,
    CASE WHEN r.length_bytes IS NOT NULL THEN 'requests' END AS variant,
    r.operation,
    r.length_bytes,
    r.processes,
    r.hosts,
    round(r.one_rate, 1) AS one_rate,
    round(r.all_rate, 1) AS all_rate
FROM state AS s
LEFT JOIN ranked AS r ON s.measured > 0 AND r.place = 1
ORDER BY value DESC, subject
