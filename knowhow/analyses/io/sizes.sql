-- I/O by exact size
-- One row per size in bytes: the exact sizes a program uses. Failed calls have no size.
-- needs:  calls
-- column: size BIGINT       Bytes a call transferred [B].
-- column: class VARCHAR     What the calls do: read, write, copy or socket.
-- column: calls BIGINT      Number of calls.
-- column: bytes BIGINT      Bytes transferred by them [B].
-- column: time_ns BIGINT    Time in these calls [ns].
-- sums:   calls, bytes, time_ns
-- match:  size, class
-- chart:  points x=size y=calls color=class x_scale=log y_scale=log title="Calls by size" title_ja="サイズごとの回数"
-- tags:   size, calls, bytes, time
SELECT
    transferred_bytes AS size,
    class,
    count(*) AS calls,
    CAST(sum(transferred_bytes) AS BIGINT) AS bytes,
    CAST(sum(dur_ns) AS BIGINT) AS time_ns
FROM calls
WHERE transferred_bytes IS NOT NULL
GROUP BY transferred_bytes, class
ORDER BY size, class
