-- Small requests to Lustre
-- The average read or write of a Lustre client is small.
-- needs:  io_counters
-- param:  small_bytes BIGINT = 65536 > 0  Requests below it cost more in overhead than in data [B].
-- param:  many BIGINT = 1000              Minimum number of requests.
-- column: subject VARCHAR         llite.
-- column: status VARCHAR          finding, ok or unknown.
-- column: value DOUBLE            Average size of a request [B].
-- column: limit_value DOUBLE      Threshold: reported below this value [B].
-- column: cost_ns BIGINT          Not known: counters have no times [ns].
-- column: gain_ns BIGINT          Not known [ns].
-- column: certainty VARCHAR       medium.
-- column: variant VARCHAR         none: something was counted, but no read and no write.
-- column: requests BIGINT         Reads and writes.
-- column: read_bytes BIGINT       What they read [B].
-- column: written_bytes BIGINT    What they wrote [B].
-- says: finding en  Lustre: {requests} reads and writes of {value} on average ({read_bytes} read, {written_bytes} written).
-- says: finding ja  Lustre: 読み書き {requests} 回、平均 {value} (読み込み {read_bytes}、書き込み {written_bytes})。
-- says: ok en       Lustre: {requests} reads and writes of {value} on average ({read_bytes} read, {written_bytes} written).
-- says: ok ja       Lustre: 読み書き {requests} 回、平均 {value} (読み込み {read_bytes}、書き込み {written_bytes})。
-- says: ok.none en  Lustre: no reads and writes.
-- says: ok.none ja  Lustre: 読み書きなし。
-- says: unknown en  Lustre: nothing was counted between the two snapshots. Take one before the job and one after it, on the machine that runs the job.
-- says: unknown ja  Lustre: 2 つの記録の間に何も数えられていません。ジョブが動くマシンで、ジョブの前と後に記録してください。
-- tags:   size, calls
WITH counted AS (
    SELECT coalesce(sum(operations), 0) AS operations,
        coalesce(sum(CASE WHEN counter IN ('read_bytes', 'write_bytes') THEN operations END), 0) AS requests,
        coalesce(sum(CASE WHEN counter = 'read_bytes' THEN transferred_bytes END), 0) AS read_bytes,
        coalesce(sum(CASE WHEN counter = 'write_bytes' THEN transferred_bytes END), 0) AS written_bytes
    FROM io_counters
    WHERE source = 'llite'
), sized AS (
    SELECT *, CASE WHEN requests > 0 THEN 1e0 * (read_bytes + written_bytes) / requests END AS size_bytes
    FROM counted
)
SELECT
    CASE WHEN operations > 0 THEN 'llite' END AS subject,
    CASE WHEN operations = 0 THEN 'unknown' WHEN requests > $many AND size_bytes < $small_bytes THEN 'finding' ELSE 'ok' END AS status,
    size_bytes AS value,
    CAST($small_bytes AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN requests > $many AND size_bytes < $small_bytes THEN 'medium' END AS certainty,
    CASE WHEN requests = 0 AND operations > 0 THEN 'none' END AS variant,
    CAST(requests AS BIGINT) AS requests,
    CAST(read_bytes AS BIGINT) AS read_bytes,
    CAST(written_bytes AS BIGINT) AS written_bytes
FROM sized
