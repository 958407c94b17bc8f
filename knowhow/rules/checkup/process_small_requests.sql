-- Small requests of a process
-- A process read and wrote little per call, according to its counters in /proc/PID/io.
-- needs:  io_counters
-- param:  small_bytes BIGINT = 4096 > 0   Requests below it cost more in overhead than in data [B].
-- param:  many BIGINT = 1000              Minimum number of calls.
-- column: subject VARCHAR         /proc/PID/io.
-- column: status VARCHAR          finding, ok or unknown.
-- column: value DOUBLE            Average size of a call [B].
-- column: limit_value DOUBLE      Threshold: reported below this value [B].
-- column: cost_ns BIGINT          Not known: counters have no times [ns].
-- column: gain_ns BIGINT          Not known [ns].
-- column: certainty VARCHAR       medium.
-- column: rchar BIGINT            Bytes that its calls read [B].
-- column: wchar BIGINT            Bytes that its calls wrote [B].
-- column: syscr BIGINT            Calls that read.
-- column: syscw BIGINT            Calls that wrote.
-- column: read_bytes BIGINT       What came from disks for it [B].
-- column: write_bytes BIGINT      What is for disks [B].
-- column: calls BIGINT            Calls that read or wrote.
-- says: finding en  /proc/PID/io: {rchar} read and {wchar} written in {calls:call} of {value} on average; {read_bytes} came from disks, {write_bytes} go to disks.
-- says: finding ja  /proc/PID/io: 読み込み {rchar}、書き込み {wchar}、呼び出し {calls} 回、平均 {value}。ディスクからの読み込み {read_bytes}、ディスクへの書き込み {write_bytes}。
-- says: ok en       /proc/PID/io: {rchar} read and {wchar} written in {calls:call} of {value} on average; {read_bytes} came from disks, {write_bytes} go to disks.
-- says: ok ja       /proc/PID/io: 読み込み {rchar}、書き込み {wchar}、呼び出し {calls} 回、平均 {value}。ディスクからの読み込み {read_bytes}、ディスクへの書き込み {write_bytes}。
-- says: unknown en  /proc/PID/io: nothing was read or written.
-- says: unknown ja  /proc/PID/io: 読み書きがありません。
-- tags:   size, calls
WITH counted AS (
    SELECT source_id,
        sum(CASE WHEN counter = 'rchar' THEN transferred_bytes END) AS rchar,
        sum(CASE WHEN counter = 'wchar' THEN transferred_bytes END) AS wchar,
        sum(CASE WHEN counter = 'syscr' THEN operations END) AS syscr,
        sum(CASE WHEN counter = 'syscw' THEN operations END) AS syscw,
        sum(CASE WHEN counter = 'read_bytes' THEN transferred_bytes END) AS read_bytes,
        sum(CASE WHEN counter = 'write_bytes' THEN transferred_bytes END) AS write_bytes
    FROM io_counters
    WHERE source = 'proc_io'
    GROUP BY source_id
), sized AS (
    SELECT *, syscr + syscw AS calls, CASE WHEN syscr + syscw > 0 THEN 1e0 * (rchar + wchar) / (syscr + syscw) END AS size_bytes
    FROM counted
), state AS (
    SELECT count(*) AS processes FROM counted
)
SELECT
    CASE WHEN t.source_id IS NOT NULL THEN '/proc/PID/io' END AS subject,
    CASE WHEN t.size_bytes IS NULL THEN 'unknown' WHEN t.calls > $many AND t.size_bytes < $small_bytes THEN 'finding' ELSE 'ok' END AS status,
    t.size_bytes AS value,
    CAST($small_bytes AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN t.calls > $many AND t.size_bytes < $small_bytes THEN 'medium' END AS certainty,
    CAST(t.rchar AS BIGINT) AS rchar,
    CAST(t.wchar AS BIGINT) AS wchar,
    CAST(t.syscr AS BIGINT) AS syscr,
    CAST(t.syscw AS BIGINT) AS syscw,
    CAST(t.read_bytes AS BIGINT) AS read_bytes,
    CAST(t.write_bytes AS BIGINT) AS write_bytes,
    CAST(t.calls AS BIGINT) AS calls
FROM state AS s
LEFT JOIN sized AS t ON s.processes > 0
ORDER BY t.source_id
