-- Files used by jobs
-- Files that took most of the time of finished jobs, on all nodes.
-- needs:  job_files
-- param:  job VARCHAR = ''            Only this job; empty: all.
-- column: job_id VARCHAR              The job.
-- column: path VARCHAR                The file; empty: unknown.
-- column: target VARCHAR              The mount point of its file system.
-- column: nodes BIGINT                Nodes on which the job used it.
-- column: calls BIGINT               Calls on it.
-- column: read_bytes BIGINT          Read [B].
-- column: written_bytes BIGINT       Written [B].
-- column: io_time_ns BIGINT          Total time of the calls [ns].
-- column: error_ns BIGINT            How much of it may belong to other files: the lists are limited [ns].
-- chart:  bars x=path y=io_time_ns title="Files by time" title_ja="ジョブの所要時間の長いファイル"
-- tags:   jobs, files, time
SELECT
    f.job_id,
    f.file_path AS path,
    max(f.target) AS target,
    count(DISTINCT f.node) AS nodes,
    CAST(sum(f.calls) AS BIGINT) AS calls,
    CAST(sum(f.read_bytes) AS BIGINT) AS read_bytes,
    CAST(sum(f.written_bytes) AS BIGINT) AS written_bytes,
    CAST(sum(f.io_time_ns) AS BIGINT) AS io_time_ns,
    CAST(sum(f.error_ns) AS BIGINT) AS error_ns
FROM job_files AS f
WHERE $job = '' OR f.job_id = $job
GROUP BY f.job_id, f.file_path
ORDER BY sum(f.io_time_ns) DESC, f.job_id, f.file_path
