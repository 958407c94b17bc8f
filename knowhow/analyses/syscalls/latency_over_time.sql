-- System call latency over time
-- Distribution of the duration of system calls, for each interval. Calls that wait for others are left out.
-- needs:  calls, recording
-- param:  interval_s DOUBLE = 1 > 0    Length of an interval [s].
-- column: from_s DOUBLE     Start of the interval, since the start of the recording [s].
-- column: until_s DOUBLE    End of the interval [s].
-- column: from_ns BIGINT    Duration of the calls, from [ns].
-- column: to_ns BIGINT      Upper end of the range, exclusive [ns].
-- column: calls BIGINT    Calls in this class.
-- chart:  latencies x=from_s x2=until_s y=from_ns,to_ns,calls title="Duration" title_ja="所要時間"
-- tags:   time, calls
WITH placed AS (
    SELECT floor((t.ts_ns - g.started_ns) / (1e9 * $interval_s)) AS step, t.dur_ns AS ns,
        power(2, floor(log2(greatest(t.dur_ns, 1)))) AS low
    FROM calls AS t CROSS JOIN recording AS g
    WHERE t.dur_ns IS NOT NULL AND t.via IS NULL AND t.class NOT IN ('wait', 'lock', 'process')
), classes AS (
    -- Four classes of equal width between a power of two and the next.
    SELECT p.step, CASE WHEN p.ns < 1 THEN 0 ELSE p.low / 4 * floor(4 * p.ns / p.low) END AS low,
        CASE WHEN p.ns < 1 THEN 1 ELSE ceil(p.low / 4 * (floor(4 * p.ns / p.low) + 1)) END AS high
    FROM placed AS p
)
SELECT
    round(c.step * $interval_s, 6) AS from_s,
    round((c.step + 1) * $interval_s, 6) AS until_s,
    CAST(c.low AS BIGINT) AS from_ns,
    CAST(c.high AS BIGINT) AS to_ns,
    count(*) AS calls
FROM classes AS c
GROUP BY c.step, c.low, c.high
ORDER BY from_s, from_ns
