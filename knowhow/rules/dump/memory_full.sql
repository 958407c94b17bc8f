-- What exhausted memory
-- The memory of a crashed kernel was exhausted, and what used most of it: one process, kernel objects, shared memory, or dirty data.
-- needs:  dump_memory
-- uses:   dump_tasks, dump_slabs, dump_panic
-- param:  max_left DOUBLE = 0.05 > 0    More of the memory that is free, or can be freed at once, is not exhausted.
-- column: subject VARCHAR       What most of the memory was used for.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the memory that was used for it [ratio].
-- column: limit_value DOUBLE    Not used.
-- column: cost_ns BIGINT        Not known [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     high where it takes at least half of the memory; medium where it is the largest of several.
-- column: bytes BIGINT          How much that is [B].
-- column: left_share DOUBLE     Share of the memory that was free, or could have been freed at once [ratio].
-- column: detail VARCHAR        Of objects of the kernel: the largest cache of them. Else empty.
-- says: finding en  Memory was exhausted ({left_share} left). The largest user is {subject}{detail}: {bytes}, {value} of all memory.
-- says: finding ja  メモリが枯渇していました（残り {left_share}）。最大の用途は {subject}{detail} の {bytes} で、全体の {value} です。
-- says: ok en  Memory was available when the kernel stopped.
-- says: ok ja  停止時にメモリは残っていました。
-- says: unknown en  The memory counters could not be read.
-- says: unknown ja  メモリのカウンターを読み取れませんでした。
-- evidence: dump/memory
-- tags:   size, bytes
WITH stop AS (
    -- What the kernel itself could not free, it could not have freed.
    SELECT coalesce(max(CASE WHEN p.cause = 'out of memory' THEN 1 ELSE 0 END), 0) AS had_none FROM dump_panic AS p
), counters AS (
    SELECT
        max(CASE WHEN m.name = 'total' THEN m.bytes END) AS total,
        max(CASE WHEN m.name = 'free' THEN m.bytes END) AS free,
        coalesce(max(CASE WHEN m.name = 'NR_FILE_PAGES' THEN m.bytes END), 0) AS cached,
        coalesce(max(CASE WHEN m.name = 'NR_SHMEM' THEN m.bytes END), 0) AS shared,
        coalesce(max(CASE WHEN m.name = 'NR_FILE_DIRTY' THEN m.bytes END), 0) AS dirty,
        coalesce(max(CASE WHEN m.name = 'NR_WRITEBACK' THEN m.bytes END), 0) AS written,
        coalesce(max(CASE WHEN m.name = 'NR_SLAB_RECLAIMABLE_B' THEN m.bytes END), 0) AS reclaimable,
        coalesce(max(CASE WHEN m.name = 'NR_SLAB_UNRECLAIMABLE_B' THEN m.bytes END), 0) AS fixed,
        coalesce(max(CASE WHEN m.name = 'NR_PAGETABLE' THEN m.bytes END), 0) AS tables,
        coalesce(max(CASE WHEN m.name = 'NR_KERNEL_STACK_KB' THEN m.bytes END), 0) AS stacks
    FROM dump_memory AS m
), left_over AS (
    SELECT
        c.*,
        CASE
            WHEN s.had_none = 1 THEN c.free
            ELSE c.free + greatest(c.cached - c.shared - c.dirty - c.written, 0) + c.reclaimable
        END AS remaining
    FROM counters AS c
    CROSS JOIN stop AS s
), largest AS (
    SELECT
        concat('process ', coalesce(t.comm, '?'), ' (', t.pid, ')') AS name,
        t.rss_bytes AS bytes,
        row_number() OVER (ORDER BY t.rss_bytes DESC, t.pid) AS place
    FROM dump_tasks AS t
    WHERE t.pid = t.tgid AND t.rss_bytes IS NOT NULL
), uses_ AS (
    SELECT l.name, l.bytes FROM largest AS l WHERE l.place = 1
    UNION
    SELECT 'objects of the kernel', c.fixed FROM counters AS c
    UNION
    SELECT 'shared memory and tmpfs', c.shared FROM counters AS c
    UNION
    SELECT 'data to be written to disks', c.dirty + c.written FROM counters AS c
    UNION
    SELECT 'page tables', c.tables FROM counters AS c
    UNION
    SELECT 'kernel stacks', c.stacks FROM counters AS c
), top AS (
    SELECT arg_max(u.name, u.bytes) AS name, max(u.bytes) AS bytes FROM uses_ AS u
), slabs AS (
    SELECT arg_max(s.name, s.bytes) AS name, max(s.bytes) AS bytes FROM dump_slabs AS s
), judged AS (
    SELECT
        t.name,
        t.bytes,
        s.name AS cache,
        c.total,
        CAST(c.remaining AS DOUBLE) / c.total AS left_share,
        CAST(t.bytes AS DOUBLE) / c.total AS share,
        c.free IS NOT NULL AND c.total > 0 AND CAST(c.remaining AS DOUBLE) / c.total <= $max_left AS is_full
    FROM left_over AS c
    CROSS JOIN top AS t
    CROSS JOIN slabs AS s
)

SELECT
    CASE WHEN j.is_full THEN j.name END AS subject,
    CASE WHEN coalesce(j.total, 0) = 0 THEN 'unknown' WHEN j.is_full THEN 'finding' ELSE 'ok' END AS status,
    CASE WHEN j.is_full THEN j.share END AS value,
    CAST(NULL AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN j.is_full THEN CASE WHEN j.share >= 0.5 THEN 'high' ELSE 'medium' END END AS certainty,
    CASE WHEN j.is_full THEN CAST(j.bytes AS BIGINT) END AS bytes,
    CASE WHEN j.is_full THEN j.left_share END AS left_share,
    CASE WHEN j.is_full AND j.name = 'objects of the kernel' AND j.cache IS NOT NULL THEN concat(' (', j.cache, ')') WHEN j.is_full THEN '' END AS detail
FROM judged AS j
