-- Read-ahead is not effective
-- Sequential reads of a file are hardly faster than random reads.
-- needs:  load_results
-- param:  min_faster DOUBLE = 2.0              How many times as fast as random reads a sequential read must be at least.
-- column: subject VARCHAR       What it is about.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          How many times as fast it is as reading at random.
-- column: limit_value DOUBLE    Threshold: reported below this value.
-- column: cost_ns BIGINT        Not known: a load is no program [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     medium: each was measured once.
-- column: length_bytes BIGINT   Length of a request [B].
-- column: sequential DOUBLE     Rate of sequential reads through the page cache [B/s].
-- column: random DOUBLE         Rate of random reads past it [B/s].
-- column: possible DOUBLE       Rate of long direct reads [B/s].
-- says: finding en  Sequential requests of {length_bytes} reach {sequential}, random ones {random}, and long direct ones {possible}: the kernel does not read ahead.
-- says: finding ja  {length_bytes} の要求で {sequential}、ランダム読み出しは {random}、長い直接読み出しは {possible} です。先読みが働いていません。
-- says: ok en  Sequential requests of {length_bytes} reach {sequential}, random ones {random}: read-ahead works.
-- says: ok ja  {length_bytes} の要求で {sequential}、ランダム読み出しは {random} で、先読みが働いています。
-- says: unknown en  Sequential, random and long direct reads from one process were not all measured.
-- says: unknown ja  1 プロセスの順次・ランダム・長い直接読み出しのすべてが測られてはいません。
-- evidence: load/results --operation read
-- tags:   disk, bytes, time
WITH usable AS (
    SELECT * FROM load_results WHERE status IN ('measured', 'throttled', 'reported') AND operation = 'read' AND processes = 1 AND bytes_per_s > 0
), random_reads AS (
    SELECT length_bytes, max(bytes_per_s) AS rate
    FROM usable
    WHERE item = 'random_read' AND direct
    GROUP BY length_bytes
), direct_reads AS (
    SELECT max(bytes_per_s) AS rate FROM usable WHERE item IN ('transfer', 'volume') AND direct
), judged AS (
    SELECT u.length_bytes, max(u.bytes_per_s) AS sequential, max(r.rate) AS random, max(d.rate) AS possible
    FROM usable AS u
    JOIN random_reads AS r ON r.length_bytes = u.length_bytes
    CROSS JOIN direct_reads AS d
    WHERE u.item IN ('transfer', 'volume') AND NOT u.direct AND d.rate > 0
    GROUP BY u.length_bytes
), shortest AS (
    SELECT * FROM judged WHERE length_bytes = (SELECT min(length_bytes) FROM judged)
), state AS (
    SELECT count(*) AS measured FROM shortest
)
SELECT
    CASE WHEN j.length_bytes IS NOT NULL THEN 'sequential read' END AS subject,
    CASE
        WHEN j.length_bytes IS NULL THEN 'unknown'
        WHEN j.sequential < $min_faster * j.random AND j.sequential < 0.5 * j.possible THEN 'finding'
        ELSE 'ok'
    END AS status,
    round(j.sequential / j.random, 2) AS value,
    CAST($min_faster AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN j.sequential < $min_faster * j.random AND j.sequential < 0.5 * j.possible THEN 'medium' END AS certainty,
    j.length_bytes,
    j.sequential,
    j.random,
    j.possible
FROM state AS s
LEFT JOIN shortest AS j ON s.measured > 0
