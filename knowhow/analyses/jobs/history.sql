-- File system use by user
-- What the jobs of each user did, by day or month, from hourly totals.
-- needs:  job_hours, recording
-- param:  days BIGINT = 1 > 0          Length of a step [days].
-- param:  user VARCHAR = ''            Only this user; empty: all.
-- column: from_s DOUBLE               Start of the step, since the start of the recording [s].
-- column: until_s DOUBLE              End of the interval [s].
-- column: cluster VARCHAR              The cluster.
-- column: user VARCHAR                 User of the jobs.
-- column: jobs BIGINT                  Jobs that were active in it.
-- column: bytes BIGINT                Bytes read and written by calls on files [B].
-- column: operations BIGINT           Calls on files.
-- column: metadata_operations BIGINT  Metadata operations among them.
-- column: io_wait_ns BIGINT           Total time that their threads waited in them [ns].
-- column: cpu_ns BIGINT               Time on CPUs [ns].
-- chart:  lines x=from_s x2=until_s y=bytes color=user gaps=break title="Data transferred, by user" title_ja="利用者別の転送量"
-- tags:   jobs, time, bytes
WITH steps AS (
    SELECT
        h.*,
        (h.hour_ns - r.started_ns) // ($days * 86400000000000) AS step
    FROM job_hours AS h
    CROSS JOIN recording AS r
    WHERE h.job_id IS NOT NULL
        AND h.counter_group IN ('files', 'tasks')
        AND ($user = '' OR h."user" = $user)
)

SELECT
    CAST(s.step * $days AS DOUBLE) * 86400 AS from_s,
    CAST((s.step + 1) * $days AS DOUBLE) * 86400 AS until_s,
    s.cluster,
    s."user",
    count(DISTINCT s.job_id) AS jobs,
    CAST(coalesce(sum(s.bytes), 0) AS BIGINT) AS bytes,
    CAST(coalesce(sum(s.operations), 0) AS BIGINT) AS operations,
    CAST(coalesce(sum(s.metadata_operations), 0) AS BIGINT) AS metadata_operations,
    CAST(coalesce(sum(s.io_wait_ns), 0) AS BIGINT) AS io_wait_ns,
    CAST(coalesce(sum(s.cpu_ns), 0) AS BIGINT) AS cpu_ns
FROM steps AS s
GROUP BY s.step, s.cluster, s."user"
ORDER BY s.step, s.cluster, sum(s.bytes) DESC, s."user"
