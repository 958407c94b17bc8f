-- I/O summary by call
-- One row per system call: how often, how it ended, how long it took, what it moved.
-- needs:  calls
-- column: call VARCHAR        Name of the system call.
-- column: calls BIGINT        Number of calls.
-- column: ok BIGINT           Calls that returned without an error.
-- column: errors BIGINT       Calls that returned an error.
-- column: time_ns BIGINT      Time in the calls [ns].
-- column: avg_ns BIGINT       Average time of a call [ns].
-- column: min_ns BIGINT       Shortest call [ns].
-- column: max_ns BIGINT       Longest call [ns].
-- column: bytes BIGINT        Bytes moved [B].
-- column: avg_bytes DOUBLE    Average bytes of a call that moved or could have moved any [B].
-- column: min_bytes BIGINT    Fewest bytes of a call [B].
-- column: max_bytes BIGINT    Most bytes of a call [B].
-- chart:  stacked_bars x=call y=ok,errors title="Calls" title_ja="回数"
-- chart:  bars x=call y=time_ns title="Time in the calls" title_ja="所要時間"
-- chart:  bars x=call y=bytes title="Bytes moved" title_ja="バイト数"
-- tags:   calls, time, bytes, errors
SELECT
    call,
    count(*) AS calls,
    count(*) FILTER (WHERE errno IS NULL AND result IS NOT NULL) AS ok,
    count(errno) AS errors,
    CAST(sum(dur_ns) AS BIGINT) AS time_ns,
    CAST(round(avg(dur_ns)) AS BIGINT) AS avg_ns,
    min(dur_ns) AS min_ns,
    max(dur_ns) AS max_ns,
    CAST(sum(transferred_bytes) AS BIGINT) AS bytes,
    round(avg(transferred_bytes), 1) AS avg_bytes,
    min(transferred_bytes) AS min_bytes,
    max(transferred_bytes) AS max_bytes
FROM calls
GROUP BY call
ORDER BY coalesce(time_ns, 0) DESC, calls DESC, call
