-- A job over time
-- Activity of one job, or of all jobs, on each file system over time, and the resources used, by time step.
-- needs:  job_samples, recording
-- param:  job VARCHAR = ''                     Only this job; empty: all.
-- param:  begin_ns BIGINT = 0                  Only intervals that end after this time, Unix time [ns]; 0: from the first.
-- param:  end_ns BIGINT = 9223372036854775807  Only intervals that end by this time, Unix time [ns].
-- param:  step_s BIGINT = 10 > 0               Length of a step [s].
-- column: from_s DOUBLE               Start of the step, since the start of the recording [s].
-- column: until_s DOUBLE              End of the interval [s].
-- column: target VARCHAR               The file system, by its mount point; empty: CPU and memory.
-- column: nodes BIGINT                 Nodes on which it was active there.
-- column: read_bytes BIGINT           Read by calls [B].
-- column: written_bytes BIGINT        Written by calls [B].
-- column: operations BIGINT           Calls on files.
-- column: metadata_operations BIGINT  Metadata operations among them.
-- column: errors BIGINT               Of these, failed operations.
-- column: io_wait_ns BIGINT           Total time that its threads waited in them [ns].
-- column: cpu_ns BIGINT               Time on CPUs [ns].
-- column: memory_bytes BIGINT         Resident memory at the end of its last interval in the step, of all nodes [B].
-- chart:  lines x=from_s x2=until_s y=read_bytes color=target gaps=break title="Bytes read by jobs" title_ja="ジョブの読み込み量"
-- chart:  lines x=from_s x2=until_s y=written_bytes color=target gaps=break title="Bytes written by jobs" title_ja="ジョブの書き込み量"
-- chart:  lines x=from_s x2=until_s y=metadata_operations color=target gaps=break title="Metadata operations of jobs" title_ja="ジョブのメタデータ操作"
-- tags:   jobs, time, bytes
WITH chosen AS (
    SELECT
        s.*,
        (s.ts_ns - r.started_ns - 1) // ($step_s * 1000000000) AS step
    FROM job_samples AS s
    CROSS JOIN recording AS r
    WHERE s.job_id IS NOT NULL
        AND ($job = '' OR s.job_id = $job)
        AND s.ts_ns > $begin_ns
        AND s.ts_ns <= $end_ns
        AND s.counter_group IN ('files', 'tasks')
),

memory AS (
    SELECT
        m.step,
        CAST(sum(m.last_bytes) AS BIGINT) AS memory_bytes
    FROM (
        SELECT
            c.step,
            c.node,
            c.job_id,
            arg_max(c.memory_bytes, c.ts_ns) AS last_bytes
        FROM chosen AS c
        WHERE c.counter_group = 'tasks'
        GROUP BY c.step, c.node, c.job_id
    ) AS m
    GROUP BY m.step
)

SELECT
    CAST(c.step * $step_s AS DOUBLE) AS from_s,
    CAST((c.step + 1) * $step_s AS DOUBLE) AS until_s,
    coalesce(c.target, '') AS target,
    count(DISTINCT c.node) AS nodes,
    CAST(sum(c.read_bytes) AS BIGINT) AS read_bytes,
    CAST(sum(c.written_bytes) AS BIGINT) AS written_bytes,
    CAST(sum(c.operations) AS BIGINT) AS operations,
    CAST(sum(c.metadata_operations) AS BIGINT) AS metadata_operations,
    CAST(sum(c.errors) AS BIGINT) AS errors,
    CAST(sum(c.io_wait_ns) AS BIGINT) AS io_wait_ns,
    CAST(sum(c.cpu_ns) AS BIGINT) AS cpu_ns,
    CAST(max(CASE WHEN c.target IS NULL THEN m.memory_bytes END) AS BIGINT) AS memory_bytes
FROM chosen AS c
LEFT JOIN memory AS m ON m.step = c.step
GROUP BY c.step, c.target
ORDER BY c.step, target
