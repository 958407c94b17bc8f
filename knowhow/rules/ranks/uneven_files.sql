-- One rank waits for files
-- One rank of a parallel job spends much more time on files than the average: the others wait for it at the next barrier.
-- needs:  rank_use, totals
-- param:  min_imbalance DOUBLE = 1.5  Minimum time of that rank on files, over the mean of all ranks.
-- param:  min_share DOUBLE = 0.1      Minimum share of the elapsed time that it spends on files beyond that mean.
-- column: subject VARCHAR       The rank, and the name of its recording.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Time of the rank on files, over the mean of all ranks.
-- column: limit_value DOUBLE    Threshold: reported from this value on.
-- column: cost_ns BIGINT        Time of the rank on files beyond the mean [ns].
-- column: gain_ns BIGINT        The same, at most the elapsed time: what an even division would save if all wait for that rank [ns].
-- column: certainty VARCHAR     medium: whether the others wait for it is not recorded.
-- column: cost_calls BIGINT     Calls on files that the rank makes beyond the mean.
-- column: files_ns BIGINT       Time of the rank on files [ns].
-- column: mean_ns BIGINT        Mean of all ranks [ns].
-- column: ranks BIGINT          Number of ranks.
-- says: finding en  {subject} spends {files_ns} on files, {value} times the mean of {ranks:rank} ({mean_ns}).
-- says: finding ja  {subject} はファイルに {files_ns} かかっています。{ranks} ランクの平均（{mean_ns}）の {value} 倍です。
-- says: ok en       No rank spends much more time on files than the others: at most {value} times the mean of {ranks:rank} ({mean_ns}).
-- says: ok ja       ファイルの時間が目立って長いランクはありません。最大で {ranks} ランクの平均（{mean_ns}）の {value} 倍です。
-- says: unknown en  The recording does not show how long all ranks spent in system calls.
-- says: unknown ja  システムコールの所要時間が記録にないランクがあります。
-- evidence: ranks/shared_files
-- tags:   time, files, processes
WITH known AS (
    SELECT count(*) AS ranks, count(u.files_ns) AS timed, avg(u.files_ns) AS mean_ns, avg(u.files_calls) AS mean_calls
    FROM rank_use AS u
), placed AS (
    SELECT u.rank, u.name, u.files_ns, u.files_calls, row_number() OVER (ORDER BY u.files_ns DESC, u.rank) AS place
    FROM rank_use AS u
    WHERE u.files_ns IS NOT NULL
), compared AS (
    SELECT k.ranks, k.mean_ns, k.mean_calls, p.rank, p.name, p.files_ns, p.files_calls, p.files_ns - k.mean_ns AS excess_ns, t.elapsed_ns,
        k.ranks > 1 AND k.timed = k.ranks AS is_known
    FROM known AS k
    CROSS JOIN totals AS t
    LEFT JOIN placed AS p ON p.place = 1
), judged AS (
    SELECT c.*, CASE
            WHEN NOT c.is_known THEN 'unknown'
            WHEN c.files_ns >= $min_imbalance * c.mean_ns AND c.excess_ns > 0 AND c.excess_ns >= $min_share * c.elapsed_ns THEN 'finding'
            ELSE 'ok' END AS status
    FROM compared AS c
)
SELECT
    CASE WHEN j.status = 'finding' THEN concat('rank ', CAST(j.rank AS VARCHAR), ' (', j.name, ')') END AS subject,
    j.status,
    CASE WHEN j.is_known THEN CASE WHEN j.mean_ns > 0 THEN round(j.files_ns / j.mean_ns, 2) ELSE 1e0 END END AS value,
    $min_imbalance AS limit_value,
    CAST(CASE WHEN j.status = 'finding' THEN j.excess_ns END AS BIGINT) AS cost_ns,
    CAST(CASE WHEN j.status = 'finding' THEN least(j.excess_ns, j.elapsed_ns) END AS BIGINT) AS gain_ns,
    CASE WHEN j.status = 'finding' THEN 'medium' END AS certainty,
    CAST(CASE WHEN j.status = 'finding' THEN greatest(j.files_calls - j.mean_calls, 0) END AS BIGINT) AS cost_calls,
    CAST(CASE WHEN j.is_known THEN j.files_ns END AS BIGINT) AS files_ns,
    CAST(CASE WHEN j.is_known THEN j.mean_ns END AS BIGINT) AS mean_ns,
    j.ranks
FROM judged AS j
