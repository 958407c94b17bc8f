-- Throughput by number of processes
-- Sequential and random read and write throughput by number of processes, for each request length.
-- needs:  load_results
-- param:  engine VARCHAR = ''      Only what this tool measured, such as sysdock or fio; empty: all.
-- param:  layout VARCHAR = 'own'   own: a file for each process; shared: one for all; empty: both, the higher rate.
-- column: processes INTEGER                 Concurrent processes.
-- column: request VARCHAR                   Size of a request, as text.
-- column: write_bytes_per_s DOUBLE          Highest rate of sequential writes through the page cache [B/s].
-- column: read_bytes_per_s DOUBLE           Highest rate of sequential reads through the page cache [B/s].
-- column: direct_write_bytes_per_s DOUBLE   Highest rate of sequential writes bypassing it (O_DIRECT) [B/s].
-- column: direct_read_bytes_per_s DOUBLE    Highest rate of sequential reads bypassing it [B/s].
-- column: random_reads_per_s DOUBLE         Highest rate of random reads bypassing it [1/s].
-- column: commits_per_s DOUBLE              Highest rate of appends with fdatasync [1/s].
-- column: unknown_origin BIGINT             Measurements of these whose reads may have come from memory.
-- chart:  curves x=processes y=write_bytes_per_s color=request x_scale=log title="Writes, by request size" title_ja="書き込み（要求サイズ別）"
-- chart:  curves x=processes y=read_bytes_per_s color=request x_scale=log title="Reads, by request size" title_ja="読み出し（要求サイズ別）"
-- chart:  curves x=processes y=direct_write_bytes_per_s color=request x_scale=log title="Direct writes, by request size" title_ja="ダイレクト書き込み（要求サイズ別）"
-- chart:  curves x=processes y=direct_read_bytes_per_s color=request x_scale=log title="Direct reads, by request size" title_ja="ダイレクト読み出し（要求サイズ別）"
-- chart:  curves x=processes y=random_reads_per_s color=request x_scale=log title="Random reads, by request size" title_ja="ランダム読み出し（要求サイズ別）"
-- chart:  curves x=processes y=commits_per_s color=request x_scale=log title="Commits, by request size" title_ja="コミット（要求サイズ別）"
-- match:  processes, request
-- tags:   bytes, processes, disk
WITH usable AS (
    SELECT r.item, r.operation, r.processes, r.length_bytes, r.bytes_per_s, r.operations_per_s, r.status, r.sync,
        coalesce(r.direct, false) AS direct
    FROM load_results AS r
    WHERE r.item IN ('transfer', 'random_read', 'log') AND r.status IN ('measured', 'throttled', 'reported', 'not_known') AND r.bytes_per_s > 0 AND r.length_bytes > 0
        AND ($engine = '' OR r.engine = $engine)
        AND ($layout = '' OR r.item <> 'transfer' OR coalesce(r.layout, 'own') = $layout)
)
SELECT
    u.processes,
    CASE
        WHEN u.length_bytes % 1048576 = 0 THEN concat(CAST(u.length_bytes // 1048576 AS VARCHAR), ' MiB')
        WHEN u.length_bytes % 1024 = 0 THEN concat(CAST(u.length_bytes // 1024 AS VARCHAR), ' KiB')
        ELSE concat(CAST(u.length_bytes AS VARCHAR), ' B')
    END AS request,
    max(u.bytes_per_s) FILTER (WHERE u.item = 'transfer' AND u.operation = 'write' AND NOT u.direct) AS write_bytes_per_s,
    max(u.bytes_per_s) FILTER (WHERE u.item = 'transfer' AND u.operation = 'read' AND NOT u.direct) AS read_bytes_per_s,
    max(u.bytes_per_s) FILTER (WHERE u.item = 'transfer' AND u.operation = 'write' AND u.direct) AS direct_write_bytes_per_s,
    max(u.bytes_per_s) FILTER (WHERE u.item = 'transfer' AND u.operation = 'read' AND u.direct) AS direct_read_bytes_per_s,
    max(u.operations_per_s) FILTER (WHERE u.item = 'random_read' AND u.direct) AS random_reads_per_s,
    max(u.operations_per_s) FILTER (WHERE u.item = 'log' AND u.sync = 'fdatasync' AND u.operation = 'append') AS commits_per_s,
    count(*) FILTER (WHERE u.status = 'not_known') AS unknown_origin
FROM usable AS u
GROUP BY u.processes, u.length_bytes
ORDER BY u.processes, u.length_bytes
