-- Pages over time
-- When each memory page was used, as a picture with one row per page, in order of first use.
-- needs:  page_references
-- param:  request INTEGER = 0           Only this request; 0: all.
-- param:  kind VARCHAR = ''             Only instruction, or data; empty: both.
-- column: step BIGINT                   First step of a period.
-- column: row BIGINT                    Row of the page in the picture: pages in the order in which they were first used, from 0.
-- column: page BIGINT                   Number of the page: its address divided by 4,096; for the kernel, the lower 63 bits of its address.
-- column: mode VARCHAR                  Code that used it: user (a program), library or kernel.
-- column: kind VARCHAR                  instruction or data.
-- column: times BIGINT                  How often it was used then.
-- chart:  points x=step y=row color=mode title="Pages over time" title_ja="ページと時間"
-- tags:   size, time
WITH used AS (
    SELECT p.page, p.mode, p.kind, p.interval * p.interval_steps AS step, sum(p.times) AS times
    FROM page_references AS p
    WHERE ($request = 0 OR p.request_id = $request) AND ($kind = '' OR p.kind = $kind)
    GROUP BY p.page, p.mode, p.kind, p.interval * p.interval_steps
), firsts AS (
    SELECT u.page, min(u.step) AS step FROM used AS u GROUP BY u.page
), numbered AS (
    SELECT f.page, row_number() OVER (ORDER BY f.step, f.page) - 1 AS place FROM firsts AS f
)

SELECT
    u.step,
    n.place AS row,
    u.page,
    u.mode,
    u.kind,
    CAST(u.times AS BIGINT) AS times
FROM used AS u
INNER JOIN numbered AS n ON n.page = u.page
ORDER BY u.step, n.place, u.kind, u.mode
