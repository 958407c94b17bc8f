-- Memory pages used
-- How many 4 KiB pages a request used, for instructions and for data, and how often.
-- needs:  page_references
-- param:  request INTEGER = 0           Only this request; 0: all.
-- column: mode VARCHAR                  Code that used them: user (a program), library or kernel.
-- column: kind VARCHAR                  instruction or data.
-- column: pages BIGINT                  Number of distinct pages.
-- column: references BIGINT             Instructions executed on them, or accesses to data on them.
-- match:  mode, kind
-- sums:   pages, references
-- chart:  bars x=mode y=pages color=kind title="Pages used" title_ja="使われたページ数"
-- tags:   size
WITH used AS (
    SELECT p.mode, p.kind, p.page, sum(p.times) AS times
    FROM page_references AS p
    WHERE $request = 0 OR p.request_id = $request
    GROUP BY p.mode, p.kind, p.page
)

SELECT
    u.mode,
    u.kind,
    count(*) AS pages,
    CAST(sum(u.times) AS BIGINT) AS "references"
FROM used AS u
GROUP BY u.mode, u.kind
ORDER BY u.mode, u.kind
