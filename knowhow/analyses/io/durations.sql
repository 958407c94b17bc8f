-- Durations by call
-- Distribution of the duration of each system call: minimum, percentiles, maximum. The p99 is the shortest duration that 99 %
-- of the calls do not exceed, and so on. Calls without a duration are left out.
-- needs:  calls
-- column: call VARCHAR     Name of the system call.
-- column: calls BIGINT     Number of calls with a duration.
-- column: time_ns BIGINT   Time in the calls [ns].
-- column: min_ns BIGINT    Shortest call [ns].
-- column: p25_ns BIGINT    A quarter of the calls took at most this [ns].
-- column: p50_ns BIGINT    Half of the calls took at most this: the median [ns].
-- column: p75_ns BIGINT    Three quarters of the calls took at most this [ns].
-- column: p90_ns BIGINT    90 % of the calls took at most this [ns].
-- column: p99_ns BIGINT    99 % of the calls took at most this [ns].
-- column: max_ns BIGINT    Longest call [ns].
-- column: slowest_share DOUBLE   Share of the time that was spent in calls beyond the p99 [%].
-- sums:   calls, time_ns
-- match:  call
-- chart:  ranges x=call y=min_ns,p25_ns,p50_ns,p75_ns,p99_ns,max_ns y_scale=log title="Duration" title_ja="所要時間"
-- tags:   time, calls
WITH counted AS (
    -- Tracers round durations: there are far fewer of them than calls.
    SELECT call, dur_ns, count(*) AS number
    FROM calls
    WHERE dur_ns IS NOT NULL
    GROUP BY call, dur_ns
), ranked AS (
    SELECT call, dur_ns, number,
        sum(number) OVER (PARTITION BY call ORDER BY dur_ns) AS upto,
        sum(number) OVER (PARTITION BY call) AS total
    FROM counted
)
SELECT
    call,
    CAST(sum(number) AS BIGINT) AS calls,
    CAST(sum(dur_ns * number) AS BIGINT) AS time_ns,
    min(dur_ns) AS min_ns,
    min(dur_ns) FILTER (WHERE upto * 4 >= total) AS p25_ns,
    min(dur_ns) FILTER (WHERE upto * 2 >= total) AS p50_ns,
    min(dur_ns) FILTER (WHERE upto * 4 >= total * 3) AS p75_ns,
    min(dur_ns) FILTER (WHERE upto * 10 >= total * 9) AS p90_ns,
    min(dur_ns) FILTER (WHERE upto * 100 >= total * 99) AS p99_ns,
    max(dur_ns) AS max_ns,
    CASE WHEN sum(dur_ns) > 0 THEN round(coalesce(CAST(
        sum(dur_ns * number) FILTER (WHERE (upto - number) * 100 >= total * 99) AS DOUBLE), 0) * 100 / sum(dur_ns * number), 2)
    END AS slowest_share
FROM ranked
GROUP BY call
ORDER BY time_ns DESC, calls DESC, call
