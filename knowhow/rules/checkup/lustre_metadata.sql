-- More metadata than data on Lustre
-- A Lustre client made more metadata operations than reads and writes.
-- needs:  io_counters
-- param:  many BIGINT = 1000              Minimum number of operations on metadata.
-- column: subject VARCHAR         llite.
-- column: status VARCHAR          finding, ok or unknown.
-- column: value DOUBLE            Operations on metadata.
-- column: limit_value DOUBLE      Threshold: reported above this value: the reads and writes, or `many`.
-- column: cost_ns BIGINT          Not known: counters have no times [ns].
-- column: gain_ns BIGINT          Not known [ns].
-- column: certainty VARCHAR       medium.
-- column: metadata BIGINT         Operations on metadata.
-- column: requests BIGINT         Reads and writes.
-- says: finding en  Lustre: {metadata:metadata operation} and {requests:read or write|reads and writes}.
-- says: finding ja  Lustre: メタデータ操作 {metadata} 回、読み書き {requests} 回。
-- says: ok en       Lustre: {metadata:metadata operation}.
-- says: ok ja       Lustre: メタデータ操作 {metadata} 回。
-- says: unknown en  Lustre: nothing was counted between the two snapshots. Take one before the job and one after it, on the machine that runs the job.
-- says: unknown ja  Lustre: 2 つの記録の間に何も数えられていません。ジョブが動くマシンで、ジョブの前と後に記録してください。
-- tags:   metadata, calls
WITH counted AS (
    SELECT coalesce(sum(CASE WHEN counter IN ('read_bytes', 'write_bytes') THEN operations END), 0) AS requests,
        coalesce(sum(CASE WHEN counter IN ('open', 'close', 'getattr', 'setattr', 'create', 'link', 'unlink', 'symlink', 'mkdir', 'rmdir',
            'mknod', 'rename', 'statfs', 'readdir', 'getxattr', 'setxattr', 'listxattr', 'removexattr', 'inode_permission', 'alloc_inode')
            THEN operations END), 0) AS metadata
    FROM io_counters
    WHERE source = 'llite'
), compared AS (
    SELECT *, CASE WHEN requests > $many THEN requests ELSE $many END AS most
    FROM counted
)
SELECT
    CASE WHEN requests + metadata > 0 THEN 'llite' END AS subject,
    CASE WHEN requests + metadata = 0 THEN 'unknown' WHEN metadata > most THEN 'finding' ELSE 'ok' END AS status,
    CAST(metadata AS DOUBLE) AS value,
    CAST(most AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN metadata > most THEN 'medium' END AS certainty,
    CAST(metadata AS BIGINT) AS metadata,
    CAST(requests AS BIGINT) AS requests
FROM compared
