-- Who used the file systems
-- What the jobs of each user did in all, by day or month, from the records of jobs that have ended.
-- needs:  job_totals
-- param:  days BIGINT = 1 > 0          Length of a step [days].
-- param:  user VARCHAR = ''            Only this user; empty: all.
-- column: day VARCHAR                 First day of the step, UTC.
-- column: cluster VARCHAR              The cluster.
-- column: user VARCHAR                 Whose jobs.
-- column: jobs BIGINT                  Jobs that ended in it.
-- column: bytes BIGINT                Read and written by calls on files [B].
-- column: operations BIGINT           Calls on files.
-- column: metadata_operations BIGINT  Of them, those about names and attributes.
-- column: io_wait_ns BIGINT           How long their threads waited in them, together [ns].
-- column: cpu_ns BIGINT               Time on CPUs [ns].
-- chart:  bars x=day y=bytes color=user title="Data transferred, by user" title_ja="利用者別の転送量"
-- tags:   jobs, time, bytes
WITH steps AS (
    SELECT
        t.*,
        t.ended_ns // ($days * 86400000000000) AS step
    FROM job_totals AS t
    WHERE $user = '' OR t."user" = $user
)

SELECT
    CAST(DATE '1970-01-01' + CAST(s.step * $days AS INTEGER) AS VARCHAR) AS day,
    s.cluster,
    s."user",
    count(DISTINCT s.job_id) AS jobs,
    CAST(sum(s.bytes) AS BIGINT) AS bytes,
    CAST(sum(s.operations) AS BIGINT) AS operations,
    CAST(sum(s.metadata_operations) AS BIGINT) AS metadata_operations,
    CAST(sum(s.io_wait_ns) AS BIGINT) AS io_wait_ns,
    CAST(sum(s.cpu_ns) AS BIGINT) AS cpu_ns
FROM steps AS s
GROUP BY s.step, s.cluster, s."user"
ORDER BY s.step, s.cluster, sum(s.bytes) DESC, s."user"
