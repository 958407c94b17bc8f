-- Clients and servers, by job
-- Transfers of a job on Lustre as counted by its nodes, compared with what the servers counted for it.
-- needs:  job_samples
-- param:  job VARCHAR = ''                     Only this job; empty: all.
-- param:  begin_ns BIGINT = 0                  Only intervals that end after this time, Unix time [ns]; 0: from the first.
-- param:  end_ns BIGINT = 9223372036854775807  Only intervals that end by this time, Unix time [ns].
-- column: job_id VARCHAR                    The job; empty: unknown as a job to the nodes or the servers.
-- column: nodes BIGINT                     Nodes that counted its calls on Lustre.
-- column: servers BIGINT                   Servers that counted its requests.
-- column: client_read_bytes BIGINT         Bytes read by its calls on Lustre [B].
-- column: server_read_bytes BIGINT         Bytes read for it by servers [B].
-- column: rest_read_bytes BIGINT           Bytes read by calls but not by servers: from memory of nodes. Below 0: read ahead, or not counted by a node [B].
-- column: client_written_bytes BIGINT      Bytes written by its calls on Lustre [B].
-- column: server_written_bytes BIGINT      Bytes written for it by servers [B].
-- column: rest_written_bytes BIGINT        Bytes written by calls but not by servers: still in memory of nodes, or overwritten there. Below 0: not counted by a node [B].
-- column: client_metadata_operations BIGINT  Its calls on names and attributes.
-- column: server_metadata_operations BIGINT  Metadata requests that servers handled for it.
-- tags:   jobs, bytes, metadata
WITH chosen AS (
    SELECT
        coalesce(s.job_id, '') AS job_id,
        s.counter_group = 'lustre_server' AS is_server,
        s.node,
        s.read_bytes,
        s.written_bytes,
        coalesce(s.opens, 0) + coalesce(s.creates, 0) + coalesce(s.closes, 0) + coalesce(s.stats, 0) + coalesce(s.readdirs, 0)
        + coalesce(s.removes, 0) + coalesce(s.renames, 0) + coalesce(s.makes, 0) + coalesce(s.attributes, 0) AS metadata
    FROM job_samples AS s
    WHERE (s.counter_group = 'lustre_server' OR (s.counter_group = 'files' AND s.file_system = 'lustre'))
        AND ($job = '' OR s.job_id = $job)
        AND s.ts_ns > $begin_ns
        AND s.ts_ns <= $end_ns
),

sums AS (
    SELECT
        c.job_id,
        count(DISTINCT CASE WHEN NOT c.is_server THEN c.node END) AS nodes,
        count(DISTINCT CASE WHEN c.is_server THEN c.node END) AS servers,
        CAST(coalesce(sum(CASE WHEN NOT c.is_server THEN c.read_bytes END), 0) AS BIGINT) AS client_read,
        CAST(coalesce(sum(CASE WHEN c.is_server THEN c.read_bytes END), 0) AS BIGINT) AS server_read,
        CAST(coalesce(sum(CASE WHEN NOT c.is_server THEN c.written_bytes END), 0) AS BIGINT) AS client_written,
        CAST(coalesce(sum(CASE WHEN c.is_server THEN c.written_bytes END), 0) AS BIGINT) AS server_written,
        CAST(coalesce(sum(CASE WHEN NOT c.is_server THEN c.metadata END), 0) AS BIGINT) AS client_metadata,
        CAST(coalesce(sum(CASE WHEN c.is_server THEN c.metadata END), 0) AS BIGINT) AS server_metadata
    FROM chosen AS c
    GROUP BY c.job_id
)

SELECT
    s.job_id,
    s.nodes,
    s.servers,
    s.client_read AS client_read_bytes,
    s.server_read AS server_read_bytes,
    s.client_read - s.server_read AS rest_read_bytes,
    s.client_written AS client_written_bytes,
    s.server_written AS server_written_bytes,
    s.client_written - s.server_written AS rest_written_bytes,
    s.client_metadata AS client_metadata_operations,
    s.server_metadata AS server_metadata_operations
FROM sums AS s
ORDER BY s.client_read + s.client_written + s.server_read + s.server_written DESC, s.job_id
