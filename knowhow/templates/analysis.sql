-- {title}
-- One row per system call. Say here, in plain words, which question it answers.
-- needs:  calls
-- param:  min_dur_ns BIGINT = 0   Leave out shorter calls [ns].
-- column: call VARCHAR     Name of the system call.
-- column: calls BIGINT     Number of calls.
-- column: time_ns BIGINT   Time in the calls [ns].
-- chart:  bars x=call y=time_ns
-- tags:   calls, time
SELECT
    call,
    count(*) AS calls,
    CAST(sum(dur_ns) AS BIGINT) AS time_ns
FROM calls
WHERE coalesce(dur_ns, 0) >= $min_dur_ns
GROUP BY call
ORDER BY coalesce(time_ns, 0) DESC, call
