-- Unusable measurements
-- Measurements that failed, were too short, were served from memory, or whose workers did not run concurrently.
-- needs:  load_results
-- column: subject VARCHAR       What it is about.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Measurements of this status.
-- column: limit_value DOUBLE    Measurements in all.
-- column: cost_ns BIGINT        Not known: a load is no program [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     high: the generator counted it.
-- column: variant VARCHAR       The status of the measurements.
-- column: measurements BIGINT   Of this status.
-- column: all_measurements BIGINT  In all.
-- column: example VARCHAR       The first of them.
-- column: processes INTEGER     By how many processes.
-- column: why VARCHAR           Its note [fact].
-- column: circumstance BOOLEAN  It is about how the measurement was made.
-- column: urgent BOOLEAN        Data was damaged.
-- says: finding.from_memory en  {measurements} of {all_measurements:measurement} came from memory; for example, {example} by {processes:process}: {why}.
-- says: finding.from_memory ja  {all_measurements} 件中 {measurements} 件の測定はメモリからの読み出しです（例: {example}、{processes} プロセス: {why}）。
-- says: finding.not_known en  For {measurements} of {all_measurements:measurement}, the origin of the data is unknown; for example, {example} by {processes:process}: {why}.
-- says: finding.not_known ja  {all_measurements} 件中 {measurements} 件の測定は、データがどこから来たかわかりません（例: {example}、{processes} プロセス: {why}）。
-- says: finding.no_overlap en  In {measurements} of {all_measurements:measurement}, the processes did not run concurrently; for example, {example} by {processes:process}: {why}.
-- says: finding.no_overlap ja  {all_measurements} 件中 {measurements} 件の測定では、プロセスが同時に動いていません（例: {example}、{processes} プロセス: {why}）。
-- says: finding.too_short en  {measurements} of {all_measurements:measurement} {measurements?was|were} too short; for example, {example} by {processes:process}: {why}.
-- says: finding.too_short ja  {all_measurements} 件中 {measurements} 件の測定は短すぎます（例: {example}、{processes} プロセス: {why}）。
-- says: finding.full en  {measurements} of {all_measurements:measurement} did not fit on the file system; for example, {example} by {processes:process}: {why}.
-- says: finding.full ja  {all_measurements} 件中 {measurements} 件の測定には空き容量が足りません（例: {example}、{processes} プロセス: {why}）。
-- says: finding.failed en  {measurements} of {all_measurements:measurement} failed; for example, {example} by {processes:process}: {why}.
-- says: finding.failed ja  {all_measurements} 件中 {measurements} 件の測定は失敗しました（例: {example}、{processes} プロセス: {why}）。
-- says: finding.damaged en  In {measurements} of {all_measurements:measurement}, the data read differs from the data written; for example, {example} by {processes:process}: {why}.
-- says: finding.damaged ja  {all_measurements} 件中 {measurements} 件の測定で、書いたものと異なるデータが読まれました（例: {example}、{processes} プロセス: {why}）。
-- says: finding.skipped en  {measurements} of {all_measurements:measurement} {measurements?was|were} skipped; for example, {example} by {processes:process}: {why}.
-- says: finding.skipped ja  {all_measurements} 件中 {measurements} 件の測定は行われていません（例: {example}、{processes} プロセス: {why}）。
-- says: finding.interrupted en  {measurements} of {all_measurements:measurement} {measurements?was|were} interrupted; for example, {example} by {processes:process}.
-- says: finding.interrupted ja  {all_measurements} 件中 {measurements} 件の測定は中断されました（例: {example}、{processes} プロセス）。
-- says: ok en  {all_measurements:measurement} can be trusted.
-- says: ok ja  {all_measurements} 件の測定はすべて有効です。
-- says: unknown en  Nothing was measured.
-- says: unknown ja  何も測られていません。
-- evidence: load/results
-- tags:   disk, bytes, time
WITH bad AS (
    SELECT status, count(*) AS measurements, min(result_id) AS first_id
    FROM load_results
    WHERE status NOT IN ('measured', 'throttled', 'reported')
    GROUP BY status
), named AS (
    SELECT b.status, b.measurements, r.note AS why,
        concat(r.item, ' ', r.operation) AS example, r.processes
    FROM bad AS b
    JOIN load_results AS r ON r.result_id = b.first_id
), state AS (
    SELECT count(*) AS all_measurements FROM load_results
)
SELECT
    n.status AS subject,
    CASE WHEN n.status IS NOT NULL THEN 'finding' WHEN s.all_measurements = 0 THEN 'unknown' ELSE 'ok' END AS status,
    CAST(n.measurements AS DOUBLE) AS value,
    CAST(s.all_measurements AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN n.status IS NOT NULL THEN 'high' END AS certainty,
    n.status AS variant,
    n.measurements,
    s.all_measurements,
    n.example,
    n.processes,
    n.why,
    coalesce(n.status <> 'damaged', true) AS circumstance,
    coalesce(n.status = 'damaged', false) AS urgent
FROM state AS s
LEFT JOIN named AS n ON n.measurements > 0
ORDER BY subject
