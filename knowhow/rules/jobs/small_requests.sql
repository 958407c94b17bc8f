-- Small requests of a job
-- A job that transfers its data in small requests and spends time in them.
-- needs:  ended_jobs
-- param:  job VARCHAR = ''                 Only this job; empty: all.
-- param:  limit_bytes BIGINT = 65536 > 0        Calls that transfer less on average are small [B].
-- param:  min_calls BIGINT = 100000 > 0         A job with fewer reads and writes is not judged.
-- param:  min_share DOUBLE = 0.05               Minimum share of the time of its threads that its calls on files take.
-- column: subject VARCHAR       The job.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Bytes of a read or write, on average [B].
-- column: limit_value DOUBLE    Threshold: reported below this value [B].
-- column: cost_ns BIGINT        Not known: threads of a job wait at the same time [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     medium; low where agents did not count all of it.
-- column: user VARCHAR          User of the job.
-- column: calls BIGINT          Reads and writes.
-- column: bytes BIGINT          Read and written [B].
-- column: share DOUBLE          Share of the time of its threads, without other waits, that its calls on files take [%].
-- column: nodes BIGINT          Nodes on which it ran.
-- says: finding en  Job {subject} of {user}: {calls:read or write|reads and writes} transfer {value} on average, {bytes} in total. Its file operations take {share} of the time of its threads.
-- says: finding ja  {user} のジョブ {subject}: 読み書き {calls} 回の平均は {value}（合計 {bytes}）。ファイルの呼び出しがスレッドの時間の {share} を占めます。
-- says: ok en  The job with the most reads and writes, {subject}, transfers {value} per call on average.
-- says: ok ja  読み書きが最も多いジョブ {subject} の平均転送量は {value} です。
-- says: unknown en  No finished job made enough reads and writes to judge.
-- says: unknown ja  読み書きの多いジョブで終了したものがありません。
-- evidence: jobs/files -p job={subject}
-- tags:   jobs, time
WITH judged AS (
    SELECT
        j.*,
        round(1e0 * j.bytes / j.transfers, 1) AS mean_bytes,
        round(CASE WHEN j.active_ns > 0 THEN 1e2 * j.io_time_ns / j.active_ns ELSE 0 END, 2) AS share
    FROM ended_jobs AS j
    WHERE j.job_id IS NOT NULL
        AND ($job = '' OR j.job_id = $job)
        AND j.transfers >= $min_calls
), ranked AS (
    SELECT
        d.*,
        d.mean_bytes < $limit_bytes AND d.share >= 100 * $min_share AS is_found,
        row_number() OVER (ORDER BY CASE WHEN d.mean_bytes < $limit_bytes AND d.share >= 100 * $min_share THEN 0 ELSE 1 END, d.transfers DESC, d.job_id) AS place
    FROM judged AS d
), state AS (
    SELECT count(*) AS jobs FROM ranked
)

SELECT
    j.job_id AS subject,
    CASE WHEN j.job_id IS NULL THEN 'unknown' WHEN j.is_found THEN 'finding' ELSE 'ok' END AS status,
    CAST(j.mean_bytes AS DOUBLE) AS value,
    CAST($limit_bytes AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN j.is_found THEN CASE WHEN j.is_whole THEN 'medium' ELSE 'low' END END AS certainty,
    j."user",
    j.transfers AS calls,
    j.bytes,
    j.share,
    j.nodes
FROM state AS s
LEFT JOIN ranked AS j ON s.jobs > 0 AND (j.is_found OR j.place = 1)
ORDER BY j.place
