-- Job waits instead of computing
-- Ratio of user CPU time to real time per computing core: near 0.9 for a job that computes, below 0.1 for one that waits for I/O.
-- needs:  job_times
-- param:  threshold DOUBLE = 0.1 > 0      Jobs below it wait most of the time.
-- param:  threshold_from VARCHAR = 'usual value'  Where the threshold comes from.
-- column: subject VARCHAR         The job, where it has a name.
-- column: status VARCHAR          finding, ok or unknown.
-- column: value DOUBLE            User time / cores that compute / real time [ratio].
-- column: limit_value DOUBLE      Threshold: reported below this value.
-- column: cost_ns BIGINT          Real time in which the cores did not run the job's own code [ns].
-- column: gain_ns BIGINT          Not known: this alone does not tell what it waited for [ns].
-- column: certainty VARCHAR       medium.
-- column: variant VARCHAR         in_kernel, waits (less than half of the time), too_short or many_cores.
-- column: user_s DOUBLE           User CPU time [s].
-- column: system_s DOUBLE         Time that the kernel worked for it [s].
-- column: real_s DOUBLE           Real time [s].
-- column: cores INTEGER           Its cores, where stated.
-- column: assistant_cores INTEGER  Those of them that do not compute.
-- column: computing INTEGER       Those that compute; one where no number was stated.
-- column: source VARCHAR          Where the times are from.
-- column: threshold_from VARCHAR  Where the threshold comes from.
-- says: finding en  User time {user_s} / {computing:core} / real time {real_s} = {value} ({source}); the threshold is {limit_value} ({threshold_from}).
-- says: finding ja  ユーザー時間 {user_s} / {computing} コア / 実時間 {real_s} = {value} ({source})。しきい値は {limit_value} です ({threshold_from})。
-- says: finding.in_kernel en  User time {user_s} / {computing:core} / real time {real_s} = {value} ({source}); the threshold is {limit_value} ({threshold_from}). The kernel used more CPU time for the job than its own code did ({system_s} system time).
-- says: finding.in_kernel ja  ユーザー時間 {user_s} / {computing} コア / 実時間 {real_s} = {value} ({source})。しきい値は {limit_value} です ({threshold_from})。自身のコードよりカーネルの時間のほうが長くなっています (システム時間 {system_s})。
-- says: ok en  User time {user_s} / {computing:core} / real time {real_s} = {value} ({source}); the threshold is {limit_value} ({threshold_from}). The job computes most of the time.
-- says: ok ja  ユーザー時間 {user_s} / {computing} コア / 実時間 {real_s} = {value} ({source})。しきい値は {limit_value} です ({threshold_from})。時間の多くは計算に使われています。
-- says: ok.waits en  User time {user_s} / {computing:core} / real time {real_s} = {value} ({source}); the threshold is {limit_value} ({threshold_from}). That is above the threshold, but for most of the time the job did not run its own code.
-- says: ok.waits ja  ユーザー時間 {user_s} / {computing} コア / 実時間 {real_s} = {value} ({source})。しきい値は {limit_value} です ({threshold_from})。しきい値は超えていますが、時間の多くは自身のコードの実行に使われていません。
-- says: ok.in_kernel en  User time {user_s} / {computing:core} / real time {real_s} = {value} ({source}); the threshold is {limit_value} ({threshold_from}). The kernel used more CPU time for the job than its own code did ({system_s} system time).
-- says: ok.in_kernel ja  ユーザー時間 {user_s} / {computing} コア / 実時間 {real_s} = {value} ({source})。しきい値は {limit_value} です ({threshold_from})。自身のコードよりカーネルの時間のほうが長くなっています (システム時間 {system_s})。
-- says: unknown en  The recording contains no times of a job.
-- says: unknown ja  ジョブの時間が記録にありません。
-- says: unknown.too_short en  The real time is zero, which is too short to measure ({source}). Measure a longer run.
-- says: unknown.too_short ja  実時間が 0 です。短すぎて測れません ({source})。もっと長い実行を測ってください。
-- says: unknown.many_cores en  User time {user_s} / {computing:core} / real time {real_s} = {value} ({source}). A ratio above 1 means that more than one core was used: pass the number of cores with --cores.
-- says: unknown.many_cores ja  ユーザー時間 {user_s} / {computing} コア / 実時間 {real_s} = {value} ({source})。1 を超える比は複数のコアが使われたことを示します。--cores でコア数を与えてください。
-- tags:   processes, time
WITH given AS (
    SELECT job, source, cores, assistant_cores, coalesce(cores, 1) - assistant_cores AS computing, user_ns, system_ns, elapsed_ns
    FROM job_times
), times AS (
    SELECT *, CASE WHEN elapsed_ns > 0 AND computing > 0 THEN 1e0 * user_ns / computing / elapsed_ns END AS ratio
    FROM given
), judged AS (
    SELECT *,
        CASE WHEN ratio IS NULL OR (ratio > 1 AND cores IS NULL) THEN 'unknown'
            WHEN ratio < $threshold THEN 'finding' ELSE 'ok' END AS status,
        CASE WHEN ratio IS NULL THEN 'too_short'
            WHEN ratio > 1 AND cores IS NULL THEN 'many_cores'
            WHEN system_ns > user_ns AND 2e0 * system_ns > elapsed_ns THEN 'in_kernel'
            WHEN ratio >= $threshold AND ratio < 0.5 THEN 'waits' END AS variant
    FROM times
), state AS (
    SELECT count(*) AS jobs FROM job_times
)
SELECT
    t.job AS subject,
    coalesce(t.status, 'unknown') AS status,
    t.ratio AS value,
    CAST($threshold AS DOUBLE) AS limit_value,
    CASE WHEN t.status = 'finding' THEN CAST(t.elapsed_ns - 1e0 * t.user_ns / t.computing AS BIGINT) END AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN t.status = 'finding' THEN 'medium' END AS certainty,
    t.variant,
    t.user_ns / 1e9 AS user_s,
    t.system_ns / 1e9 AS system_s,
    t.elapsed_ns / 1e9 AS real_s,
    t.cores,
    t.assistant_cores,
    t.computing,
    t.source,
    CAST($threshold_from AS VARCHAR) AS threshold_from
FROM state AS s
LEFT JOIN judged AS t ON s.jobs > 0
