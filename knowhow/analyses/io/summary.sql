-- I/O summary by call
-- One row per system call: count, result, duration, bytes transferred.
-- needs:  object_use
-- column: call VARCHAR        Name of the system call.
-- column: calls BIGINT        Number of calls.
-- column: ok BIGINT           Calls that returned without an error.
-- column: errors BIGINT       Calls that returned an error.
-- column: time_ns BIGINT      Time in the calls [ns].
-- column: avg_ns BIGINT       Average time of a call [ns].
-- column: min_ns BIGINT       Shortest call [ns].
-- column: max_ns BIGINT       Longest call [ns].
-- column: bytes BIGINT        Bytes transferred [B].
-- column: avg_bytes DOUBLE    Average bytes of a call that transferred or could have transferred data [B].
-- column: min_bytes BIGINT    Fewest bytes of a call [B].
-- column: max_bytes BIGINT    Most bytes of a call [B].
-- sums:   calls, ok, errors, time_ns, bytes
-- match:  call
-- chart:  stacked_bars x=call y=ok,errors title="Calls" title_ja="回数"
-- chart:  bars x=call y=time_ns title="Time in calls" title_ja="所要時間"
-- chart:  bars x=call y=bytes title="Bytes transferred" title_ja="バイト数"
-- tags:   calls, time, bytes, errors
SELECT
    call,
    CAST(sum(calls) AS BIGINT) AS calls,
    CAST(coalesce(sum(returned) FILTER (WHERE errno IS NULL), 0) AS BIGINT) AS ok,
    CAST(coalesce(sum(calls) FILTER (WHERE errno IS NOT NULL), 0) AS BIGINT) AS errors,
    CAST(sum(time_ns) AS BIGINT) AS time_ns,
    CAST(round(sum(time_ns) / sum(timed_calls)) AS BIGINT) AS avg_ns,
    min(shortest_ns) AS min_ns,
    max(longest_ns) AS max_ns,
    CAST(sum(transferred_bytes) AS BIGINT) AS bytes,
    round(sum(transferred_bytes) / sum(sized_calls), 1) AS avg_bytes,
    min(smallest_bytes) AS min_bytes,
    max(largest_bytes) AS max_bytes
FROM object_use
GROUP BY call
ORDER BY coalesce(sum(time_ns), 0) DESC, sum(calls) DESC, call
