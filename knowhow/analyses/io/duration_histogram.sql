-- Duration histogram
-- Calls and their time per power-of-two class of duration: 0, 1, 2, 3-4, 5-8, ... ns. Calls that wait for others (sleeps, locks,
-- signals, ends of children, and calls on pipes, sockets and events) are separate. Calls without a duration are left out.
-- needs:  calls
-- column: from_ns BIGINT        Shortest duration in the class [ns].
-- column: to_ns BIGINT          Longest duration in the class [ns].
-- column: read_calls BIGINT     Reads of the class that do not wait for others.
-- column: write_calls BIGINT    Writes, copies and syncs that do not wait for others.
-- column: other_calls BIGINT    All other calls that do not wait for others.
-- column: wait_calls BIGINT     Calls that wait for others.
-- column: read_ns BIGINT        Time in these reads [ns].
-- column: write_ns BIGINT       Time in these writes, copies and syncs [ns].
-- column: other_ns BIGINT       Time in the other calls that do not wait for others [ns].
-- column: wait_ns BIGINT        Time in the calls that wait for others [ns].
-- column: share_calls DOUBLE    Share of all calls that do not wait for others that took from_ns or longer [%].
-- column: share_time DOUBLE     Share of their time that was spent in calls of from_ns or longer [%].
-- chart:  classes x=to_ns y=read_calls,write_calls,other_calls,wait_calls title="Calls" title_ja="回数"
-- chart:  classes x=to_ns y=read_ns,write_ns,other_ns title="Time, without waits" title_ja="所要時間（待ちを除く）"
-- chart:  curves x=from_ns y=share_time,share_calls x_scale=log title="Share of this duration or longer, without waits" title_ja="この時間以上の割合（待ちを除く）"
-- tags:   time, calls
WITH parted AS (
    SELECT dur_ns AS ns, CASE
            WHEN class IN ('wait', 'lock', 'time', 'signal') OR starts_with(call, 'wait') THEN 'wait'
            WHEN coalesce(kind, '') IN ('pipe', 'socket', 'anonymous') THEN 'wait'
            WHEN class = 'read' THEN 'read'
            WHEN class IN ('write', 'copy', 'sync') THEN 'write'
            ELSE 'other'
        END AS part
    FROM calls
    WHERE dur_ns >= 0 AND via IS NULL
), counted AS (
    SELECT ns, part, count(*) AS calls
    FROM parted
    GROUP BY ns, part
), guessed AS (
    SELECT ns, part, calls, CAST(power(2, ceil(log2(greatest(ns, 2))) - 1) AS BIGINT) AS half
    FROM counted
), classed AS (
    -- The logarithm is rounded: next to a power of two the guess may be one class off. Integers decide.
    SELECT ns, part, calls,
        CASE WHEN ns < 2 THEN ns WHEN ns <= half THEN half WHEN ns <= half * 2 THEN half * 2 ELSE half * 4 END AS to_ns
    FROM guessed
), summed AS (
    SELECT to_ns,
        coalesce(sum(calls) FILTER (WHERE part = 'read'), 0) AS read_calls,
        coalesce(sum(calls) FILTER (WHERE part = 'write'), 0) AS write_calls,
        coalesce(sum(calls) FILTER (WHERE part = 'other'), 0) AS other_calls,
        coalesce(sum(calls) FILTER (WHERE part = 'wait'), 0) AS wait_calls,
        coalesce(sum(ns * calls) FILTER (WHERE part = 'read'), 0) AS read_ns,
        coalesce(sum(ns * calls) FILTER (WHERE part = 'write'), 0) AS write_ns,
        coalesce(sum(ns * calls) FILTER (WHERE part = 'other'), 0) AS other_ns,
        coalesce(sum(ns * calls) FILTER (WHERE part = 'wait'), 0) AS wait_ns,
        coalesce(sum(calls) FILTER (WHERE part <> 'wait'), 0) AS busy_calls,
        coalesce(sum(ns * calls) FILTER (WHERE part <> 'wait'), 0) AS busy_ns
    FROM classed
    GROUP BY to_ns
), shared AS (
    SELECT s.*,
        sum(busy_calls) OVER (ORDER BY to_ns DESC) AS slower_calls, sum(busy_calls) OVER () AS all_calls,
        sum(busy_ns) OVER (ORDER BY to_ns DESC) AS slower_ns, sum(busy_ns) OVER () AS all_ns
    FROM summed AS s
)
SELECT
    CASE WHEN to_ns < 2 THEN to_ns ELSE CAST(floor(to_ns / 2) AS BIGINT) + 1 END AS from_ns,
    to_ns,
    CAST(read_calls AS BIGINT) AS read_calls,
    CAST(write_calls AS BIGINT) AS write_calls,
    CAST(other_calls AS BIGINT) AS other_calls,
    CAST(wait_calls AS BIGINT) AS wait_calls,
    CAST(read_ns AS BIGINT) AS read_ns,
    CAST(write_ns AS BIGINT) AS write_ns,
    CAST(other_ns AS BIGINT) AS other_ns,
    CAST(wait_ns AS BIGINT) AS wait_ns,
    CASE WHEN all_calls > 0 THEN round(CAST(slower_calls AS DOUBLE) * 100 / all_calls, 4) END AS share_calls,
    CASE WHEN all_ns > 0 THEN round(CAST(slower_ns AS DOUBLE) * 100 / all_ns, 4) END AS share_time
FROM shared
ORDER BY to_ns
