-- NFS retransmissions
-- NFS calls that the client sent again because no reply arrived in time.
-- needs:  io_counters
-- param:  most_share DOUBLE = 0.01        Share of the calls that may be sent again.
-- column: subject VARCHAR       nfs.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the calls that was sent again.
-- column: limit_value DOUBLE    Threshold: reported above this value.
-- column: cost_ns BIGINT        Not known: counters have no times [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     medium.
-- column: calls BIGINT          Calls between the two snapshots.
-- column: retrans BIGINT        Those that were sent again.
-- column: share DOUBLE          The same in percent [%].
-- column: metadata DOUBLE       Share of the procedures that are about metadata [%].
-- column: most VARCHAR          The procedures that were called most.
-- says: finding en  NFS: {calls:call}, {retrans} retransmitted ({share}); most frequent: {most}; {metadata} are metadata calls. All programs of the machine are counted.
-- says: finding ja  NFS: 呼び出し {calls} 回、再送 {retrans} 回 ({share})。多いもの: {most}。メタデータの割合 {metadata}。このマシンのすべてのプログラムの合計です。
-- says: ok en       NFS: {calls:call}, {retrans} retransmitted ({share}); most frequent: {most}; {metadata} are metadata calls. All programs of the machine are counted.
-- says: ok ja       NFS: 呼び出し {calls} 回、再送 {retrans} 回 ({share})。多いもの: {most}。メタデータの割合 {metadata}。このマシンのすべてのプログラムの合計です。
-- says: unknown en  NFS: no calls between the two snapshots. Take one before the job and one after it, on the machine that runs the job.
-- says: unknown ja  NFS: 2 つの記録の間に呼び出しがありません。ジョブが動くマシンで、ジョブの前と後に記録してください。
-- tags:   calls, errors
WITH rpc AS (
    SELECT coalesce(sum(CASE WHEN counter = 'rpc calls' THEN operations END), 0) AS calls,
        coalesce(sum(CASE WHEN counter = 'rpc retrans' THEN operations END), 0) AS retrans
    FROM io_counters
    WHERE source = 'nfs'
), procedures AS (
    SELECT counter, operations,
        CASE WHEN counter LIKE '% read' OR counter LIKE '% write' OR counter LIKE '% commit' THEN operations ELSE 0 END AS data,
        row_number() OVER (ORDER BY operations DESC, counter) AS place
    FROM io_counters
    WHERE source = 'nfs' AND counter NOT LIKE 'rpc %' AND operations > 0
), named AS (
    SELECT sum(operations) AS total, sum(data) AS data,
        max(CASE WHEN place = 1 THEN concat(counter, ' ', operations) END) AS first,
        max(CASE WHEN place = 2 THEN concat(counter, ' ', operations) END) AS second,
        max(CASE WHEN place = 3 THEN concat(counter, ' ', operations) END) AS third
    FROM procedures
)
SELECT
    CASE WHEN r.calls > 0 THEN 'nfs' END AS subject,
    CASE WHEN r.calls = 0 THEN 'unknown' WHEN r.retrans > $most_share * r.calls THEN 'finding' ELSE 'ok' END AS status,
    CASE WHEN r.calls > 0 THEN round(1e0 * r.retrans / r.calls, 6) END AS value,
    CAST($most_share AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN r.retrans > $most_share * r.calls THEN 'medium' END AS certainty,
    CAST(r.calls AS BIGINT) AS calls,
    CAST(r.retrans AS BIGINT) AS retrans,
    CASE WHEN r.calls > 0 THEN round(1e2 * r.retrans / r.calls, 2) END AS share,
    CASE WHEN n.total > 0 THEN round(1e2 - 1e2 * n.data / n.total) END AS metadata,
    CASE WHEN n.first IS NULL THEN '-' WHEN n.second IS NULL THEN n.first WHEN n.third IS NULL THEN concat(n.first, ', ', n.second)
        ELSE concat(n.first, ', ', n.second, ', ', n.third) END AS most
FROM rpc AS r
CROSS JOIN named AS n
