-- Metadata load of a job
-- A job that mostly makes metadata calls on files, at a high rate.
-- needs:  ended_jobs
-- param:  job VARCHAR = ''                 Only this job; empty: all.
-- param:  min_operations BIGINT = 100000 > 0    A job with fewer metadata operations is not judged.
-- param:  min_part DOUBLE = 0.5                 Minimum share of its calls on files that are metadata operations.
-- param:  min_per_s DOUBLE = 1000.0             Minimum number of metadata operations per second, of the whole job.
-- column: subject VARCHAR       The job.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Metadata operations per second, of the whole job.
-- column: limit_value DOUBLE    Threshold: reported from this value on.
-- column: cost_ns BIGINT        Not known: threads of a job wait at the same time [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     medium; low where agents did not count all of it.
-- column: user VARCHAR          User of the job.
-- column: metadata BIGINT       Metadata operations.
-- column: part DOUBLE           Share of its calls on files [%].
-- column: opens BIGINT          Of them, opens.
-- column: stats BIGINT          Of them, calls that ask for attributes.
-- column: nodes BIGINT          Nodes on which it ran.
-- says: finding en  Job {subject} of {user}: {metadata:metadata operation}, {value} per second and {part} of its file operations, including {opens:open} and {stats:stat call}.
-- says: finding ja  {user} のジョブ {subject}: メタデータ操作 {metadata} 回（毎秒 {value} 回、ファイルの呼び出しの {part}）、うち open {opens} 回、stat {stats} 回。
-- says: ok en  The job with the most metadata operations, {subject}, makes {value} per second.
-- says: ok ja  メタデータ操作が最も多いジョブ {subject} は毎秒 {value} 回です。
-- says: unknown en  No finished job made enough metadata operations to judge.
-- says: unknown ja  メタデータ操作の多いジョブで終了したものがありません。
-- evidence: jobs/files -p job={subject}
-- tags:   jobs, time
WITH judged AS (
    SELECT
        j.*,
        round(1e9 * j.metadata_operations / j.wall_ns, 1) AS per_s,
        round(1e2 * j.metadata_operations / j.operations, 2) AS part
    FROM ended_jobs AS j
    WHERE j.job_id IS NOT NULL
        AND ($job = '' OR j.job_id = $job)
        AND j.metadata_operations >= $min_operations AND j.wall_ns > 0
), ranked AS (
    SELECT
        d.*,
        d.per_s >= $min_per_s AND d.part >= 100 * $min_part AS is_found,
        row_number() OVER (ORDER BY CASE WHEN d.per_s >= $min_per_s AND d.part >= 100 * $min_part THEN 0 ELSE 1 END, d.metadata_operations DESC, d.job_id) AS place
    FROM judged AS d
), state AS (
    SELECT count(*) AS jobs FROM ranked
)

SELECT
    j.job_id AS subject,
    CASE WHEN j.job_id IS NULL THEN 'unknown' WHEN j.is_found THEN 'finding' ELSE 'ok' END AS status,
    CAST(j.per_s AS DOUBLE) AS value,
    CAST($min_per_s AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN j.is_found THEN CASE WHEN j.is_whole THEN 'medium' ELSE 'low' END END AS certainty,
    j."user",
    j.metadata_operations AS metadata,
    j.part,
    j.opens,
    j.stats,
    j.nodes
FROM state AS s
LEFT JOIN ranked AS j ON s.jobs > 0 AND (j.is_found OR j.place = 1)
ORDER BY j.place
