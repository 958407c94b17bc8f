-- Agents and their losses
-- One row per agent: whether all its batches arrived, what it dropped, and its own cost.
-- needs:  agent_batches, recording
-- column: cluster VARCHAR          The cluster.
-- column: node VARCHAR             The node.
-- column: agent VARCHAR            The agent's own number.
-- column: version VARCHAR          Its version.
-- column: last_s DOUBLE            Its last batch, since the start of the recording [s].
-- column: batches BIGINT           Batches that arrived.
-- column: missing BIGINT           Batches between the first and the last one that did not arrive.
-- column: dropped BIGINT           Batches that it removed unsent because its spool was full.
-- column: refused BIGINT           Batches that a collector refused.
-- column: waiting BIGINT           Batches that were waiting when it created the last one.
-- column: lost BIGINT              Entries for which there was no room in the kernel's tables.
-- column: restarts BIGINT          Number of times that an agent was restarted while its programs continued counting.
-- column: cpu_share DOUBLE         Its CPU time divided by the elapsed time.
-- column: memory_bytes BIGINT      Peak memory use [B].
-- tags:   jobs
SELECT
    b.cluster,
    b.node,
    b.agent,
    arg_max(b.version, b.ts_ns) AS version,
    (max(b.ts_ns) - max(r.started_ns)) / 1e9 AS last_s,
    count(DISTINCT b.sequence) AS batches,
    max(b.sequence) - min(b.sequence) + 1 - count(DISTINCT b.sequence) AS missing,
    max(b.dropped_batches) AS dropped,
    max(b.refused_batches) AS refused,
    arg_max(b.waiting_batches, b.sequence) AS waiting,
    max(b.lost) AS lost,
    CAST(sum(CASE WHEN b.is_resumed THEN 1 ELSE 0 END) AS BIGINT) AS restarts,
    CASE
        WHEN sum(CASE WHEN b.is_resumed THEN 0 ELSE b.interval_ns END) > 0
            THEN round(
                sum(CASE WHEN b.is_resumed OR b.interval_ns = 0 THEN 0 ELSE b.cpu_ns END)
                / sum(CASE WHEN b.is_resumed THEN 0 ELSE b.interval_ns END),
                6
            )
    END AS cpu_share,
    max(b.memory_bytes) AS memory_bytes
FROM agent_batches AS b
CROSS JOIN recording AS r
GROUP BY b.cluster, b.node, b.agent
ORDER BY b.cluster, b.node, b.agent
