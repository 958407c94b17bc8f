-- Nodes and servers of a job over time
-- Activity of the devices, network interfaces and network file systems of a job's nodes while it ran, and of the servers for it, by time step.
-- needs:  job_samples, recording
-- param:  job VARCHAR = ''                     The job; empty: all nodes.
-- param:  begin_ns BIGINT = 0                  Only intervals that end after this time, Unix time [ns]; 0: from the first.
-- param:  end_ns BIGINT = 9223372036854775807  Only intervals that end by this time, Unix time [ns].
-- param:  step_s BIGINT = 10 > 0               Length of a step [s].
-- column: from_s DOUBLE               Start of the step, since the start of the recording [s].
-- column: until_s DOUBLE              End of the interval [s].
-- column: counter_group VARCHAR        device, network, nfs, lustre; lustre_server: what servers did for the job.
-- column: target VARCHAR               The device, interface, mount point or server target.
-- column: nodes BIGINT                 Nodes that have it.
-- column: read_bytes BIGINT           Bytes read or received [B].
-- column: written_bytes BIGINT        Bytes written or sent [B].
-- column: reads BIGINT                Requests that read, or packets received.
-- column: writes BIGINT               Requests that wrote, or packets sent.
-- column: errors BIGINT               Retransmitted requests, packets with errors or dropped.
-- column: busy DOUBLE                  Devices: share of the time in which they had a request, averaged over the nodes.
-- chart:  lines x=from_s x2=until_s y=busy color=target gaps=break title="Devices of the nodes of a job" title_ja="ジョブのノードのデバイス使用率"
-- chart:  lines x=from_s x2=until_s y=read_bytes color=target gaps=break title="Read by nodes and servers" title_ja="ノードとサーバーの読み込み量"
-- tags:   jobs, time, bytes
WITH chosen AS (
    SELECT s.*
    FROM job_samples AS s
    WHERE s.job_id IS NULL
        AND s.counter_group IN ('device', 'network', 'nfs', 'lustre')
        AND s.ts_ns > $begin_ns
        AND s.ts_ns <= $end_ns
        AND (
            $job = ''
            OR EXISTS (
                SELECT 1
                FROM job_samples AS o
                WHERE o.job_id = $job
                    AND o.counter_group <> 'lustre_server'
                    AND o.node = s.node
                    AND o.ts_ns = s.ts_ns
            )
        )
    UNION ALL
    SELECT s.*
    FROM job_samples AS s
    WHERE s.counter_group = 'lustre_server'
        AND ($job = '' OR s.job_id = $job)
        AND s.ts_ns > $begin_ns
        AND s.ts_ns <= $end_ns
),

placed AS (
    SELECT
        c.*,
        (c.ts_ns - r.started_ns - 1) // ($step_s * 1000000000) AS step
    FROM chosen AS c
    CROSS JOIN recording AS r
)

SELECT
    CAST(p.step * $step_s AS DOUBLE) AS from_s,
    CAST((p.step + 1) * $step_s AS DOUBLE) AS until_s,
    p.counter_group,
    coalesce(p.target, '') AS target,
    count(DISTINCT p.node) AS nodes,
    CAST(coalesce(sum(p.read_bytes), 0) AS BIGINT) AS read_bytes,
    CAST(coalesce(sum(p.written_bytes), 0) AS BIGINT) AS written_bytes,
    CAST(coalesce(sum(p.reads), 0) AS BIGINT) AS reads,
    CAST(coalesce(sum(p.writes), 0) AS BIGINT) AS writes,
    CAST(coalesce(sum(p.errors), 0) AS BIGINT) AS errors,
    CASE
        WHEN p.counter_group = 'device' AND sum(p.interval_ns) > 0
            THEN round(CAST(sum(p.io_wait_ns) / sum(p.interval_ns) AS DOUBLE), 4)
    END AS busy
FROM placed AS p
GROUP BY p.step, p.counter_group, coalesce(p.target, '')
ORDER BY p.step, p.counter_group, target
