-- File operations by number of processes
-- How many files and directories are created, found, listed, renamed and removed per second, by number of processes.
-- needs:  load_results
-- param:  engine VARCHAR = ''      Only what this tool measured, such as sysdock or fio; empty: all.
-- param:  directories BOOLEAN = false   Show operations on directories instead of files.
-- column: operation VARCHAR        What the processes did.
-- column: processes INTEGER        Concurrent processes.
-- column: own_per_s DOUBLE         Highest rate, with one directory per process [1/s].
-- column: shared_per_s DOUBLE      The same with one directory for all [1/s].
-- column: own_p50_ns BIGINT        Half of the operations took at most this, with one directory per process [ns].
-- column: shared_p50_ns BIGINT     The same with one directory for all [ns].
-- column: errors BIGINT            Operations that failed.
-- chart:  curves x=processes y=own_per_s color=operation x_scale=log y_scale=log title="A directory for each process" title_ja="プロセスごとのディレクトリ"
-- chart:  curves x=processes y=shared_per_s color=operation x_scale=log y_scale=log title="One directory for all" title_ja="共有ディレクトリ"
-- match:  operation, processes
-- tags:   metadata, processes, disk
SELECT
    r.operation,
    r.processes,
    max(r.operations_per_s) FILTER (WHERE coalesce(r.layout, 'own') <> 'shared') AS own_per_s,
    max(r.operations_per_s) FILTER (WHERE r.layout = 'shared') AS shared_per_s,
    min(r.p50_ns) FILTER (WHERE coalesce(r.layout, 'own') <> 'shared') AS own_p50_ns,
    min(r.p50_ns) FILTER (WHERE r.layout = 'shared') AS shared_p50_ns,
    CAST(sum(r.errors) AS BIGINT) AS errors
FROM load_results AS r
WHERE r.item = 'metadata' AND r.status IN ('measured', 'throttled', 'reported', 'not_known') AND r.operations_per_s > 0
    AND (r.operation IN ('mkdir', 'rmdir', 'stat_directory', 'rename_directory')) = $directories
    AND ($engine = '' OR r.engine = $engine)
GROUP BY r.operation, r.processes
ORDER BY r.operation, r.processes
