-- System calls by location in the program
-- Where in the program system calls were made: the innermost function of each call's stack that belongs neither to the
-- C library nor to the loader. Calls without a stack are left out; strace prints stacks with -k.
-- needs:  calls, stacks
-- column: function VARCHAR    Function that made the call; empty if the tracer did not know it.
-- column: object VARCHAR      Executable or library that contains it.
-- column: source VARCHAR      Source file and line; empty unless the log was made with strace -kk.
-- column: call VARCHAR        Name of the system call.
-- column: calls BIGINT        Number of calls.
-- column: errors BIGINT       Calls that returned an error.
-- column: time_ns BIGINT      Time in the calls [ns].
-- column: bytes BIGINT        Bytes transferred [B].
-- sums:   calls, errors, time_ns, bytes
-- match:  function, object, source, call
-- chart:  bars x=function y=time_ns color=call title="Time by function" title_ja="関数ごとの所要時間"
-- chart:  bars x=function y=calls color=call title="Calls by function" title_ja="関数ごとの回数"
-- tags:   calls, time, bytes
WITH places AS (
    -- Where a stack lies in these libraries as a whole, the innermost frame stands for it.
    SELECT stack_id, coalesce(min(frame) FILTER (WHERE regexp_extract(object,
        '(^|/)(ld(-[^/]*)?|lib(c|dl|rt|aio|pthread|gcc_s|stdc[+][+])(-[0-9.]+)?)[.]so([.]|$)', 2) = ''), 0) AS frame
    FROM stacks
    GROUP BY stack_id
), used AS (
    SELECT stack_id, call, count(*) AS number, count(errno) AS failed, sum(dur_ns) AS ns, sum(transferred_bytes) AS moved
    FROM calls
    WHERE stack_id IS NOT NULL
    GROUP BY stack_id, call
)
SELECT
    f.function,
    f.object,
    f.source,
    u.call,
    CAST(sum(u.number) AS BIGINT) AS calls,
    CAST(sum(u.failed) AS BIGINT) AS errors,
    CAST(sum(u.ns) AS BIGINT) AS time_ns,
    CAST(sum(u.moved) AS BIGINT) AS bytes
FROM used AS u
JOIN places AS p ON p.stack_id = u.stack_id
JOIN stacks AS f ON f.stack_id = p.stack_id AND f.frame = p.frame
GROUP BY f.function, f.object, f.source, u.call
ORDER BY coalesce(time_ns, 0) DESC, calls DESC, f.object, f.function, f.source, u.call
