-- Block device queue depth
-- How many requests each device had in progress, weighted by time, how busy it was, and its throughput.
-- needs:  block_requests, totals
-- column: device VARCHAR         Name of the device.
-- column: depth_from BIGINT      Fewest requests in the class.
-- column: depth_until BIGINT     Most requests in the class.
-- column: time_ns BIGINT         Time in which the driver had this many [ns].
-- column: share DOUBLE           Share of the elapsed time.
-- column: busy DOUBLE            For the whole device: share of the elapsed time in which it had at least one.
-- column: average_depth DOUBLE   For the whole device: average number while it had at least one.
-- column: requests BIGINT        For the whole device: requests.
-- column: rate DOUBLE            For the whole device: requests per second of the elapsed time.
-- sums:   time_ns, requests
-- match:  device, depth_from, depth_until
-- chart:  bars x=depth_from y=time_ns color=device title="Time by queue depth" title_ja="キューの深さごとの時間"
-- tags:   disk, time
WITH changes AS (
    SELECT b.device, b.issued_ts_ns AS at_ns, 1 AS step FROM block_requests AS b
    UNION ALL
    SELECT b.device, b.end_ts_ns, -1 FROM block_requests AS b
), moments AS (
    SELECT c.device, c.at_ns, sum(c.step) AS step
    FROM changes AS c
    GROUP BY c.device, c.at_ns
), stretches AS (
    SELECT m.device,
        sum(m.step) OVER (PARTITION BY m.device ORDER BY m.at_ns) AS depth,
        min(m.at_ns) OVER (PARTITION BY m.device ORDER BY m.at_ns ROWS BETWEEN 1 FOLLOWING AND 1 FOLLOWING) - m.at_ns AS ns
    FROM moments AS m
), busy_stretches AS (
    SELECT s.device, s.depth, s.ns, CAST(power(2, floor(log2(s.depth))) AS BIGINT) AS depth_from
    FROM stretches AS s
    WHERE s.depth > 0 AND s.ns > 0
), counted AS (
    SELECT b.device, count(*) AS requests FROM block_requests AS b GROUP BY b.device
), whole AS (
    SELECT c.device, c.requests, t.elapsed_ns, coalesce(sum(s.ns), 0) AS busy_ns, sum(s.ns * s.depth) AS depth_ns
    FROM counted AS c
    CROSS JOIN totals AS t
    LEFT JOIN busy_stretches AS s ON s.device = c.device
    GROUP BY c.device, c.requests, t.elapsed_ns
), classes AS (
    SELECT s.device, s.depth_from, 2 * s.depth_from - 1 AS depth_until, sum(s.ns) AS ns
    FROM busy_stretches AS s
    GROUP BY s.device, s.depth_from
    UNION ALL
    SELECT w.device, 0, 0, greatest(w.elapsed_ns - w.busy_ns, 0) FROM whole AS w
)
SELECT
    c.device,
    c.depth_from,
    c.depth_until,
    CAST(c.ns AS BIGINT) AS time_ns,
    CASE WHEN w.elapsed_ns > 0 THEN round(1e0 * c.ns / w.elapsed_ns, 4) END AS share,
    CASE WHEN w.elapsed_ns > 0 THEN round(least(1e0 * w.busy_ns / w.elapsed_ns, 1e0), 4) END AS busy,
    CASE WHEN w.busy_ns > 0 THEN round(1e0 * w.depth_ns / w.busy_ns, 2) END AS average_depth,
    w.requests,
    CASE WHEN w.elapsed_ns > 0 THEN round(1e9 * w.requests / w.elapsed_ns, 1) END AS rate
FROM classes AS c
INNER JOIN whole AS w ON w.device = c.device
ORDER BY w.busy_ns DESC, c.device, c.depth_from
