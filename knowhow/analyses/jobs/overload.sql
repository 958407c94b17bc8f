-- Periods of high load
-- When calls on a file system took much longer than usual, over all jobs, and which job did the most at that time.
-- needs:  job_samples, recording
-- uses:   job_files
-- param:  step_s BIGINT = 60 > 0           Length of a step [s].
-- param:  times DOUBLE = 3.0 > 1           A step has high load if calls take this many times as long as usual.
-- param:  least_operations BIGINT = 100    Steps with fewer calls on a file system are left out.
-- param:  target VARCHAR = ''              Only this file system: its mount point; empty: all except those of the kernel itself.
-- param:  begin_ns BIGINT = 0                     Only steps that end after this time, Unix time [ns]; the usual time follows from all steps.
-- param:  end_ns BIGINT = 9223372036854775807     Only steps that begin before this time, Unix time [ns].
-- column: from_s DOUBLE               Start of the step, since the start of the recording [s].
-- column: until_s DOUBLE              End of the interval [s].
-- column: target VARCHAR              The file system.
-- column: operations BIGINT           Calls on it, of all jobs.
-- column: wait_per_call_ns DOUBLE     Average wait of a call [ns].
-- column: usual_ns DOUBLE             The median of all steps [ns].
-- column: times_usual DOUBLE          How many times as long that is.
-- column: job_id VARCHAR              The job that made the most calls then.
-- column: job_share DOUBLE            Its share of the calls.
-- column: job_usual_share DOUBLE      Its share of the calls in all other steps.
-- column: metadata_share DOUBLE       Share of its calls that are metadata operations.
-- column: file VARCHAR                The file that took most of the time of that job; empty: the job has not ended.
-- column: device_busy DOUBLE          Share of the time in which the busiest device of a node had a request; empty: not recorded.
-- chart:  lines x=from_s x2=until_s y=wait_per_call_ns color=target gaps=break title="Wait per call in periods of high load" title_ja="高負荷区間の呼び出し当たり待ち時間"
-- tags:   jobs, time
WITH calls AS (
    SELECT
        (s.ts_ns - r.started_ns - 1) // ($step_s * 1000000000) AS step,
        s.target,
        s.job_id,
        sum(s.operations) AS operations,
        sum(s.metadata_operations) AS metadata,
        sum(s.io_wait_ns) AS wait_ns
    FROM job_samples AS s
    CROSS JOIN recording AS r
    WHERE s.counter_group = 'files'
        AND (s.target = $target OR ($target = '' AND s.target <> '(kernel)'))
    GROUP BY step, s.target, s.job_id
),

steps AS (
    SELECT
        c.step,
        c.target,
        sum(c.operations) AS operations,
        sum(c.wait_ns) / sum(c.operations) AS per_call_ns
    FROM calls AS c
    GROUP BY c.step, c.target
    HAVING sum(c.operations) >= $least_operations
),

ordered AS (
    SELECT
        t.*,
        row_number() OVER (PARTITION BY t.target ORDER BY t.per_call_ns) AS place,
        count(*) OVER (PARTITION BY t.target) AS number
    FROM steps AS t
),

usual AS (
    SELECT
        o.target,
        min(CASE WHEN o.place = (o.number + 1) // 2 THEN o.per_call_ns END) AS usual_ns
    FROM ordered AS o
    GROUP BY o.target
),

jobs AS (
    SELECT
        c.*,
        row_number() OVER (PARTITION BY c.step, c.target ORDER BY c.operations DESC, c.job_id) AS place,
        sum(c.operations) OVER (PARTITION BY c.step, c.target) AS of_all,
        sum(c.operations) OVER (PARTITION BY c.target, c.job_id) AS of_job,
        sum(c.operations) OVER (PARTITION BY c.target) AS of_target
    FROM calls AS c
),

file_sums AS (
    SELECT f.job_id, f.file_path, sum(f.io_time_ns) AS time_ns
    FROM job_files AS f
    GROUP BY f.job_id, f.file_path
),

files AS (
    SELECT f.job_id, f.file_path, row_number() OVER (PARTITION BY f.job_id ORDER BY f.time_ns DESC, f.file_path) AS place
    FROM file_sums AS f
),

devices AS (
    SELECT
        d.step,
        max(d.busy) AS busy
    FROM (
        SELECT
            (s.ts_ns - r.started_ns - 1) // ($step_s * 1000000000) AS step,
            s.node,
            sum(s.io_wait_ns) / ($step_s * 1e9) AS busy
        FROM job_samples AS s
        CROSS JOIN recording AS r
        WHERE s.counter_group = 'device'
        GROUP BY step, s.node, s.target
    ) AS d
    GROUP BY d.step
)

SELECT
    CAST(o.step * $step_s AS DOUBLE) AS from_s,
    CAST((o.step + 1) * $step_s AS DOUBLE) AS until_s,
    o.target,
    CAST(o.operations AS BIGINT) AS operations,
    round(CAST(o.per_call_ns AS DOUBLE), 1) AS wait_per_call_ns,
    round(CAST(u.usual_ns AS DOUBLE), 1) AS usual_ns,
    round(CAST(o.per_call_ns / u.usual_ns AS DOUBLE), 2) AS times_usual,
    j.job_id,
    round(CAST(j.operations / j.of_all AS DOUBLE), 4) AS job_share,
    CASE
        WHEN j.of_target > j.of_all
            THEN round(CAST((j.of_job - j.operations) / (j.of_target - j.of_all) AS DOUBLE), 4)
    END AS job_usual_share,
    round(CAST(j.metadata / j.operations AS DOUBLE), 4) AS metadata_share,
    f.file_path AS file,
    round(CAST(d.busy AS DOUBLE), 4) AS device_busy
FROM ordered AS o
JOIN usual AS u ON u.target = o.target
JOIN jobs AS j ON j.step = o.step AND j.target = o.target AND j.place = 1
LEFT JOIN files AS f ON f.job_id = j.job_id AND f.place = 1
LEFT JOIN devices AS d ON d.step = o.step
CROSS JOIN recording AS r
WHERE u.usual_ns > 0
    AND o.per_call_ns >= $times * u.usual_ns
    AND r.started_ns + (o.step + 1) * $step_s * 1000000000 > $begin_ns
    AND r.started_ns + o.step * $step_s * 1000000000 < $end_ns
ORDER BY o.per_call_ns / u.usual_ns DESC, o.step, o.target
