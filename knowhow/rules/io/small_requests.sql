-- Small requests
-- Files that are read or written in many small pieces. Reads that found the end of the file (0 bytes) do not count.
-- Operations of libaio are requests too; what they cost is not known, as many are under way at a time.
-- needs:  calls
-- param:  small_bytes BIGINT = 4096 > 0   A read or write that moves less is small [B].
-- param:  good_bytes BIGINT = 65536 > 0   Size of request to compare with [B].
-- param:  min_calls BIGINT = 100 > 0      Fewer small requests to a file are no finding.
-- param:  min_share DOUBLE = 0.01     Least part of the time of all calls that do not wait.
-- column: subject VARCHAR       Path of the file.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Average size of the small requests [B].
-- column: limit_value DOUBLE    Size below which a request is small [B].
-- column: cost_ns BIGINT        Time in the small requests [ns].
-- column: gain_ns BIGINT        What larger requests could save at most [ns].
-- column: reason VARCHAR        Why, in one sentence.
-- column: reason_ja VARCHAR     The same in Japanese.
-- evidence: io/files --file {subject}
-- tags:   size, calls, files
WITH work AS (
    SELECT coalesce(sum(dur_ns), 0) AS ns FROM calls
    WHERE class NOT IN ('wait', 'lock', 'time', 'signal') AND coalesce(kind, '') NOT IN ('pipe', 'socket') AND via IS NULL
), requests AS (
    SELECT path, class, pid, CASE WHEN via IS NULL THEN dur_ns END AS dur_ns, moved_bytes, moved_bytes < $small_bytes AS small
    FROM calls
    WHERE class IN ('read', 'write') AND moved_bytes > 0 AND path IS NOT NULL AND coalesce(kind, 'unknown') IN ('file', 'unknown')
), files AS (
    SELECT path, class, count(*) AS calls, count(*) FILTER (WHERE small) AS small, count(DISTINCT pid) AS processes,
        CAST(sum(moved_bytes) FILTER (WHERE small) AS DOUBLE) AS bytes, CAST(sum(dur_ns) FILTER (WHERE small) AS BIGINT) AS cost_ns
    FROM requests GROUP BY path, class
), found AS (
    -- A file of which each of many processes reads a little is a matter of io/repeated_open.
    SELECT path, class, calls, small, bytes, cost_ns, CAST(ceil(bytes / $good_bytes) AS BIGINT) AS enough,
        row_number() OVER (ORDER BY coalesce(cost_ns, 0) DESC, small DESC, path, class) AS place, count(*) OVER () AS subjects
    FROM files
    WHERE small >= $min_calls AND small >= least(10, $min_calls) * processes AND 2 * small > calls
        AND coalesce(cost_ns >= $min_share * (SELECT ns FROM work), true)
), state AS (
    -- Small requests of files that the log does not name: nobody can say whether they are many to one file.
    SELECT (SELECT count(*) FROM files) AS files, (SELECT count(*) FROM calls
        WHERE class IN ('read', 'write') AND path IS NULL AND moved_bytes > 0 AND moved_bytes < $small_bytes) AS nameless
)
SELECT
    coalesce(f.path, 'all files') AS subject,
    CASE WHEN f.path IS NOT NULL THEN 'finding' WHEN s.files = 0 OR s.nameless >= $min_calls THEN 'unknown' ELSE 'ok' END AS status,
    round(f.bytes / f.small, 1) AS value, CAST($small_bytes AS DOUBLE) AS limit_value, f.cost_ns,
    CAST(f.cost_ns * (1 - 1e0 * f.enough / f.small) AS BIGINT) AS gain_ns,
    CASE WHEN f.path IS NOT NULL THEN concat(CAST(f.small AS VARCHAR), ' of the ', CAST(f.calls AS VARCHAR), ' ', f.class,
            's of this file move ', CAST(round(f.bytes / f.small, 1) AS VARCHAR), ' bytes on average; ', CAST(f.enough AS VARCHAR),
            ' of ', CAST($good_bytes AS VARCHAR), ' bytes would do.', CASE WHEN f.place = 10 AND f.subjects > 10
            THEN concat(' ', CAST(f.subjects - 10 AS VARCHAR), ' more like this are not shown.') ELSE '' END)
        WHEN s.files = 0 THEN 'The recording holds no read or write of a known file.'
        WHEN s.nameless >= $min_calls THEN concat(CAST(s.nameless AS VARCHAR), ' small reads and writes are of files that the log does not name.')
        ELSE concat(CAST(s.files AS VARCHAR), ' file(s) looked at: small requests to none of them take time worth mentioning.') END AS reason,
    CASE WHEN f.path IS NOT NULL THEN concat(CASE WHEN f.class = 'read' THEN '読み込み ' ELSE '書き込み ' END, CAST(f.calls AS VARCHAR),
            ' 回のうち ', CAST(f.small AS VARCHAR), ' 回は平均 ', CAST(round(f.bytes / f.small, 1) AS VARCHAR),
            ' バイトしか運んでいません。', CAST($good_bytes AS VARCHAR), ' バイトずつなら ', CAST(f.enough AS VARCHAR), ' 回で済みます。')
        WHEN s.files = 0 THEN 'どのファイルかがわかる読み書きが記録にありません。'
        WHEN s.nameless >= $min_calls THEN concat('小さな読み書きのうち ', CAST(s.nameless AS VARCHAR), ' 回は、どのファイルのものかログからわかりません。')
        ELSE concat(CAST(s.files AS VARCHAR), ' 個のファイルを調べました。小さな読み書きに目立つ時間を使うものはありません。') END AS reason_ja
FROM state AS s LEFT JOIN found AS f ON f.place <= 10
ORDER BY f.place
