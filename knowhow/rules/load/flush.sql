-- Cost of commits
-- How much longer a write takes when it is flushed to the device: far longer, or suspiciously no longer at all.
-- needs:  load_results, environment
-- param:  slow_ns BIGINT = 10000000 > 0         Minimum duration of a slow commit [ns].
-- param:  min_ratio DOUBLE = 10.0               How many times as long as the same write without it a slow commit takes at least.
-- param:  max_free DOUBLE = 1.1                 Up to this ratio the flush costs nothing.
-- column: subject VARCHAR       What it is about.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Median time of a commit [ns].
-- column: limit_value DOUBLE    What it was compared with [ns].
-- column: cost_ns BIGINT        Not known: a load is no program [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     high: a mount option says so; medium: the times do; low: it may be protected against a loss of power.
-- column: variant VARCHAR       slow, free or barrier.
-- column: commit_ns BIGINT      Median time of 8 KiB and fdatasync [ns].
-- column: write_ns BIGINT       Median time of the same direct write alone [ns].
-- column: rate DOUBLE           Commits per second of one process.
-- column: option VARCHAR        The mount option.
-- column: urgent BOOLEAN        Whether it is: data may be lost.
-- says: finding.slow en  Writing 8 KiB takes {commit_ns} with fdatasync and {write_ns} without: one process can make {rate} commits per second.
-- says: finding.slow ja  8 KiB の書き込みと fdatasync に {commit_ns} かかり、同期なしの書き込みは {write_ns} です。1 プロセスで 1 秒に {rate} コミットです。
-- says: finding.free en  Writing 8 KiB takes {commit_ns} with fdatasync and {write_ns} without: the flush costs nothing although the device has a write cache. Unless that cache survives a power failure, commits may be lost.
-- says: finding.free ja  8 KiB の書き込みと fdatasync に {commit_ns}、フラッシュなしの書き込みに {write_ns} かかります。書き込みキャッシュがあるのにフラッシュに時間がかかっていません。キャッシュが停電から保護されていなければ、コミットが失われるおそれがあります。
-- says: finding.barrier en  The file system is mounted with {option}: after a power failure, commits may be missing and the file system damaged.
-- says: finding.barrier ja  ファイルシステムが {option} でマウントされています。停電後にコミットが失われたり、ファイルシステムが壊れたりするおそれがあります。
-- says: ok en  Writing 8 KiB takes {commit_ns} with fdatasync and {write_ns} without: one process can make {rate} commits per second.
-- says: ok ja  8 KiB の書き込みと fdatasync に {commit_ns}、同期なしの書き込みに {write_ns} かかります。1 プロセスで 1 秒に {rate} コミットです。
-- says: unknown en  Appending with fdatasync from one process was not measured.
-- says: unknown ja  1 プロセスの fdatasync つき追記が測られていません。
-- evidence: load/results --item log
-- tags:   disk, bytes, time
WITH usable AS (
    SELECT * FROM load_results WHERE status IN ('measured', 'throttled', 'reported') AND item = 'log' AND processes = 1 AND p50_ns > 0
), commits AS (
    SELECT max(p50_ns) AS commit_ns, max(operations_per_s) AS rate FROM usable WHERE sync = 'fdatasync' HAVING count(*) > 0
), writes AS (
    SELECT max(p50_ns) AS write_ns FROM usable WHERE sync = 'none' AND direct
), facts AS (
    SELECT
        max(CASE
            WHEN (name = 'mount options' OR name LIKE 'mount options of %') AND (value LIKE '%nobarrier%' OR value LIKE '%barrier=0%')
            THEN CASE WHEN value LIKE '%nobarrier%' THEN 'nobarrier' ELSE 'barrier=0' END
        END) AS option,
        count(*) FILTER ((name LIKE '% write_cache' OR name LIKE '% write_cache of %') AND value = 'write back') AS caches
    FROM environment
    WHERE section = 'file system'
), judged AS (
    SELECT c.commit_ns, c.rate, w.write_ns, f.option,
        CASE
            WHEN f.option IS NOT NULL THEN 'barrier'
            WHEN f.caches > 0 AND c.commit_ns <= $max_free * w.write_ns THEN 'free'
            WHEN c.commit_ns > $slow_ns AND c.commit_ns > $min_ratio * w.write_ns THEN 'slow'
        END AS variant
    FROM commits AS c
    CROSS JOIN writes AS w
    CROSS JOIN facts AS f
), state AS (
    SELECT count(*) AS measured FROM judged
)
SELECT
    CASE WHEN j.commit_ns IS NOT NULL THEN 'commit' END AS subject,
    CASE WHEN j.commit_ns IS NULL THEN 'unknown' WHEN j.variant IS NOT NULL THEN 'finding' ELSE 'ok' END AS status,
    CAST(j.commit_ns AS DOUBLE) AS value,
    CAST(j.write_ns AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE j.variant WHEN 'barrier' THEN 'high' WHEN 'slow' THEN 'medium' WHEN 'free' THEN 'low' END AS certainty,
    j.variant,
    j.commit_ns,
    j.write_ns,
    round(j.rate, 1) AS rate,
    j.option,
    coalesce(j.variant = 'barrier', false) AS urgent
FROM state AS s
LEFT JOIN judged AS j ON s.measured > 0
