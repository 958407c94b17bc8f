-- Job waits for files
-- A job whose threads wait for files longer than they compute.
-- needs:  ended_jobs
-- param:  job VARCHAR = ''                 Only this job; empty: all.
-- param:  min_wait_ns BIGINT = 60000000000 > 0  A job whose threads waited less, together, is not judged [ns].
-- param:  min_part DOUBLE = 0.5                 Minimum share of the time in which its threads worked or waited for files.
-- column: subject VARCHAR       The job.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the time in which its threads worked, waited for a CPU, or waited for files [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Not known: threads of a job wait at the same time [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     medium; low where agents did not count all of it.
-- column: user VARCHAR          User of the job.
-- column: io_wait_ns BIGINT     How long its threads waited for files, together [ns].
-- column: operations BIGINT     Calls on files.
-- column: per_call_ns DOUBLE    Wait of a call, on average [ns].
-- column: bytes BIGINT          Read and written [B].
-- column: nodes BIGINT          Nodes on which it ran.
-- says: finding en  Job {subject} of {user}: its threads waited {io_wait_ns} for files, {value} of the time in which they ran or waited for files: {operations:call} of {per_call_ns}, {bytes} transferred.
-- says: finding ja  {user} のジョブ {subject}: スレッドのファイル待ちは {io_wait_ns}（実行とファイル待ちの時間の {value}）。呼び出し {operations} 回、1 回平均 {per_call_ns}、転送量 {bytes}。
-- says: ok en  The job that waited longest, {subject}, waited {io_wait_ns} for files, {value} of the time in which its threads ran or waited for files.
-- says: ok ja  最も長く待ったジョブ {subject} のファイル待ちは {io_wait_ns}（実行とファイル待ちの時間の {value}）です。
-- says: unknown en  No finished job waited long enough for files to judge.
-- says: unknown ja  ファイルを長く待ったジョブで終了したものがありません。
-- evidence: jobs/files -p job={subject}
-- tags:   jobs, time
WITH judged AS (
    SELECT
        j.*,
        round(1e2 * j.io_wait_ns / j.active_ns, 2) AS part,
        round(1e0 * j.io_wait_ns / j.operations, 1) AS per_call_ns
    FROM ended_jobs AS j
    WHERE j.job_id IS NOT NULL
        AND ($job = '' OR j.job_id = $job)
        AND j.io_wait_ns >= $min_wait_ns AND j.active_ns > 0 AND j.operations > 0
), ranked AS (
    SELECT
        d.*,
        d.part >= 100 * $min_part AS is_found,
        row_number() OVER (ORDER BY CASE WHEN d.part >= 100 * $min_part THEN 0 ELSE 1 END, d.io_wait_ns DESC, d.job_id) AS place
    FROM judged AS d
), state AS (
    SELECT count(*) AS jobs FROM ranked
)

SELECT
    j.job_id AS subject,
    CASE WHEN j.job_id IS NULL THEN 'unknown' WHEN j.is_found THEN 'finding' ELSE 'ok' END AS status,
    CAST(j.part AS DOUBLE) AS value,
    CAST(100 * $min_part AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN j.is_found THEN CASE WHEN j.is_whole THEN 'medium' ELSE 'low' END END AS certainty,
    j."user",
    j.io_wait_ns,
    j.operations,
    j.per_call_ns,
    j.bytes,
    j.nodes
FROM state AS s
LEFT JOIN ranked AS j ON s.jobs > 0 AND (j.is_found OR j.place = 1)
ORDER BY j.place
