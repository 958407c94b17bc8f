-- Endless list
-- A list or tree of a crashed kernel that loops, or that is implausibly long.
-- needs:  crash_dumps, import_issues
-- column: subject VARCHAR       The list.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Lists of this kind.
-- column: limit_value DOUBLE    Not used.
-- column: cost_ns BIGINT        Not known [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     high where it comes back to an entry; medium where it is only too long.
-- column: why VARCHAR           cycle, or too long.
-- says: finding en  {subject} does not end ({why}): a kernel that walks it hangs.
-- says: finding ja  {subject} に終わりがありません（{why:ja}）。これをたどるカーネルは停止します。
-- says: ok en  Every kernel list that was followed ends.
-- says: ok ja  たどったカーネルのリストにはすべて終わりがあります。
-- says: unknown en  No dump was read.
-- says: unknown ja  ダンプを読み取っていません。
-- tags:   errors
WITH broken AS (
    SELECT
        -- A fact, `dump/unread`, or the text of a recording of format 4.
        concat(regexp_extract(i.detail, '"what":"([^"]*)"', 1), regexp_extract(i.detail, '^([^"]*): (cycle|too long)$', 1)) AS name,
        regexp_extract(i.detail, '("why":"|: )(cycle|too long)("|$)', 2) AS why,
        count(*) AS times
    FROM import_issues AS i
    WHERE i.issue = 'dump_unreadable' AND regexp_extract(i.detail, '("why":"|: )(cycle|too long)("|$)', 2) <> ''
    GROUP BY i.detail
), state AS (
    SELECT count(*) AS dumps FROM crash_dumps
)

SELECT
    b.name AS subject,
    CASE WHEN b.name IS NOT NULL THEN 'finding' WHEN s.dumps > 0 THEN 'ok' ELSE 'unknown' END AS status,
    CAST(b.times AS DOUBLE) AS value,
    CAST(NULL AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN b.name IS NULL THEN NULL WHEN b.why = 'cycle' THEN 'high' ELSE 'medium' END AS certainty,
    b.why
FROM state AS s
LEFT JOIN broken AS b ON s.dumps > 0
ORDER BY b.name
