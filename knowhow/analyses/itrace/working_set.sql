-- Working set
-- How many memory pages were in use in each period, and how many of them were used for the first time.
-- needs:  page_references
-- param:  request INTEGER = 0           Only this request; 0: all.
-- column: step BIGINT                   First step of a period.
-- column: kind VARCHAR                  instruction or data.
-- column: pages BIGINT                  Distinct pages that were used then.
-- column: used_bytes BIGINT             Their size.
-- column: new_pages BIGINT              Pages that had not been used before.
-- chart:  curves x=step y=pages color=kind title="Pages in use" title_ja="使用中のページ数"
-- tags:   size, time
WITH pages AS (
    SELECT DISTINCT p.kind, p.page, p.interval * p.interval_steps AS step
    FROM page_references AS p
    WHERE $request = 0 OR p.request_id = $request
), firsts AS (
    SELECT p.kind, p.page, min(p.step) AS step FROM pages AS p GROUP BY p.kind, p.page
)

SELECT
    p.step,
    p.kind,
    count(*) AS pages,
    4096 * count(*) AS used_bytes,
    count(f.page) AS new_pages
FROM pages AS p
LEFT JOIN firsts AS f ON f.kind = p.kind AND f.page = p.page AND f.step = p.step
GROUP BY p.step, p.kind
ORDER BY p.step, p.kind
