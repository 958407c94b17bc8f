-- Slow device
-- Threads wait for the disk for much of the time: its queue is full, it serves many requests at once, or it gets one request at a time.
-- needs:  block_requests, run_states, totals
-- param:  min_share DOUBLE = 0.25       Minimum share of the elapsed time in which a thread waits for the disk.
-- param:  min_wait_ns BIGINT = 20000000 Minimum time of these waits [ns].
-- param:  min_seen DOUBLE = 0.5         Minimum share of the waits in which the device has a request of the recording.
-- param:  few DOUBLE = 1.5              Below this queue depth, requests are one after another.
-- column: subject VARCHAR       Name of the device.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the elapsed time in which at least one thread waited for the disk [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        That time [ns].
-- column: gain_ns BIGINT        What more requests at once could save at most; empty where that is not known [ns].
-- column: certainty VARCHAR     medium; low where the requests are not in the recording.
-- column: variant VARCHAR       queue, many, serial or unseen.
-- column: explained_by VARCHAR  Rules whose findings explain this one.
-- column: requests BIGINT       Requests to the device.
-- column: mean_bytes BIGINT     Their average length [B].
-- column: queue_ns BIGINT       Their average time in the queue [ns].
-- column: service_ns BIGINT     Their average time in the device [ns].
-- column: depth DOUBLE          How many the device had at a time, on average, while it had any [ratio].
-- column: busy_ns BIGINT        Time in which the device had a request, also in its queue [ns].
-- says: finding.queue en   Threads waited {cost_ns} for the disk, {value} of the elapsed time. {requests:request} to {subject} spent {queue_ns} in its queue and {service_ns} in the device on average.
-- says: finding.queue ja   ディスク待ちが {cost_ns}、経過時間の {value} あります。{subject} への要求 {requests} 回は、平均でキューに {queue_ns}、デバイスに {service_ns} かかっています。
-- says: finding.many en    Threads waited {cost_ns} for the disk, {value} of the elapsed time. {subject} served {depth} requests at a time and took {service_ns} for each of {requests}.
-- says: finding.many ja    ディスク待ちが {cost_ns}、経過時間の {value} あります。{subject} は平均 {depth} 個の要求を同時に処理しており、要求 {requests} 回に 1 回あたり {service_ns} かかっています。
-- says: finding.serial en  Threads waited {cost_ns} for the disk, {value} of the elapsed time. {subject} got {requests:request} of {mean_bytes} one at a time (queue depth {depth}) and took {service_ns} for each.
-- says: finding.serial ja  ディスク待ちが {cost_ns}、経過時間の {value} あります。{subject} への要求 {requests} 回（平均 {mean_bytes}）は1 つずつ順に出され（同時に {depth} 個）、1 回あたり {service_ns} かかっています。
-- says: finding.unseen en  Threads waited {cost_ns} for the disk, {value} of the elapsed time, but devices were busy with requests of this recording for only {busy_ns}. The rest may be a file system journal, other programs, locks or a network file system.
-- says: finding.unseen ja  ディスク待ちが {cost_ns}、経過時間の {value} ありますが、記録された要求がデバイスにあったのは {busy_ns} だけです。ファイルシステムのジャーナル、ほかのプログラム、ロック、またはネットワークのファイルシステムの待ちです。
-- says: ok en              Threads waited {cost_ns} for the disk, {value} of the elapsed time.
-- says: ok ja              ディスク待ちは {cost_ns}、経過時間の {value} です。
-- says: unknown en         The recording does not show when threads ran.
-- says: unknown ja         スレッドの実行時刻が記録にありません。
-- at_least: thread_time min_wait_ns
-- evidence: block/latency
-- tags:   disk, time
WITH waits AS (
    -- Each moment counts once, however many threads wait.
    SELECT r.ts_ns, r.ts_ns + r.wait_ns AS end_ns,
        max(r.ts_ns + r.wait_ns) OVER (ORDER BY r.ts_ns, r.wait_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns
    FROM run_states AS r
    WHERE r.wait_ns > 0 AND (r.cause = 'disk' OR (r.cause = 'page fault' AND r.state = 'uninterruptible'))
), waited AS (
    SELECT coalesce(sum(greatest(0, w.end_ns - greatest(w.ts_ns, coalesce(w.before_ns, w.ts_ns)))), 0) AS ns FROM waits AS w
), covered AS (
    SELECT b.device, b.length_bytes, b.queue_ns, b.service_ns, b.ts_ns, b.issued_ts_ns, b.end_ts_ns,
        max(b.end_ts_ns) OVER (PARTITION BY b.device ORDER BY b.ts_ns, b.end_ts_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns,
        max(b.end_ts_ns) OVER (PARTITION BY b.device ORDER BY b.issued_ts_ns, b.end_ts_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
            AS before_issued_ns
    FROM block_requests AS b
), each_device AS (
    SELECT c.device, count(*) AS requests, sum(c.length_bytes) AS bytes, sum(c.queue_ns) AS queue_ns, sum(c.service_ns) AS service_ns,
        sum(greatest(0, c.end_ts_ns - greatest(c.ts_ns, coalesce(c.before_ns, c.ts_ns)))) AS busy_ns,
        sum(greatest(0, c.end_ts_ns - greatest(c.issued_ts_ns, coalesce(c.before_issued_ns, c.issued_ts_ns)))) AS driver_ns
    FROM covered AS c
    GROUP BY c.device
), busiest AS (
    -- Of a loop device and the one below it: the upper one, which has its own time beside.
    SELECT max(e.busy_ns) AS busy_ns, arg_max(e.device, e.busy_ns) AS device FROM each_device AS e
), judged AS (
    SELECT t.elapsed_ns, CAST(w.ns AS BIGINT) AS wait_ns, b.device, e.requests, e.bytes, e.queue_ns, e.service_ns,
        CAST(coalesce(b.busy_ns, 0) AS BIGINT) AS busy_ns,
        CASE WHEN e.driver_ns > 0 THEN 1e0 * e.service_ns / e.driver_ns END AS depth,
        w.ns >= $min_wait_ns AND w.ns >= $min_share * t.elapsed_ns AS is_long
    FROM waited AS w CROSS JOIN totals AS t CROSS JOIN busiest AS b
    LEFT JOIN each_device AS e ON e.device = b.device
    WHERE t.elapsed_ns > 0 AND EXISTS (SELECT 1 AS one FROM run_states)
), named AS (
    SELECT j.elapsed_ns, j.wait_ns, j.device, j.requests, j.bytes, j.queue_ns, j.service_ns, j.busy_ns, j.depth, j.is_long,
        CASE WHEN j.busy_ns < $min_seen * j.wait_ns THEN 'unseen' WHEN j.queue_ns > j.service_ns THEN 'queue'
            WHEN j.depth >= $few THEN 'many' ELSE 'serial' END AS variant
    FROM judged AS j
)
SELECT
    CASE WHEN n.is_long AND n.variant <> 'unseen' THEN n.device END AS subject,
    CASE WHEN n.wait_ns IS NULL THEN 'unknown' WHEN n.is_long THEN 'finding' ELSE 'ok' END AS status,
    round(1e2 * n.wait_ns / n.elapsed_ns, 1) AS value,
    1e2 * $min_share AS limit_value,
    n.wait_ns AS cost_ns,
    CASE WHEN n.is_long AND n.variant = 'serial' THEN n.wait_ns END AS gain_ns,
    CASE WHEN n.is_long THEN CASE WHEN n.variant = 'unseen' THEN 'low' ELSE 'medium' END END AS certainty,
    CASE WHEN n.is_long THEN n.variant END AS variant,
    'io/single_stream,io/random_faults,io/sync_per_write,io/small_requests,io/seeks' AS explained_by,
    n.requests,
    CAST(floor(n.bytes / n.requests) AS BIGINT) AS mean_bytes,
    CAST(floor(n.queue_ns / n.requests) AS BIGINT) AS queue_ns,
    CAST(floor(n.service_ns / n.requests) AS BIGINT) AS service_ns,
    round(n.depth, 2) AS depth,
    n.busy_ns
FROM (SELECT 1 AS one) AS o
LEFT JOIN named AS n ON o.one = 1
