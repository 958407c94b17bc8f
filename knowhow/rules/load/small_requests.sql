-- Short requests are slow
-- Sequential transfers through the page cache are much slower with short requests than with long ones.
-- needs:  load_results
-- param:  min_kept DOUBLE = 0.5                What short requests should reach of the highest rate.
-- param:  short_bytes BIGINT = 65536 > 0       Requests up to this length are short [B].
-- column: subject VARCHAR       What it is about.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the highest rate that the shortest requests reach.
-- column: limit_value DOUBLE    Threshold: reported below this value.
-- column: cost_ns BIGINT        Not known: a load is no program [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     medium: each length was measured once.
-- column: operation VARCHAR     read or write.
-- column: shortest BIGINT       Shortest request that was measured [B].
-- column: short_rate DOUBLE     Its rate [B/s].
-- column: best_rate DOUBLE      The highest rate [B/s].
-- column: enough BIGINT         Shortest request that reaches 90 % of it [B].
-- says: finding en  Requests of {shortest} reach {short_rate}; requests of {enough} reach {best_rate}.
-- says: finding ja  {shortest} の要求では {short_rate}、{enough} の要求では {best_rate} です。
-- says: ok en  Requests of {shortest} reach {short_rate}; the highest rate is {best_rate}.
-- says: ok ja  {shortest} の要求で {short_rate}（最高 {best_rate}）です。
-- says: unknown en  Sequential transfers were not measured with both short and long requests.
-- says: unknown ja  短い要求と長い要求の順次転送が両方とも測られてはいません。
-- evidence: load/results --operation {operation}
-- tags:   disk, bytes, time
WITH usable AS (
    SELECT operation, length_bytes, max(bytes_per_s) AS rate
    FROM load_results
    WHERE status IN ('measured', 'throttled', 'reported') AND item IN ('transfer', 'volume', 'ior', 'fio') AND NOT direct AND processes = 1
        AND operation IN ('read', 'write') AND bytes_per_s > 0
    GROUP BY operation, length_bytes
), best AS (
    SELECT operation, max(rate) AS best_rate, min(length_bytes) AS shortest, max(length_bytes) AS longest
    FROM usable
    GROUP BY operation
), judged AS (
    SELECT b.operation, b.best_rate, b.shortest,
        min(CASE WHEN u.rate >= 0.9 * b.best_rate THEN u.length_bytes END) AS enough,
        max(CASE WHEN u.length_bytes = b.shortest THEN u.rate END) AS short_rate
    FROM best AS b
    JOIN usable AS u ON u.operation = b.operation
    WHERE b.shortest <= $short_bytes AND b.longest > $short_bytes
    GROUP BY b.operation, b.best_rate, b.shortest
), state AS (
    SELECT count(*) AS measured FROM judged
)
SELECT
    CASE WHEN j.operation IS NOT NULL THEN concat('sequential ', j.operation) END AS subject,
    CASE WHEN j.operation IS NULL THEN 'unknown' WHEN j.short_rate < $min_kept * j.best_rate THEN 'finding' ELSE 'ok' END AS status,
    round(j.short_rate / j.best_rate, 3) AS value,
    CAST($min_kept AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN j.short_rate < $min_kept * j.best_rate THEN 'medium' END AS certainty,
    j.operation,
    j.shortest,
    j.short_rate,
    j.best_rate,
    j.enough
FROM state AS s
LEFT JOIN judged AS j ON s.measured > 0
ORDER BY subject
