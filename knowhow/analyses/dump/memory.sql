-- Memory of a crashed kernel
-- What used the memory, according to the kernel's own counters.
-- needs:  dump_memory
-- question: mem-summary What filled the memory
-- reads:  memory
-- column: name VARCHAR          total, free, or the kernel's name of the counter.
-- column: bytes BIGINT          Its size [B].
-- column: part DOUBLE           Share of the total [%].
-- heads_ja:  part=割合
-- match:  name
-- tags:   size
WITH whole AS (
    SELECT max(CASE WHEN m.name = 'total' THEN m.bytes END) AS bytes FROM dump_memory AS m
)

SELECT
    m.name,
    m.bytes,
    CASE WHEN w.bytes > 0 THEN round(1e2 * m.bytes / w.bytes, 2) END AS part
FROM dump_memory AS m
CROSS JOIN whole AS w
WHERE m.bytes > 0
ORDER BY m.bytes DESC, m.name
