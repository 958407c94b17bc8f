-- Block device latency
-- How long requests to each device took, by operation: in the kernel's queue, in the device, and in total, with minimum, percentiles and maximum.
-- needs:  block_requests
-- column: device VARCHAR     Name of the device.
-- column: op VARCHAR         read, write, flush, discard, ...
-- column: part VARCHAR       queue (until it is issued to the driver), service (after that) or total.
-- column: requests BIGINT    Requests.
-- column: bytes BIGINT       Total length of the requests [B].
-- column: sequential DOUBLE  Share of the requests that begin where the previous one ended, in the order of issue; empty for a single request.
-- column: min_ns BIGINT      Shortest time [ns].
-- column: avg_ns BIGINT      Average [ns].
-- column: p50_ns BIGINT      Half of the requests took at most this: the median [ns].
-- column: p90_ns BIGINT      90 % took at most this [ns].
-- column: p99_ns BIGINT      99 % took at most this [ns].
-- column: p999_ns BIGINT     99.9 % took at most this [ns].
-- column: max_ns BIGINT      Longest time [ns].
-- heads_ja:  part=区間
-- sums:   requests, bytes
-- match:  device, op, part
-- chart:  ranges x=device y=min_ns,p50_ns,p90_ns,p99_ns,p999_ns,max_ns y_scale=log title="Latency" title_ja="レイテンシ"
-- tags:   disk, time, size
WITH ordered AS (
    SELECT b.device, b.op, b.length_bytes, b.queue_ns, b.service_ns, b.dur_ns,
        row_number() OVER (PARTITION BY b.device, b.op ORDER BY b.issued_ts_ns, b.sector, b.ts_ns) AS place,
        b.sector = lag(b.sector + b.length_bytes // 512, 1, CAST(-1 AS BIGINT))
            OVER (PARTITION BY b.device, b.op ORDER BY b.issued_ts_ns, b.sector, b.ts_ns) AS follows
    FROM block_requests AS b
), places AS (
    SELECT o.device, o.op, count(*) AS requests, sum(o.length_bytes) AS bytes,
        count(*) FILTER (WHERE o.follows AND o.place > 1) AS following
    FROM ordered AS o
    GROUP BY o.device, o.op
), times AS (
    SELECT o.device, o.op, 'queue' AS part, 1 AS number, o.queue_ns AS ns FROM ordered AS o
    UNION ALL
    SELECT o.device, o.op, 'service', 2, o.service_ns FROM ordered AS o
    UNION ALL
    SELECT o.device, o.op, 'total', 3, o.dur_ns FROM ordered AS o
), ranked AS (
    SELECT t.device, t.op, t.part, t.number, t.ns,
        row_number() OVER (PARTITION BY t.device, t.op, t.part ORDER BY t.ns) AS upto,
        count(*) OVER (PARTITION BY t.device, t.op, t.part) AS total
    FROM times AS t
)
SELECT
    r.device,
    r.op,
    r.part,
    max(p.requests) AS requests,
    CAST(max(p.bytes) AS BIGINT) AS bytes,
    CASE WHEN max(p.requests) > 1 THEN round(1e0 * max(p.following) / (max(p.requests) - 1), 4) END AS sequential,
    min(r.ns) AS min_ns,
    CAST(floor(avg(r.ns)) AS BIGINT) AS avg_ns,
    min(r.ns) FILTER (WHERE r.upto * 2 >= r.total) AS p50_ns,
    min(r.ns) FILTER (WHERE r.upto * 10 >= r.total * 9) AS p90_ns,
    min(r.ns) FILTER (WHERE r.upto * 100 >= r.total * 99) AS p99_ns,
    min(r.ns) FILTER (WHERE r.upto * 1000 >= r.total * 999) AS p999_ns,
    max(r.ns) AS max_ns
FROM ranked AS r
INNER JOIN places AS p ON p.device = r.device AND p.op = r.op
GROUP BY r.device, r.op, r.part, r.number
ORDER BY r.device, max(p.requests) DESC, r.op, r.number
