-- Throughput by request length
-- Sequential read and write throughput by request length, for each number of processes.
-- needs:  load_results
-- param:  engine VARCHAR = ''      Only what this tool measured, such as sysdock or fio; empty: all.
-- param:  layout VARCHAR = 'own'   own: a file for each process; shared: one for all; empty: both, the higher rate.
-- column: processes INTEGER                 Concurrent processes.
-- column: length_bytes BIGINT               Bytes of a request [B].
-- column: write_bytes_per_s DOUBLE          Highest rate of writes through the page cache [B/s].
-- column: read_bytes_per_s DOUBLE           Highest rate of reads through the page cache [B/s].
-- column: direct_write_bytes_per_s DOUBLE   Highest rate of writes bypassing it (O_DIRECT) [B/s].
-- column: direct_read_bytes_per_s DOUBLE    Highest rate of reads bypassing it [B/s].
-- column: unknown_origin BIGINT             Measurements of these whose reads may have come from memory.
-- chart:  curves x=length_bytes y=write_bytes_per_s color=processes x_scale=log title="Writes, by processes" title_ja="書き込み（プロセス数別）"
-- chart:  curves x=length_bytes y=read_bytes_per_s color=processes x_scale=log title="Reads, by processes" title_ja="読み出し（プロセス数別）"
-- match:  processes, length_bytes
-- tags:   bytes, size, disk
SELECT
    r.processes,
    r.length_bytes,
    max(r.bytes_per_s) FILTER (WHERE r.operation = 'write' AND NOT coalesce(r.direct, false)) AS write_bytes_per_s,
    max(r.bytes_per_s) FILTER (WHERE r.operation = 'read' AND NOT coalesce(r.direct, false)) AS read_bytes_per_s,
    max(r.bytes_per_s) FILTER (WHERE r.operation = 'write' AND r.direct) AS direct_write_bytes_per_s,
    max(r.bytes_per_s) FILTER (WHERE r.operation = 'read' AND r.direct) AS direct_read_bytes_per_s,
    count(*) FILTER (WHERE r.status = 'not_known') AS unknown_origin
FROM load_results AS r
WHERE r.item = 'transfer' AND r.status IN ('measured', 'throttled', 'reported', 'not_known') AND r.bytes_per_s > 0 AND r.length_bytes > 0
    AND ($engine = '' OR r.engine = $engine)
    AND ($layout = '' OR coalesce(r.layout, 'own') = $layout)
GROUP BY r.processes, r.length_bytes
ORDER BY r.processes, r.length_bytes
