-- Finished jobs
-- One row per job: how long it ran and its totals over all nodes.
-- needs:  ended_jobs, recording
-- param:  job VARCHAR = ''             Only this job; empty: all.
-- param:  name VARCHAR = ''            Only jobs of this name; empty: all.
-- param:  user VARCHAR = ''            Only this user; empty: all.
-- column: job_id VARCHAR               The job.
-- column: user VARCHAR                 User of the job.
-- column: name VARCHAR                 Name.
-- column: command VARCHAR              Its first program.
-- column: nodes BIGINT                 Nodes on which it ran.
-- column: begun_s DOUBLE              When it began, since the start of the recording [s].
-- column: wall_ns BIGINT               How long it ran [ns].
-- column: is_whole BOOLEAN             Whether agents counted from its beginning to its end, on all nodes.
-- column: bytes BIGINT                Bytes read and written by calls on files [B].
-- column: operations BIGINT           Calls on files.
-- column: metadata_operations BIGINT  Metadata operations among them.
-- column: errors BIGINT               Of these, failed operations.
-- column: io_wait_ns BIGINT           Total time that its threads waited in them [ns].
-- column: cpu_ns BIGINT               Time on CPUs [ns].
-- column: memory_bytes BIGINT         Sum of the peak resident memory of each node [B].
-- tags:   jobs, time, bytes
SELECT
    t.job_id,
    t."user",
    t.name,
    t.command,
    t.nodes,
    (t.begun_ns - r.started_ns) / 1e9 AS begun_s,
    t.wall_ns,
    t.is_whole,
    t.bytes,
    t.operations,
    t.metadata_operations,
    t.errors,
    t.io_wait_ns,
    t.cpu_ns,
    t.memory_bytes
FROM ended_jobs AS t
CROSS JOIN recording AS r
WHERE ($job = '' OR t.job_id = $job)
    AND ($name = '' OR t.name = $name)
    AND ($user = '' OR t."user" = $user)
ORDER BY t.io_wait_ns DESC, t.job_id
