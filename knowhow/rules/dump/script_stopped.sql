-- Dump script stopped early
-- A script was stopped, or could not finish on this kernel: its results are incomplete.
-- needs:  dump_scripts
-- column: subject VARCHAR       The script.
-- column: status VARCHAR        finding or ok.
-- column: value DOUBLE          Number of rows that it returned.
-- column: limit_value DOUBLE    Not used.
-- column: cost_ns BIGINT        Not known [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     high: it is what happened.
-- column: why VARCHAR           Why it was stopped.
-- column: scripts BIGINT        Scripts that were run.
-- says: finding en  {subject} stopped after {value} rows: {why}.
-- says: finding ja  {subject} は {value} 行で停止しました: {why:ja}。
-- says: ok en  {scripts:script} ran to completion.
-- says: ok ja  {scripts} 個のスクリプトはすべて最後まで実行されました。
-- says: unknown en  No script was run on this dump.
-- says: unknown ja  このダンプではスクリプトが実行されていません。
-- tags:   errors
WITH counted AS (
    SELECT
        count(*) AS scripts,
        sum(CASE WHEN s.status <> 'ok' THEN 1 ELSE 0 END) AS stopped
    FROM dump_scripts AS s
), judged AS (
    SELECT
        s.name AS subject,
        'finding' AS status,
        CAST(s.rows AS DOUBLE) AS value,
        'high' AS certainty,
        s.status AS why,
        CAST(NULL AS BIGINT) AS scripts
    FROM dump_scripts AS s
    WHERE s.status <> 'ok'
    UNION ALL
    SELECT
        CAST(NULL AS VARCHAR) AS subject,
        CASE WHEN c.scripts > 0 THEN 'ok' ELSE 'unknown' END AS status,
        CAST(NULL AS DOUBLE) AS value,
        CAST(NULL AS VARCHAR) AS certainty,
        CAST(NULL AS VARCHAR) AS why,
        c.scripts
    FROM counted AS c
    WHERE coalesce(c.stopped, 0) = 0
)

SELECT
    j.subject,
    j.status,
    j.value,
    CAST(NULL AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    j.certainty,
    j.why,
    j.scripts
FROM judged AS j
ORDER BY j.subject
