-- Pending disk requests of a crashed kernel
-- Requests that each disk had not completed when the kernel stopped, oldest first.
-- needs:  dump_requests
-- question: block-requests Requests in flight
-- reads:  requests
-- param:  min_age_ns BIGINT = 0     Leave out younger requests [ns].
-- column: disk VARCHAR             Name of the disk.
-- column: operation VARCHAR        read, write, flush, discard and so on.
-- column: age_ns BIGINT            Time since the kernel created the request [ns].
-- column: issued_ns BIGINT         Time since the driver received it; empty: not received, or unknown [ns].
-- column: sector BIGINT            Start position, in units of 512 bytes.
-- column: bytes BIGINT             Bytes left to transfer [B].
-- column: state VARCHAR            in flight: the driver has it; complete; waiting: the driver has not received it.
-- column: queue INTEGER            Queue of the disk.
-- column: tag INTEGER              Number of the request in its queue.
-- column: status VARCHAR           ok, or why something could not be read.
-- heads_ja:  bytes=残りの量
-- sums:   bytes
-- match:  disk, operation
-- chart:  bars x=disk y=age_ns color=operation title="Age of requests" title_ja="要求の経過時間"
-- tags:   disk, time
SELECT
    q.disk,
    q.operation,
    q.age_ns,
    q.issued_ns,
    q.sector,
    q.bytes,
    q.state,
    q.queue,
    q.tag,
    q.status
FROM dump_requests AS q
WHERE coalesce(q.age_ns, 0) >= $min_age_ns
ORDER BY coalesce(q.age_ns, 0) DESC, q.disk, q.queue, q.tag, q.sector
