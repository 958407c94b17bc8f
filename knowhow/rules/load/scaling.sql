-- Throughput drops with more processes
-- The rate drops when more processes run at the same time.
-- needs:  load_results
-- param:  min_kept DOUBLE = 0.5                What must be left of the highest rate with the most processes.
-- column: subject VARCHAR       What it is about.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the highest rate that is left with the most processes.
-- column: limit_value DOUBLE    Threshold: reported below this value.
-- column: cost_ns BIGINT        Not known: a load is no program [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     medium; low where the measurement was shorter than a second.
-- column: variant VARCHAR       of ok: grows or plateau; of any: with requests where these have a length.
-- column: operation VARCHAR     The operation.
-- column: length_bytes BIGINT   Length of the requests that lose most [B].
-- column: processes INTEGER     Processes at which the rate is at 90 % of the highest one for the first time.
-- column: most_processes INTEGER  Most processes that were measured.
-- column: bytes_per_s DOUBLE    The highest rate of data [B/s].
-- column: rate DOUBLE           The highest rate of operations.
-- column: last_rate DOUBLE      The rate of operations with the most processes.
-- says: finding en  The highest rate, {rate} operations per second, is reached with {processes:process}; with {most_processes} it is {last_rate}.
-- says: finding ja  最高速度 {rate} 回/秒は {processes} プロセスで得られ、{most_processes} プロセスでは {last_rate} 回/秒に下がります。
-- says: finding.requests en  With requests of {length_bytes}, the highest rate, {rate} operations per second, is reached with {processes:process}; with {most_processes} it is {last_rate}.
-- says: finding.requests ja  {length_bytes} の要求では、最高速度 {rate} 回/秒は {processes} プロセスで得られ、{most_processes} プロセスでは {last_rate} 回/秒に下がります。
-- says: ok.plateau en  {rate} operations per second with {processes:process}; more processes, up to {most_processes}, are not faster.
-- says: ok.plateau ja  {processes} プロセスで {rate} 回/秒に達し、{most_processes} プロセスまで増やしても速くなりません。
-- says: ok.plateau_requests en  {rate} operations per second with {processes:process} and requests of {length_bytes}; more processes, up to {most_processes}, are not faster.
-- says: ok.plateau_requests ja  {length_bytes} の要求では {processes} プロセスで {rate} 回/秒に達し、{most_processes} プロセスまで増やしても速くなりません。
-- says: ok.grows en  {rate} operations per second with {most_processes:process}, and still increasing.
-- says: ok.grows ja  {most_processes} プロセスで {rate} 回/秒で、まだ伸びています。
-- says: ok.grows_requests en  {rate} operations per second with {most_processes:process} and requests of {length_bytes}, and still increasing.
-- says: ok.grows_requests ja  {length_bytes} の要求では {most_processes} プロセスで {rate} 回/秒で、まだ伸びています。
-- says: unknown en  Fewer than three different numbers of processes were measured.
-- says: unknown ja  3 通り以上のプロセス数で測ったものがありません。
-- evidence: load/results --operation {operation}
-- tags:   disk, bytes, time
WITH usable AS (
    SELECT item, operation, length_bytes, direct, layout, coalesce(sync, '') AS sync, engine, processes,
        max(operations_per_s) AS rate, max(bytes_per_s) AS bytes_per_s,
        max(1e0 * operations / operations_per_s) AS seconds
    FROM load_results
    WHERE status IN ('measured', 'throttled', 'reported') AND operations_per_s > 0 AND item <> 'control'
    GROUP BY item, operation, length_bytes, direct, layout, coalesce(sync, ''), engine, processes
), series AS (
    -- Of one operation the one with the longest requests.
    SELECT u.*, count(*) OVER w AS counts, max(rate) OVER w AS best, max(processes) OVER w AS most
    FROM usable AS u
    WINDOW w AS (PARTITION BY item, operation, length_bytes, direct, layout, sync, engine)
), judged AS (
    SELECT item, operation, length_bytes, direct, layout, sync, engine, most, best,
        min(CASE WHEN rate >= 0.9 * best THEN processes END) AS enough,
        max(CASE WHEN processes = most THEN rate END) AS last_rate,
        max(CASE WHEN processes = most THEN seconds END) AS last_seconds,
        max(bytes_per_s) AS bytes_per_s
    FROM series
    WHERE counts >= 3
    GROUP BY item, operation, length_bytes, direct, layout, sync, engine, most, best
), worst AS (
    SELECT *, row_number() OVER (PARTITION BY item, operation, direct, layout ORDER BY last_rate / best, length_bytes DESC) AS place
    FROM judged
), state AS (
    SELECT count(*) AS measured FROM worst
)
SELECT
    CASE
        WHEN w.item IS NOT NULL
        THEN concat(w.item, ' ', w.operation, CASE WHEN w.direct THEN ' direct' ELSE '' END, CASE WHEN w.layout = 'shared' THEN ' shared' ELSE '' END)
    END AS subject,
    CASE WHEN w.item IS NULL THEN 'unknown' WHEN w.last_rate < $min_kept * w.best THEN 'finding' ELSE 'ok' END AS status,
    round(w.last_rate / w.best, 3) AS value,
    CAST($min_kept AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN w.last_rate < $min_kept * w.best THEN CASE WHEN w.last_seconds < 1 THEN 'low' ELSE 'medium' END END AS certainty,
    CASE
        WHEN w.item IS NULL THEN NULL
        WHEN w.last_rate < $min_kept * w.best THEN CASE WHEN w.length_bytes IS NOT NULL THEN 'requests' END
        ELSE concat(CASE WHEN w.enough < w.most THEN 'plateau' ELSE 'grows' END, CASE WHEN w.length_bytes IS NOT NULL THEN '_requests' ELSE '' END)
    END AS variant,
    w.operation,
    w.length_bytes,
    w.enough AS processes,
    w.most AS most_processes,
    w.bytes_per_s,
    round(w.best, 1) AS rate,
    round(w.last_rate, 1) AS last_rate
FROM state AS s
LEFT JOIN worst AS w ON s.measured > 0 AND w.place = 1
ORDER BY value, subject
