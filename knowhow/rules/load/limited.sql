-- Configured limit
-- A control group limit or a mount option that slows down the file system.
-- needs:  load_results, environment
-- column: subject VARCHAR       What it is about.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Limits that were found.
-- column: limit_value DOUBLE    Not used: any is a finding.
-- column: cost_ns BIGINT        Not known: a load is no program [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     high: the kernel says so.
-- column: variant VARCHAR       group or sync.
-- column: limit_text VARCHAR    The limit.
-- says: finding.group en  The control group of this measurement has this limit: the rates are those of the limit, not of the device.
-- says: finding.group ja  測定を行ったコントロールグループにこの制限があります。速度はデバイスではなく制限によるものです。
-- says: finding.sync en  The file system is mounted with this option: each write waits for the device.
-- says: finding.sync ja  ファイルシステムがこのオプションでマウントされており、書き込みのたびにデバイスを待ちます。
-- says: ok en  No control group limit, and no mount option that makes each write wait.
-- says: ok ja  コントロールグループの制限も、書き込みのたびに待つマウントオプションもありません。
-- says: unknown en  The recording does not show how the file system is mounted.
-- says: unknown ja  ファイルシステムのマウント方法が記録にありません。
-- evidence: load/results
-- tags:   disk, bytes, time
WITH facts AS (
    SELECT name, value FROM environment WHERE section = 'file system'
), found AS (
    SELECT DISTINCT 'group' AS variant, value AS limit_text FROM facts WHERE name = 'control group limit' OR name LIKE 'control group limit of %'
    UNION ALL
    SELECT DISTINCT 'sync' AS variant, 'sync' AS limit_text
    FROM facts
    WHERE (name = 'mount options' OR name LIKE 'mount options of %') AND concat(',', value, ',') LIKE '%,sync,%'
), measured AS (
    SELECT count(*) AS measurements FROM load_results
), state AS (
    SELECT count(*) FILTER ((name = 'mount options' OR name LIKE 'mount options of %') AND value IS NOT NULL) AS mounts FROM facts
)
SELECT
    f.limit_text AS subject,
    CASE WHEN f.variant IS NOT NULL THEN 'finding' WHEN s.mounts = 0 OR m.measurements = 0 THEN 'unknown' ELSE 'ok' END AS status,
    CASE WHEN f.variant IS NOT NULL THEN 1e0 END AS value,
    CAST(NULL AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN f.variant IS NOT NULL THEN 'high' END AS certainty,
    f.variant,
    f.limit_text
FROM state AS s
CROSS JOIN measured AS m
LEFT JOIN found AS f ON f.variant IS NOT NULL
ORDER BY subject
