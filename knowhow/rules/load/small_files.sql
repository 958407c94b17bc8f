-- Slow small files
-- Creating or looking up files is so slow that programs with many small files are held up.
-- needs:  load_results
-- param:  min_creates DOUBLE = 500 > 0         Files that should be created per second, by all processes together.
-- param:  min_stats DOUBLE = 5000 > 0          Files whose attributes should be read per second.
-- param:  small_bytes BIGINT = 65536  Larger files are not small: creating one measures the data [B].
-- column: subject VARCHAR       What it is about.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          The highest rate [1/s].
-- column: limit_value DOUBLE    Threshold: reported below this value.
-- column: cost_ns BIGINT        Not known: a load is no program [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     medium: what programs need is not known.
-- column: variant VARCHAR       create or stat.
-- column: operation VARCHAR     create, stat or stat_cold.
-- column: rate DOUBLE           The highest rate.
-- column: processes INTEGER     Processes by which it was reached.
-- column: p50_ns BIGINT         Median time of one [ns].
-- column: archive_ns BIGINT     Time that 100,000 files take at this rate [ns].
-- says: finding.create en  At most {rate} files per second are created ({processes:process}; {p50_ns} each): unpacking an archive of 100,000 files takes {archive_ns}.
-- says: finding.create ja  1 秒に作成できるファイルは最大 {rate} 個です（{processes} プロセス、1 個 {p50_ns}）。10 万ファイルのアーカイブの展開に {archive_ns} かかります。
-- says: finding.stat en  The attributes of at most {rate} files per second are read ({operation}, {processes:process}; {p50_ns} each): `ls -l` of 100,000 files takes {archive_ns}.
-- says: finding.stat ja  1 秒に属性を読めるファイルは最大 {rate} 個です（{operation}、{processes} プロセス、1 個 {p50_ns}）。10 万ファイルの `ls -l` に {archive_ns} かかります。
-- says: ok.create en  {rate} files per second are created ({processes:process}; {p50_ns} each): 100,000 take {archive_ns}.
-- says: ok.create ja  1 秒に {rate} 個のファイルを作成できます（{processes} プロセス、1 個 {p50_ns}）。10 万個で {archive_ns} です。
-- says: ok.stat en  The attributes of {rate} files per second are read ({operation}, {processes:process}; {p50_ns} each): 100,000 take {archive_ns}.
-- says: ok.stat ja  1 秒に {rate} 個のファイルの属性を読めます（{operation}、{processes} プロセス、1 個 {p50_ns}）。10 万個で {archive_ns} です。
-- says: unknown en  Neither file creation nor reading attributes was measured.
-- says: unknown ja  ファイルの作成も属性の読み出しも測られていません。
-- evidence: load/results --item metadata
-- tags:   disk, bytes, time
WITH written AS (
    SELECT max(w.bytes) AS bytes FROM load_results AS w WHERE w.item = 'transfer' AND w.operation = 'write'
), usable AS (
    SELECT operation, operations_per_s AS rate, processes, p50_ns,
        CASE WHEN operation = 'create' THEN 'create' ELSE 'stat' END AS variant,
        CASE WHEN operation = 'create' THEN $min_creates ELSE $min_stats END AS least
    FROM load_results CROSS JOIN written AS w
    WHERE status IN ('measured', 'throttled', 'reported') AND operation IN ('create', 'stat', 'stat_cold') AND operations_per_s > 0
        AND NOT (operation = 'create' AND (coalesce(length_bytes, 0) > $small_bytes
            -- elbencho writes the files while it creates them.
            OR (coalesce(note, '') LIKE '%load_logs/with_writing%' AND coalesce(w.bytes, 0) > $small_bytes * operations)))
), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY operation ORDER BY rate DESC) AS place FROM usable
), best AS (
    SELECT * FROM ranked WHERE place = 1
), state AS (
    SELECT count(*) AS measured FROM best
)
SELECT
    b.operation AS subject,
    CASE WHEN b.operation IS NULL THEN 'unknown' WHEN b.rate < b.least THEN 'finding' ELSE 'ok' END AS status,
    round(b.rate, 1) AS value,
    CAST(b.least AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN b.rate < b.least THEN 'medium' END AS certainty,
    b.variant,
    b.operation,
    round(b.rate, 1) AS rate,
    b.processes,
    b.p50_ns,
    CAST(round(1e14 / b.rate) AS BIGINT) AS archive_ns
FROM state AS s
LEFT JOIN best AS b ON s.measured > 0
ORDER BY subject
