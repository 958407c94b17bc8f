-- Results of a load
-- One row per measurement: the operation, the number of processes, the rate, and whether the result can be trusted.
-- needs:  load_results
-- param:  item VARCHAR = ''        Only this item, such as transfer or metadata; empty: all.
-- param:  operation VARCHAR = ''   Only this operation, such as read or create; empty: all.
-- param:  engine VARCHAR = ''      Only what this tool measured, such as sysdock or fio; empty: all.
-- param:  status VARCHAR = ''      Only this status, such as reported or from_memory; empty: all.
-- column: item VARCHAR             What was measured.
-- column: operation VARCHAR        What the processes did.
-- column: engine VARCHAR           Tool that generated the load.
-- column: length_bytes BIGINT      Bytes of a request [B].
-- column: processes INTEGER        Concurrent processes or threads, on all hosts.
-- column: depth INTEGER            Requests that each of them keeps in progress.
-- column: direct BOOLEAN           Whether files were opened with O_DIRECT.
-- column: layout VARCHAR           own: a file or directory for each process; shared: one for all.
-- column: sync VARCHAR             How writes reach the device.
-- column: bytes_per_s DOUBLE       Rate of data [B/s].
-- column: operations_per_s DOUBLE  Rate of operations [1/s].
-- column: p50_ns BIGINT            Half of the operations took at most this [ns].
-- column: p99_ns BIGINT            99 of 100 operations took at most this [ns].
-- column: max_ns BIGINT            The longest operation [ns].
-- column: overlap DOUBLE           Share of the time in which all processes ran.
-- column: errors BIGINT            Operations that failed.
-- column: status VARCHAR           How reliable the numbers are.
-- column: note VARCHAR             Reason for the status, and other remarks [fact].
-- heads_ja:  depth=同時要求数
-- match:  item, operation, engine, length_bytes, processes, depth, direct, layout, sync
-- tags:   bytes, time, disk
SELECT
    r.item,
    r.operation,
    r.engine,
    r.length_bytes,
    r.processes,
    r.depth,
    r.direct,
    r.layout,
    r.sync,
    r.bytes_per_s,
    r.operations_per_s,
    r.p50_ns,
    r.p99_ns,
    r.max_ns,
    round(r.overlap, 3) AS overlap,
    r.errors,
    r.status,
    coalesce(r.note, '') AS note
FROM load_results AS r
WHERE ($item = '' OR r.item = $item)
    AND ($operation = '' OR r.operation = $operation)
    AND ($engine = '' OR r.engine = $engine)
    AND ($status = '' OR r.status = $status)
ORDER BY r.result_id
