-- Kernel memory allocations
-- Kernel functions that allocated memory for the recorded programs, or freed it: by call site, kind of memory and cache.
-- needs:  allocations, processes
-- column: kind VARCHAR          kmalloc, cache (objects of a slab cache), or pages.
-- column: freed BOOLEAN         Whether memory was freed, not allocated.
-- column: function VARCHAR      Kernel function with the call; empty: freed pages, or an unknown name.
-- column: cache VARCHAR         Slab cache; empty: another kind.
-- column: size_bytes BIGINT     Size of each; empty: kfree does not report it [B].
-- column: number BIGINT         Number of times.
-- column: share DOUBLE          Share of all allocations, or of all freed memory.
-- column: asked_bytes BIGINT    Total requested; empty: freed memory [B].
-- column: given_bytes BIGINT    Total allocated or freed; empty: unknown [B].
-- column: processes BIGINT      Processes for which it happened.
-- column: most_of VARCHAR       The process with the largest part: program and process id.
-- sums:   number, asked_bytes, given_bytes
-- match:  kind, freed, function, cache, size_bytes
-- chart:  bars x=function y=number color=kind title="Kernel memory allocations" title_ja="カーネルのメモリ確保"
-- tags:   cpu, processes
WITH taken AS (
    SELECT a.kind, a.freed, a.function, a.cache, a.size_bytes, a.number, a.asked_bytes, a.given_bytes, a.task_id,
        CASE WHEN p.task_id IS NULL THEN '?' ELSE concat(coalesce(p.comm, '?'), ' ', CAST(p.pid AS VARCHAR)) END AS process
    FROM allocations AS a
    LEFT JOIN processes AS p ON p.task_id = a.task_id
), by_process AS (
    SELECT t.kind, t.freed, t.function, t.cache, t.size_bytes, t.task_id, t.process,
        sum(t.number) AS number, sum(t.asked_bytes) AS asked_bytes, sum(t.given_bytes) AS given_bytes
    FROM taken AS t
    GROUP BY t.kind, t.freed, t.function, t.cache, t.size_bytes, t.task_id, t.process
), whole AS (
    SELECT b.freed, sum(b.number) AS number FROM by_process AS b GROUP BY b.freed
)
SELECT
    b.kind,
    b.freed,
    b.function,
    b.cache,
    b.size_bytes,
    CAST(sum(b.number) AS BIGINT) AS number,
    round(1e0 * sum(b.number) / greatest(max(w.number), 1), 4) AS share,
    CAST(sum(b.asked_bytes) AS BIGINT) AS asked_bytes,
    CAST(sum(b.given_bytes) AS BIGINT) AS given_bytes,
    count(*) AS processes,
    arg_max(b.process, b.number) AS most_of
FROM by_process AS b
INNER JOIN whole AS w ON w.freed = b.freed
GROUP BY b.kind, b.freed, b.function, b.cache, b.size_bytes
ORDER BY number DESC, b.freed, b.kind, b.function NULLS FIRST, b.cache NULLS FIRST, b.size_bytes
