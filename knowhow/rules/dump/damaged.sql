-- Damaged structures
-- Parts of a dump that could not be read, incomplete rows, and kernel counters that disagree.
-- needs:  dump_tasks
-- uses:   dump_stacks, dump_files, dump_mounts, dump_modules, dump_cpus, dump_slabs, dump_requests, dump_sockets, dump_counts, import_issues
-- column: subject VARCHAR       The table.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Rows of it with a part that could not be read, or that do not agree.
-- column: limit_value DOUBLE    Not used.
-- column: cost_ns BIGINT        Not known [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     low where numbers differ by two at most, or pages were left out of the dump; high else.
-- column: rows BIGINT           All rows of the table.
-- column: why VARCHAR           What their status is, or what could not be read; of several the first by name.
-- says: finding en  {subject}: {value} of {rows:row} {rows?is|are} damaged or inconsistent. First: {why}.
-- says: finding ja  {subject}: {rows} 行のうち {value} 行が壊れているか一致しません。最初のもの: {why}。
-- says: ok en  Every structure could be read, and the kernel's redundant counters agree.
-- says: ok ja  すべての構造を読み取れ、カーネルが二重に保持する数も一致しています。
-- says: unknown en  The tasks in the dump could not be read.
-- says: unknown ja  ダンプのタスクを読み取れませんでした。
-- evidence: dump/counts
-- tags:   errors
WITH statuses AS (
    SELECT 'dump_tasks' AS name, t.status, 3 AS apart FROM dump_tasks AS t
    UNION ALL
    SELECT 'dump_stacks', s.status, 3 FROM dump_stacks AS s
    UNION ALL
    SELECT 'dump_files', f.status, 3 FROM dump_files AS f
    UNION ALL
    SELECT 'dump_mounts', m.status, 3 FROM dump_mounts AS m
    UNION ALL
    SELECT 'dump_modules', m.status, 3 FROM dump_modules AS m
    UNION ALL
    SELECT 'dump_cpus', c.status, 3 FROM dump_cpus AS c
    UNION ALL
    SELECT 'dump_slabs', s.status, 3 FROM dump_slabs AS s
    UNION ALL
    SELECT 'dump_requests', q.status, 3 FROM dump_requests AS q
    UNION ALL
    SELECT 'dump_sockets', s.status, 3 FROM dump_sockets AS s
    UNION ALL
    -- What could not be read at all has no row.
    SELECT
        'import_issues',
        -- A fact, `dump/unread`, or the text of a recording of format 4.
        CASE WHEN regexp_extract(i.detail, '("why":"|: )interrupted("|$)', 0) <> '' THEN 'interrupted' ELSE i.detail END,
        CASE WHEN regexp_extract(i.detail, '("why":"|: )not in the dump("|$)', 0) <> '' THEN 2 ELSE 3 END
    FROM import_issues AS i
    WHERE i.issue = 'dump_unreadable'
    UNION ALL
    SELECT 'dump_counts', c.status, CASE WHEN c.status = 'differs' THEN abs(c.found - c.expected) ELSE 3 END FROM dump_counts AS c
), tables AS (
    SELECT
        s.name,
        count(*) AS rows_,
        -- What was not read because somebody broke it off says nothing.
        sum(CASE WHEN s.status NOT IN ('ok', 'interrupted') THEN 1 ELSE 0 END) AS bad,
        min(CASE WHEN s.status NOT IN ('ok', 'interrupted') THEN s.status END) AS why,
        sum(CASE WHEN s.status NOT IN ('ok', 'interrupted', 'not in the dump') AND s.apart > 2 THEN 1 ELSE 0 END) AS sure
    FROM statuses AS s
    GROUP BY s.name
), state AS (
    SELECT count(*) AS tasks FROM dump_tasks
)

SELECT
    t.name AS subject,
    CASE WHEN s.tasks = 0 THEN 'unknown' WHEN t.name IS NOT NULL THEN 'finding' ELSE 'ok' END AS status,
    CAST(t.bad AS DOUBLE) AS value,
    CAST(NULL AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN t.name IS NULL THEN NULL WHEN t.sure > 0 THEN 'high' ELSE 'low' END AS certainty,
    t.rows_ AS rows,
    t.why
FROM state AS s
LEFT JOIN tables AS t ON t.bad > 0 AND s.tasks > 0
ORDER BY t.name
