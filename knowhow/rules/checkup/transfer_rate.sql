-- Slower than the file system
-- How fast the recording transferred data below the directories whose rates the site knows, while at least one call was in progress.
-- needs:  calls, paths, recording, site_rates
-- param:  least_bytes BIGINT = 1048576    A rate of less data is chance [B].
-- param:  least_ns BIGINT = 10000000      A rate of less time is chance [ns].
-- param:  slow DOUBLE = 0.5               Below this part of the site's rate it is a finding.
-- param:  from_cache DOUBLE = 1.2         Above this part of it, memory answered and not the disk.
-- column: subject VARCHAR       The folder.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Rate of the recording [B/s].
-- column: limit_value DOUBLE    Rate of the site [B/s].
-- column: cost_ns BIGINT        Time in which at least one call was in progress, where it was slow [ns].
-- column: gain_ns BIGINT        What the site's rate would save of it [ns].
-- column: certainty VARCHAR     medium.
-- column: variant VARCHAR       read or write; read_cached, write_cached, read_little, write_little; untimed without durations.
-- column: direction VARCHAR     read or write.
-- column: bytes BIGINT          Data that was transferred [B].
-- column: time_ns BIGINT        Time in which at least one call was in progress [ns].
-- column: share DOUBLE          Rate of the recording by that of the site [%].
-- says: finding.read en   Reading from {subject}: {bytes} in {time_ns}, {value}; the site reached {limit_value} ({share}).
-- says: finding.read ja   {subject} の読み込み: {time_ns} に {bytes}、{value}。サイトの値は {limit_value} ({share})。
-- says: finding.write en  Writing to {subject}: {bytes} in {time_ns}, {value}; the site reached {limit_value} ({share}).
-- says: finding.write ja  {subject} の書き込み: {time_ns} に {bytes}、{value}。サイトの値は {limit_value} ({share})。
-- says: ok.read en        Reading from {subject}: {bytes} in {time_ns}, {value}; the site reached {limit_value} ({share}).
-- says: ok.read ja        {subject} の読み込み: {time_ns} に {bytes}、{value}。サイトの値は {limit_value} ({share})。
-- says: ok.write en       Writing to {subject}: {bytes} in {time_ns}, {value}; the site reached {limit_value} ({share}).
-- says: ok.write ja       {subject} の書き込み: {time_ns} に {bytes}、{value}。サイトの値は {limit_value} ({share})。
-- says: unknown en        No rate of this site is known for comparison. Pass --site site.toml with the rates that the file systems reached when they were tested; `sysdock threshold --rate` writes them.
-- says: unknown ja        比較できるこのサイトの転送速度がありません。ファイルシステムの検査時の転送速度を含む --site site.toml を与えてください。`sysdock threshold --rate` で書けます。
-- says: unknown.untimed en  The recording has no durations. Trace with `strace -T`.
-- says: unknown.untimed ja  記録に所要時間がありません。`strace -T` で記録してください。
-- says: unknown.read_little en   Reading from {subject}: {bytes} in {time_ns} is too little to judge a rate.
-- says: unknown.read_little ja   {subject} の読み込み: {time_ns} に {bytes} では少なすぎて転送速度を判断できません。
-- says: unknown.write_little en  Writing to {subject}: {bytes} in {time_ns} is too little to judge a rate.
-- says: unknown.write_little ja  {subject} の書き込み: {time_ns} に {bytes} では少なすぎて転送速度を判断できません。
-- says: unknown.read_cached en   Reading from {subject}: {bytes} in {time_ns}, {value}; the site reached {limit_value} ({share}). This is faster than the file system: the data came from the page cache, not from the disk. Do not quote this rate.
-- says: unknown.read_cached ja   {subject} の読み込み: {time_ns} に {bytes}、{value}。サイトの値は {limit_value} ({share})。ファイルシステムより速いので、ディスクではなくメモリ (ページキャッシュ) の速度です。性能値として使わないでください。
-- says: unknown.write_cached en  Writing to {subject}: {bytes} in {time_ns}, {value}; the site reached {limit_value} ({share}). This is faster than the file system: the data went to the page cache, not to the disk. Do not quote this rate.
-- says: unknown.write_cached ja  {subject} の書き込み: {time_ns} に {bytes}、{value}。サイトの値は {limit_value} ({share})。ファイルシステムより速いので、ディスクではなくメモリ (ページキャッシュ) の速度です。性能値として使わないでください。
-- tags:   bytes, time, files
WITH folders AS (
    SELECT DISTINCT folder, CASE WHEN folder = '/' THEN '/' ELSE concat(folder, '/') END AS beginning
    FROM site_rates
), placed AS (
    -- Each file belongs to the deepest of the folders that it lies in.
    SELECT p.path_id, arg_max(f.folder, length(f.folder)) AS folder
    FROM paths AS p
    JOIN folders AS f ON starts_with(p.path, f.beginning)
    WHERE p.kind = 'file'
    GROUP BY p.path_id
), moved AS (
    -- A copy reads one file and writes another.
    SELECT path_id, 'read' AS direction, transferred_bytes AS bytes, ts_ns, dur_ns
    FROM calls WHERE coalesce(class, '') IN ('read', 'copy')
    UNION ALL
    SELECT path_id, 'write', transferred_bytes, ts_ns, dur_ns FROM calls WHERE class = 'write'
    UNION ALL
    SELECT to_path_id, 'write', transferred_bytes, ts_ns, dur_ns FROM calls WHERE class = 'copy'
), spans AS (
    SELECT p.folder, m.direction, m.bytes, m.ts_ns, m.ts_ns + m.dur_ns AS end_ns,
        max(m.ts_ns + m.dur_ns) OVER (PARTITION BY p.folder, m.direction ORDER BY m.ts_ns, m.ts_ns + m.dur_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns
    FROM moved AS m
    JOIN placed AS p ON p.path_id = m.path_id
    WHERE m.bytes > 0 AND m.dur_ns IS NOT NULL
), totals_by_folder AS (
    -- Calls of several threads overlap: of each counts what no earlier one covered.
    SELECT folder, direction, sum(bytes) AS bytes, sum(greatest(0, end_ns - greatest(ts_ns, coalesce(before_ns, ts_ns)))) AS time_ns
    FROM spans
    GROUP BY folder, direction
), rates AS (
    SELECT r.folder, r.direction, r.bytes_per_second AS expected, coalesce(t.bytes, 0) AS bytes, coalesce(t.time_ns, 0) AS time_ns,
        CASE WHEN t.time_ns > 0 THEN 1e9 * t.bytes / t.time_ns END AS rate
    FROM site_rates AS r
    LEFT JOIN totals_by_folder AS t ON t.folder = r.folder AND t.direction = r.direction
), state AS (
    SELECT (SELECT count(*) FROM site_rates) AS rates, coalesce(has_durations, true) AND coalesce(clock, '') <> 'order' AS timed
    FROM recording
), judged AS (
    SELECT *, CASE WHEN bytes < $least_bytes OR time_ns < $least_ns THEN '_little' WHEN rate > $from_cache * expected THEN '_cached'
        ELSE '' END AS doubt
    FROM rates
)
SELECT
    j.folder AS subject,
    CASE WHEN j.folder IS NULL OR j.doubt <> '' THEN 'unknown' WHEN j.rate < $slow * j.expected THEN 'finding' ELSE 'ok' END AS status,
    j.rate AS value,
    j.expected AS limit_value,
    CASE WHEN j.doubt = '' AND j.rate < $slow * j.expected THEN CAST(j.time_ns AS BIGINT) END AS cost_ns,
    CASE WHEN j.doubt = '' AND j.rate < $slow * j.expected THEN CAST(j.time_ns - 1e9 * j.bytes / j.expected AS BIGINT) END AS gain_ns,
    CASE WHEN j.doubt = '' AND j.rate < $slow * j.expected THEN 'medium' END AS certainty,
    CASE WHEN s.rates > 0 AND NOT s.timed THEN 'untimed' WHEN j.folder IS NOT NULL THEN concat(j.direction, j.doubt) END AS variant,
    j.direction,
    CAST(j.bytes AS BIGINT) AS bytes,
    CAST(j.time_ns AS BIGINT) AS time_ns,
    CASE WHEN j.rate IS NOT NULL THEN round(1e2 * j.rate / j.expected) END AS share
FROM state AS s
LEFT JOIN judged AS j ON s.timed
ORDER BY j.folder, j.direction
