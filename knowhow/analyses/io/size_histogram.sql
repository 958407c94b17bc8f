-- I/O size histogram
-- Reads and writes per power-of-two class of size: 0, 1, 2, 3-4, 5-8, 9-16, ... bytes. Failed calls have no size.
-- needs:  calls
-- column: size_from BIGINT     Smallest size in the class [B].
-- column: size_to BIGINT       Largest size in the class [B].
-- column: reads BIGINT         Read calls in the class.
-- column: writes BIGINT        Write calls in the class.
-- column: read_bytes BIGINT    Bytes read by them [B].
-- column: write_bytes BIGINT   Bytes written by them [B].
-- chart:  classes x=size_to y=reads,writes title="Calls by size" title_ja="サイズごとの回数"
-- chart:  classes x=size_to y=read_bytes,write_bytes title="Bytes by size" title_ja="サイズごとのバイト数"
-- tags:   size, calls, bytes
WITH sizes AS (
    SELECT transferred_bytes AS size, class, count(*) AS calls
    FROM calls
    -- coalesce: DuckDB then looks for the classes while it decodes; a bare IN it would make ORs, tested on decoded rows.
    WHERE coalesce(class, '') IN ('read', 'write') AND transferred_bytes IS NOT NULL
    GROUP BY transferred_bytes, class
), guessed AS (
    SELECT size, class, calls, CAST(power(2, ceil(log2(greatest(size, 2))) - 1) AS BIGINT) AS half
    FROM sizes
), classed AS (
    -- The logarithm is rounded: next to a power of two the guess may be one class off. Integers decide.
    SELECT size, class, calls,
        CASE WHEN size < 2 THEN size WHEN size <= half THEN half WHEN size <= half * 2 THEN half * 2 ELSE half * 4 END AS size_to
    FROM guessed
)
SELECT
    CASE WHEN size_to < 2 THEN size_to ELSE CAST(floor(size_to / 2) AS BIGINT) + 1 END AS size_from,
    size_to,
    CAST(coalesce(sum(calls) FILTER (WHERE class = 'read'), 0) AS BIGINT) AS reads,
    CAST(coalesce(sum(calls) FILTER (WHERE class = 'write'), 0) AS BIGINT) AS writes,
    CAST(coalesce(sum(size * calls) FILTER (WHERE class = 'read'), 0) AS BIGINT) AS read_bytes,
    CAST(coalesce(sum(size * calls) FILTER (WHERE class = 'write'), 0) AS BIGINT) AS write_bytes
FROM classed
GROUP BY size_to
ORDER BY size_to
