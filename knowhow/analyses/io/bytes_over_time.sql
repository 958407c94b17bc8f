-- Bytes over time
-- Bytes transferred by the reads and writes that began in each time step. A step without any has no row.
-- needs:  calls, recording
-- param:  interval_s DOUBLE = 1.0 > 0   Length of a step; fractions allowed [s].
-- column: from_s DOUBLE         Start of the step, since the start of the recording [s].
-- column: until_s DOUBLE        End of the step [s].
-- column: reads BIGINT          Reads that began in the step and transferred data or found the end.
-- column: writes BIGINT         Writes that began in the step and transferred data.
-- column: read_bytes BIGINT     Bytes read [B].
-- column: write_bytes BIGINT    Bytes written [B].
-- chart:  lines x=from_s x2=until_s y=read_bytes,write_bytes title="Bytes per step" title_ja="区間ごとのバイト数"
-- tags:   bytes, calls, time
WITH step AS (
    SELECT started_ns, greatest(CAST(round(least($interval_s, 1e9) * 1e9) AS BIGINT), 1) AS step_ns
    FROM recording
), placed AS (
    SELECT CAST(floor((c.ts_ns - s.started_ns) / s.step_ns) AS BIGINT) AS number, c.class, c.transferred_bytes
    FROM calls AS c
    CROSS JOIN step AS s
    WHERE c.class IN ('read', 'write') AND c.transferred_bytes IS NOT NULL
), counted AS (
    SELECT number,
        count(*) FILTER (WHERE class = 'read') AS reads,
        count(*) FILTER (WHERE class = 'write') AS writes,
        CAST(coalesce(sum(transferred_bytes) FILTER (WHERE class = 'read'), 0) AS BIGINT) AS read_bytes,
        CAST(coalesce(sum(transferred_bytes) FILTER (WHERE class = 'write'), 0) AS BIGINT) AS write_bytes
    FROM placed
    GROUP BY number
)
SELECT round(c.number * s.step_ns / 1e9, 9) AS from_s, round((c.number + 1) * s.step_ns / 1e9, 9) AS until_s, c.reads, c.writes, c.read_bytes, c.write_bytes
FROM counted AS c
CROSS JOIN step AS s
ORDER BY c.number
