-- Disk at its limit
-- The busiest disk while the job ran, from sysstat samples.
-- needs:  device_loads
-- param:  most_busy DOUBLE = 80           Share of the time from which a disk is at its limit [%].
-- param:  from_ns BIGINT = NULL           Start of the job, since the Unix epoch; NULL where it is not known [ns].
-- param:  until_ns BIGINT = NULL          End of the job [ns].
-- column: subject VARCHAR         The busiest disk.
-- column: status VARCHAR          finding, ok or unknown.
-- column: value DOUBLE            Share of the time in which it was busy, on average [%].
-- column: limit_value DOUBLE      Threshold: reported from this value on [%].
-- column: cost_ns BIGINT          Not known: others may have kept it busy [ns].
-- column: gain_ns BIGINT          Not known [ns].
-- column: certainty VARCHAR       medium.
-- column: variant VARCHAR         during (the job), outside (no sample of its time), rates or rates_during (without how busy it was).
-- column: samples BIGINT          Samples of the disk.
-- column: busiest DOUBLE          Busiest sample [%].
-- column: wait_ns BIGINT          Mean time of a request [ns].
-- column: read DOUBLE             Read on average [B/s].
-- column: written DOUBLE          Written on average [B/s].
-- says: finding en  sysstat: the busiest disk is {subject}: {value} busy on average (peak {busiest}), {wait_ns} per request, {read} read, {written} written ({samples:sample} in the whole file).
-- says: finding ja  sysstat: 最も混んでいたディスクは {subject}: 平均 {value}、最大 {busiest}、1 要求 {wait_ns}、読み込み {read}、書き込み {written} (ファイル全体の {samples} 点)。
-- says: finding.during en  sysstat: the busiest disk is {subject}: {value} busy on average (peak {busiest}), {wait_ns} per request, {read} read, {written} written ({samples:sample} during the job).
-- says: finding.during ja  sysstat: 最も混んでいたディスクは {subject}: 平均 {value}、最大 {busiest}、1 要求 {wait_ns}、読み込み {read}、書き込み {written} (ジョブの間の {samples} 点)。
-- says: ok en  sysstat: the busiest disk is {subject}: {value} busy on average (peak {busiest}), {wait_ns} per request, {read} read, {written} written ({samples:sample} in the whole file).
-- says: ok ja  sysstat: 最も混んでいたディスクは {subject}: 平均 {value}、最大 {busiest}、1 要求 {wait_ns}、読み込み {read}、書き込み {written} (ファイル全体の {samples} 点)。
-- says: ok.during en  sysstat: the busiest disk is {subject}: {value} busy on average (peak {busiest}), {wait_ns} per request, {read} read, {written} written ({samples:sample} during the job).
-- says: ok.during ja  sysstat: 最も混んでいたディスクは {subject}: 平均 {value}、最大 {busiest}、1 要求 {wait_ns}、読み込み {read}、書き込み {written} (ジョブの間の {samples} 点)。
-- says: unknown en  The recording contains no disk samples.
-- says: unknown ja  ディスクの負荷の記録がありません。
-- says: unknown.outside en  sysstat: no sample was taken during the job. Pass the file of that day.
-- says: unknown.outside ja  sysstat: ジョブの時間内の記録がありません。その日のファイルを与えてください。
-- says: unknown.rates en  sysstat: {samples:sample} in the whole file: {read} read, {written} written, but not how busy the disks were. Also pass `sar -d` or `sadf -j FILE -- -d`.
-- says: unknown.rates ja  sysstat: ファイル全体の {samples} 点: 読み込み {read}、書き込み {written}。ディスクの使用率は含まれていません。`sar -d` か `sadf -j FILE -- -d` も与えてください。
-- says: unknown.rates_during en  sysstat: {samples:sample} during the job: {read} read, {written} written, but not how busy the disks were. Also pass `sar -d` or `sadf -j FILE -- -d`.
-- says: unknown.rates_during ja  sysstat: ジョブの間の {samples} 点: 読み込み {read}、書き込み {written}。ディスクの使用率は含まれていません。`sar -d` か `sadf -j FILE -- -d` も与えてください。
-- tags:   disk, time
WITH ends AS (
    SELECT file_id, end_ts_ns - lag(end_ts_ns, 1, end_ts_ns) OVER (PARTITION BY file_id ORDER BY end_ts_ns) AS step_ns, end_ts_ns
    FROM device_loads
), files AS (
    -- A sample stands for the interval that ends with it; of one interval alone, that of sysstat's timer.
    SELECT file_id, coalesce(min(CASE WHEN step_ns > 0 THEN step_ns END), 600000000000) AS step_ns,
        $from_ns IS NOT NULL AND count(*) = count(end_ts_ns) AS during
    FROM ends
    GROUP BY file_id
), samples AS (
    SELECT l.*
    FROM device_loads AS l
    JOIN files AS f ON f.file_id = l.file_id
    WHERE NOT f.during OR (l.end_ts_ns >= $from_ns AND l.end_ts_ns <= $until_ns + f.step_ns)
), devices AS (
    -- Without how busy they were, all samples of a file are taken together.
    SELECT s.file_id, CASE WHEN s.busy_percent IS NULL THEN NULL ELSE coalesce(s.device, '') END AS device, count(*) AS samples,
        avg(s.busy_percent) AS busy, max(s.busy_percent) AS busiest, avg(s.wait_ns) AS wait_ns, avg(s.read_bytes_per_second) AS read,
        avg(s.written_bytes_per_second) AS written
    FROM samples AS s
    GROUP BY s.file_id, CASE WHEN s.busy_percent IS NULL THEN NULL ELSE coalesce(s.device, '') END
), placed AS (
    SELECT *, row_number() OVER (PARTITION BY file_id ORDER BY coalesce(busy, -1) DESC, device) AS place
    FROM devices
), state AS (
    SELECT count(*) AS files FROM files
)
SELECT
    d.device AS subject,
    CASE WHEN d.busy IS NULL THEN 'unknown' WHEN d.busy >= $most_busy THEN 'finding' ELSE 'ok' END AS status,
    round(d.busy, 1) AS value,
    CAST($most_busy AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN d.busy >= $most_busy THEN 'medium' END AS certainty,
    CASE WHEN f.file_id IS NULL THEN NULL WHEN d.file_id IS NULL THEN 'outside' WHEN d.busy IS NULL AND f.during THEN 'rates_during'
        WHEN d.busy IS NULL THEN 'rates' WHEN f.during THEN 'during' END AS variant,
    d.samples,
    d.busiest,
    CAST(round(d.wait_ns) AS BIGINT) AS wait_ns,
    d.read,
    d.written
FROM state AS s
LEFT JOIN files AS f ON s.files > 0
LEFT JOIN placed AS d ON d.file_id = f.file_id AND d.place = 1
ORDER BY f.file_id
