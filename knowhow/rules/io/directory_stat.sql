-- Stat of every entry
-- Directories that a process lists, and of whose entries it then asks for attributes one by one, without opening them.
-- needs:  file_use, paths, totals
-- param:  min_entries BIGINT = 500 > 0   Fewer entries are no finding.
-- param:  min_share DOUBLE = 0.05        Least part of the elapsed time.
-- column: subject VARCHAR       The directory; of many, the one that costs most.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Entries that were only asked about.
-- column: limit_value DOUBLE    From which on it is a finding.
-- column: cost_ns BIGINT        Time in asking [ns].
-- column: gain_ns BIGINT        What doing without could save at most [ns].
-- column: certainty VARCHAR     medium: whether the attributes are needed, the log cannot tell; low where the log has no durations.
-- column: entries BIGINT        Entries that were only asked about.
-- column: calls BIGINT          Calls that asked.
-- column: directories BIGINT    Directories in which that happened.
-- column: listed BIGINT         Directories that were listed.
-- says: finding en  {calls} calls asked about {entries} entries of {directories} listed director(ies), one by one, without opening them.
-- says: finding ja  {directories} 個のディレクトリの一覧を読んだあと、{entries} 個のエントリの属性を 1 つずつ、{calls} 回の呼び出しで調べています。開いてはいません。
-- says: ok en       {listed} listed director(ies) looked at: asking about entries takes no time worth mentioning.
-- says: ok ja       一覧が読まれた {listed} 個のディレクトリを調べました。エントリの属性を調べることに目立つ時間は使っていません。
-- says: unknown en  The recording holds no calls.
-- says: unknown ja  システムコールが記録にありません。
-- evidence: io/files --file {subject*}
-- tags:   metadata, files, calls
WITH listed AS (
    SELECT DISTINCT u.process_id, p.path AS directory
    FROM file_use AS u
    JOIN paths AS p ON p.path_id = u.path_id
    WHERE u.class = 'dir'
), used AS (
    SELECT u.process_id, u.path_id, p.directory, sum(u.calls) FILTER (WHERE u.class = 'stat') AS calls,
        sum(u.time_ns) FILTER (WHERE u.class = 'stat') AS time_ns,
        count(*) FILTER (WHERE u.class NOT IN ('stat', 'attr', 'name')) AS otherwise
    FROM file_use AS u
    JOIN paths AS p ON p.path_id = u.path_id
    GROUP BY u.process_id, u.path_id, p.directory
), asked AS (
    SELECT u.directory, count(*) AS entries, sum(u.calls) AS calls, sum(u.time_ns) AS time_ns
    FROM used AS u
    JOIN listed AS l ON l.process_id = u.process_id AND l.directory = u.directory
    WHERE u.otherwise = 0 AND u.calls > 0
    GROUP BY u.directory
), summed AS (
    SELECT sum(entries) AS entries, sum(calls) AS calls, count(*) AS directories, CAST(sum(time_ns) AS BIGINT) AS cost_ns,
        arg_max(directory, entries) AS directory
    FROM asked
), found AS (
    SELECT s.*
    FROM summed AS s
    CROSS JOIN totals AS t
    WHERE s.entries >= $min_entries AND coalesce(s.cost_ns >= $min_share * t.elapsed_ns, true)
)
SELECT
    f.directory AS subject,
    CASE WHEN f.entries IS NOT NULL THEN 'finding' WHEN t.calls = 0 THEN 'unknown' ELSE 'ok' END AS status,
    CAST(f.entries AS DOUBLE) AS value,
    CAST($min_entries AS DOUBLE) AS limit_value,
    f.cost_ns,
    f.cost_ns AS gain_ns,
    CASE WHEN f.entries IS NULL THEN NULL WHEN f.cost_ns IS NULL THEN 'low' ELSE 'medium' END AS certainty,
    CAST(f.entries AS BIGINT) AS entries,
    CAST(f.calls AS BIGINT) AS calls,
    f.directories,
    (SELECT count(DISTINCT directory) FROM listed) AS listed
FROM totals AS t
LEFT JOIN found AS f ON f.entries > 0
