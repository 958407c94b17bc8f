-- Repeated open
-- Files that are opened again and again. Files that many processes open about once each count together, as one finding.
-- needs:  calls
-- param:  min_opens BIGINT = 50 > 0      Fewer opens of a file are no finding.
-- param:  min_share DOUBLE = 0.01    Least part of the time of all calls that do not wait.
-- column: subject VARCHAR       Path of the file; of many opened alike, the costliest.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Times it was opened.
-- column: limit_value DOUBLE    Times from which on it is a finding.
-- column: cost_ns BIGINT        Time in opening, closing and asking for attributes of the file [ns].
-- column: gain_ns BIGINT        What opening it once could save at most [ns].
-- column: reason VARCHAR        Why, in one sentence.
-- column: reason_ja VARCHAR     The same in Japanese.
-- evidence: io/files --file {subject}
-- tags:   files, calls, metadata
WITH work AS (
    SELECT coalesce(sum(dur_ns), 0) AS ns FROM calls
    WHERE class NOT IN ('wait', 'lock', 'time', 'signal') AND coalesce(kind, '') NOT IN ('pipe', 'socket') AND via IS NULL
), files AS (
    SELECT path, count(*) FILTER (WHERE class = 'open' AND result IS NOT NULL) AS opens,
        count(DISTINCT CASE WHEN class = 'open' AND result IS NOT NULL THEN pid END) AS processes, CAST(sum(dur_ns) AS BIGINT) AS cost_ns
    FROM calls
    WHERE class IN ('open', 'close', 'stat') AND path IS NOT NULL
    GROUP BY path
), often AS (
    SELECT CASE WHEN 2 * processes > opens THEN '' ELSE path END AS pattern, path, opens, processes, cost_ns,
        coalesce(cost_ns, opens) AS weight
    FROM files
    WHERE opens >= $min_opens
), patterns AS (
    SELECT pattern, arg_max(path, weight) AS path, arg_max(opens, weight) AS opens, arg_max(processes, weight) AS processes,
        count(*) AS alike, CAST(sum(cost_ns) AS BIGINT) AS cost_ns, CAST(sum(cost_ns * (1 - 1e0 / opens)) AS BIGINT) AS gain_ns
    FROM often
    GROUP BY pattern
), found AS (
    SELECT *, row_number() OVER (ORDER BY coalesce(cost_ns, 0) DESC, opens DESC, path) AS place, count(*) OVER () AS subjects
    FROM patterns
    WHERE coalesce(cost_ns >= $min_share * (SELECT ns FROM work), true)
), state AS (
    SELECT (SELECT count(*) FROM files WHERE opens > 0) AS files
)
SELECT
    coalesce(f.path, 'all files') AS subject,
    CASE WHEN f.path IS NOT NULL THEN 'finding' WHEN s.files = 0 THEN 'unknown' ELSE 'ok' END AS status,
    CAST(f.opens AS DOUBLE) AS value, CAST($min_opens AS DOUBLE) AS limit_value, f.cost_ns, f.gain_ns,
    CASE WHEN f.pattern = '' THEN concat('Opened ', CAST(f.opens AS VARCHAR), ' times by ', CAST(f.processes AS VARCHAR),
            ' processes, and ', CAST(f.alike - 1 AS VARCHAR), ' other file(s) likewise: the same program is started again and again.')
        WHEN f.path IS NOT NULL THEN concat('Opened ', CAST(f.opens AS VARCHAR), ' times by ', CAST(f.processes AS VARCHAR),
            CASE WHEN f.processes = 1 THEN ' process.' ELSE ' processes.' END, CASE WHEN f.place = 10 AND f.subjects > 10
            THEN concat(' ', CAST(f.subjects - 10 AS VARCHAR), ' more like this are not shown.') ELSE '' END)
        WHEN s.files = 0 THEN 'The recording holds no successful open.'
        ELSE concat(CAST(s.files AS VARCHAR), ' opened file(s) looked at: opening them again takes no time worth mentioning.') END AS reason,
    CASE WHEN f.pattern = '' THEN concat(CAST(f.processes AS VARCHAR), ' 個のプロセスが合わせて ', CAST(f.opens AS VARCHAR),
            ' 回開きました。ほかに ', CAST(f.alike - 1 AS VARCHAR), ' 個のファイルも同様です。同じプログラムが何度も起動されています。')
        WHEN f.path IS NOT NULL THEN concat(CAST(f.processes AS VARCHAR), ' 個のプロセスが合わせて ', CAST(f.opens AS VARCHAR), ' 回開きました。')
        WHEN s.files = 0 THEN '成功した open が記録にありません。'
        ELSE concat('開かれた ', CAST(s.files AS VARCHAR), ' 個のファイルを調べました。開き直しに目立つ時間を使うものはありません。') END AS reason_ja
FROM state AS s
LEFT JOIN found AS f ON f.place <= 10
ORDER BY f.place
