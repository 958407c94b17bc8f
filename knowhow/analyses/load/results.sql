-- Results of a load
-- One row per measurement: what was asked, what the file system did, and what the numbers are worth.
-- needs:  load_results
-- param:  item VARCHAR = ''           Only this item; empty for all.
-- param:  operation VARCHAR = ''      Only this operation; empty for all.
-- param:  usable BOOLEAN = false      true: only rows whose numbers can be relied on.
-- column: item VARCHAR                What was measured.
-- column: operation VARCHAR           What the workers did.
-- column: length_bytes BIGINT         Bytes of each request [B].
-- column: processes INTEGER           Workers at a time.
-- column: setting VARCHAR             direct, shared, how writes reach the device, requests under way, and who made the load, where that is not the usual.
-- column: bytes_per_s DOUBLE          Rate of data [B/s].
-- column: operations_per_s DOUBLE     Rate of operations [1/s].
-- column: p50_ns BIGINT               Half of the operations took no longer [ns].
-- column: p99_ns BIGINT               99 of 100 operations took no longer [ns].
-- column: max_ns BIGINT               The longest [ns].
-- column: overlap DOUBLE              Part of the time in which all workers ran.
-- column: errors BIGINT               Operations that failed.
-- column: status VARCHAR              What the numbers are worth.
-- column: note VARCHAR                Why.
-- chart:  bars x=operation y=operations_per_s title="Operations a second" title_ja="操作/秒"
-- tags:   disk, bytes, time
SELECT
    item,
    operation,
    length_bytes,
    processes,
    substr(concat(
        CASE WHEN direct THEN ' direct' ELSE '' END,
        CASE WHEN layout = 'shared' THEN ' shared' ELSE '' END,
        CASE WHEN coalesce(sync, 'end') <> 'end' THEN concat(' ', sync) ELSE '' END,
        CASE WHEN depth > 1 THEN concat(' depth ', CAST(depth AS VARCHAR)) ELSE '' END,
        CASE WHEN engine <> 'sysdock' THEN concat(' ', engine) ELSE '' END
    ), 2) AS setting,
    bytes_per_s,
    operations_per_s,
    p50_ns,
    p99_ns,
    max_ns,
    overlap,
    errors,
    status,
    note
FROM load_results
WHERE ($item = '' OR item = $item) AND ($operation = '' OR operation = $operation)
    AND (NOT $usable OR status IN ('measured', 'throttled', 'reported'))
ORDER BY result_id
