-- Block requests over time
-- What each device completed in each time step, and how long it took. A step without requests has no row.
-- needs:  block_requests, recording
-- param:  interval_s DOUBLE = 1.0 > 0   Length of a step; fractions allowed [s].
-- column: from_s DOUBLE         Start of the step, since the start of the recording [s].
-- column: until_s DOUBLE        End of the step [s].
-- column: device VARCHAR        Name of the device.
-- column: reads BIGINT          Reads that were completed in the step.
-- column: writes BIGINT         Writes.
-- column: others BIGINT         Flushes, discards and everything else.
-- column: read_bytes BIGINT     Bytes read [B].
-- column: write_bytes BIGINT    Bytes written [B].
-- column: queue_ns BIGINT       Average time in the queue [ns].
-- column: service_ns BIGINT     Average time in the driver and the device [ns].
-- chart:  lines x=from_s x2=until_s y=read_bytes,write_bytes title="Bytes per step, by device" title_ja="区間ごとのデバイスのバイト数"
-- tags:   disk, bytes, time
WITH step AS (
    SELECT started_ns, greatest(CAST(round(least($interval_s, 1e9) * 1e9) AS BIGINT), 1) AS step_ns
    FROM recording
), placed AS (
    SELECT CAST(floor((b.end_ts_ns - s.started_ns) / s.step_ns) AS BIGINT) AS number, b.device, b.op, b.length_bytes, b.queue_ns, b.service_ns
    FROM block_requests AS b
    CROSS JOIN step AS s
), counted AS (
    SELECT number, device,
        count(*) FILTER (WHERE op = 'read') AS reads,
        count(*) FILTER (WHERE op = 'write') AS writes,
        count(*) FILTER (WHERE op NOT IN ('read', 'write')) AS others,
        CAST(coalesce(sum(length_bytes) FILTER (WHERE op = 'read'), 0) AS BIGINT) AS read_bytes,
        CAST(coalesce(sum(length_bytes) FILTER (WHERE op = 'write'), 0) AS BIGINT) AS write_bytes,
        CAST(floor(avg(queue_ns)) AS BIGINT) AS queue_ns,
        CAST(floor(avg(service_ns)) AS BIGINT) AS service_ns
    FROM placed
    GROUP BY number, device
)
SELECT round(c.number * s.step_ns / 1e9, 9) AS from_s, round((c.number + 1) * s.step_ns / 1e9, 9) AS until_s, c.device, c.reads, c.writes, c.others,
    c.read_bytes, c.write_bytes, c.queue_ns, c.service_ns
FROM counted AS c
CROSS JOIN step AS s
ORDER BY c.number, c.device
