-- Failed path lookups
-- Names are searched for in one directory after another, mostly without success.
-- needs:  failed_lookups, paths, totals
-- param:  min_lookups BIGINT = 500 > 0   Minimum number of failed look-ups.
-- param:  min_share DOUBLE = 0.02        Minimum share of the elapsed time.
-- column: subject VARCHAR       Directory in which most look-ups failed.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Look-ups that failed along a list of directories.
-- column: limit_value DOUBLE    Threshold: reported from this value on.
-- column: cost_ns BIGINT        Time in them [ns].
-- column: gain_ns BIGINT        What looking in the right place first could save at most [ns].
-- column: certainty VARCHAR     high; low where the log has no durations.
-- column: cost_calls BIGINT     Calls that this cost is the time of.
-- column: explained_by VARCHAR  Rules whose findings explain this one.
-- column: lookups BIGINT        Failed look-ups.
-- column: names BIGINT          Names looked for.
-- column: directories BIGINT    Directories looked in.
-- column: found BIGINT          Names that were found elsewhere.
-- column: here BIGINT           Failed look-ups in the subject.
-- column: calls BIGINT          Calls checked.
-- says: finding en  {lookups:lookup} of {names:name} in {directories:directory} failed, {here} of them in this one; {found} of the names {found?was|were} found elsewhere.
-- says: finding ja  {names} 個の名前を {directories} 個のディレクトリで探し、{lookups} 回見つかりませんでした（うちここで {here} 回）。別の場所で見つかった名前は {found} 個です。
-- says: ok en       Checked {calls:call}: the cost of searching directories is negligible.
-- says: ok ja       システムコール {calls} 回を調べました。パス検索の失敗によるコストはわずかです。
-- says: unknown en  The recording contains no system calls.
-- says: unknown ja  システムコールが記録にありません。
-- at_least: calls min_lookups
-- evidence: io/errors --file {subject*}
-- tags:   errors, metadata, files
-- was:    io/failed_searches
WITH searched AS (
    SELECT l.lookups, l.time_ns, l.found, p.directory, p.file_name
    FROM failed_lookups AS l
    JOIN paths AS p ON p.path_id = l.path_id
    WHERE l.searched
), places AS (
    SELECT directory, sum(lookups) AS lookups FROM searched GROUP BY directory
), summed AS (
    SELECT sum(lookups) AS lookups, CAST(sum(time_ns) AS BIGINT) AS cost_ns, count(DISTINCT file_name) AS names,
        count(DISTINCT directory) AS directories, count(DISTINCT CASE WHEN found > 0 THEN file_name END) AS found
    FROM searched
), found AS (
    SELECT s.*, (SELECT arg_max(directory, lookups) FROM places) AS directory, (SELECT max(lookups) FROM places) AS here
    FROM summed AS s
    CROSS JOIN totals AS t
    WHERE s.lookups >= $min_lookups AND coalesce(s.cost_ns >= $min_share * t.elapsed_ns, true)
)
SELECT
    f.directory AS subject,
    CASE WHEN f.lookups IS NOT NULL THEN 'finding' WHEN t.calls = 0 THEN 'unknown' ELSE 'ok' END AS status,
    CAST(f.lookups AS DOUBLE) AS value,
    CAST($min_lookups AS DOUBLE) AS limit_value,
    f.cost_ns,
    f.cost_ns AS gain_ns,
    CASE WHEN f.lookups IS NULL THEN NULL WHEN f.cost_ns IS NULL THEN 'low' ELSE 'high' END AS certainty,
    CAST(f.lookups AS BIGINT) AS cost_calls,
    'processes/process_creation' AS explained_by,
    CAST(f.lookups AS BIGINT) AS lookups,
    f.names,
    f.directories,
    f.found,
    CAST(f.here AS BIGINT) AS here,
    t.calls
FROM totals AS t
LEFT JOIN found AS f ON f.lookups > 0
