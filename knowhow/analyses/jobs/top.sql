-- Top jobs by file system use
-- Jobs that transferred the most data, made the most calls or waited longest for files, on all nodes, within a time range.
-- needs:  job_samples
-- param:  begin_ns BIGINT = 0                     Only intervals that end after this time, Unix time [ns]; 0: from the first.
-- param:  end_ns BIGINT = 9223372036854775807     Only intervals that end by this time, Unix time [ns].
-- param:  target VARCHAR = ''                     Only calls on this file system: its mount point; empty: all except those of the kernel itself.
-- param:  by VARCHAR = 'io_wait'                  Sort order, and the total to which `share` refers: bytes, operations, metadata, io_wait, cpu.
-- column: job_id VARCHAR               The job; a systemd unit; a container; `(no job)` for the rest.
-- column: user VARCHAR                 User of the job.
-- column: name VARCHAR                 Name.
-- column: nodes BIGINT                 Nodes on which it was active.
-- column: bytes BIGINT                Bytes read and written by calls on files [B].
-- column: operations BIGINT           Calls on files.
-- column: metadata_operations BIGINT  Metadata operations among them.
-- column: errors BIGINT               Of these, failed operations.
-- column: io_wait_ns BIGINT           Total time that its threads waited in calls on files [ns].
-- column: cpu_ns BIGINT               Time on CPUs [ns].
-- column: share DOUBLE                 Its share of the total of what `by` names.
-- chart:  bars x=job_id y=io_wait_ns title="Jobs by time spent waiting for files" title_ja="ファイル待ち時間の長いジョブ"
-- tags:   jobs, bytes, time
WITH sums AS (
    SELECT
        s.job_id,
        max(s."user") AS "user",
        max(s.name) AS name,
        count(DISTINCT s.node) AS nodes,
        CAST(coalesce(sum(s.bytes), 0) AS BIGINT) AS bytes,
        CAST(coalesce(sum(s.operations), 0) AS BIGINT) AS operations,
        CAST(coalesce(sum(s.metadata_operations), 0) AS BIGINT) AS metadata_operations,
        CAST(coalesce(sum(s.errors), 0) AS BIGINT) AS errors,
        CAST(coalesce(sum(s.io_wait_ns), 0) AS BIGINT) AS io_wait_ns,
        CAST(coalesce(sum(s.cpu_ns), 0) AS BIGINT) AS cpu_ns
    FROM job_samples AS s
    WHERE s.job_id IS NOT NULL
        AND s.ts_ns > $begin_ns
        AND s.ts_ns <= $end_ns
        AND (
            s.counter_group = 'tasks'
            OR (
                s.counter_group = 'files'
                AND (s.target = $target OR ($target = '' AND s.target <> '(kernel)'))
            )
        )
    GROUP BY s.job_id
),

ranked AS (
    SELECT
        j.*,
        CASE $by
            WHEN 'bytes' THEN j.bytes
            WHEN 'operations' THEN j.operations
            WHEN 'metadata' THEN j.metadata_operations
            WHEN 'cpu' THEN j.cpu_ns
            ELSE j.io_wait_ns
        END AS amount
    FROM sums AS j
)

SELECT
    r.job_id,
    r."user",
    r.name,
    r.nodes,
    r.bytes,
    r.operations,
    r.metadata_operations,
    r.errors,
    r.io_wait_ns,
    r.cpu_ns,
    CASE WHEN sum(r.amount) OVER () > 0 THEN round(r.amount / sum(r.amount) OVER (), 6) END AS share
FROM ranked AS r
ORDER BY r.amount DESC, r.job_id
