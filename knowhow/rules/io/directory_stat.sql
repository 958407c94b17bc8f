-- One stat call per directory entry
-- A process lists directories and then requests the attributes of each entry with a call of its own, without opening it.
-- needs:  calls, file_use, paths, processes, totals
-- param:  min_entries BIGINT = 500 > 0   Minimum number of entries.
-- param:  min_share DOUBLE = 0.05        Minimum share of the elapsed time.
-- column: subject VARCHAR       The directory; of many, the one that costs most.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Entries that were only asked about.
-- column: limit_value DOUBLE    Threshold: reported from this value on.
-- column: cost_ns BIGINT        Time in asking [ns].
-- column: gain_ns BIGINT        What doing without could save at most; 0: it is the work of the program [ns].
-- column: certainty VARCHAR     medium: whether the attributes are needed, the log cannot tell; low where the log has no durations.
-- column: cost_calls BIGINT     Calls that this cost is the time of.
-- column: entries BIGINT        Entries that were only asked about.
-- column: calls BIGINT          Calls that asked.
-- column: directories BIGINT    Directories in which that happened.
-- column: listed BIGINT         Directories that were listed.
-- says: finding en  {calls:call} requested the attributes of {entries:entry} in {directories:listed directory} one by one, without opening them.
-- says: finding ja  {directories} 個のディレクトリの一覧を読んだあと、{entries} 個のエントリの属性を開かずに 1 つずつ、{calls} 回の呼び出しで取得しています。
-- says: ok en       Checked {listed:listed directory}: the cost of attribute calls is negligible.
-- says: ok ja       一覧が読まれた {listed} 個のディレクトリを調べました。属性を取得する呼び出しのコストはわずかです。
-- says: unknown en  The recording contains no system calls.
-- says: unknown ja  システムコールが記録にありません。
-- at_least: calls min_entries
-- evidence: io/files --file {subject*}
-- tags:   metadata, files, calls
WITH listed AS (
    -- To change into a directory is not to list it.
    SELECT process_id, path_id
    FROM calls
    WHERE class = 'dir' AND coalesce(action, '') NOT IN ('directory_change', 'directory_query') AND path_id IS NOT NULL
    GROUP BY process_id, path_id
), asked_about AS (
    SELECT p.path_id, d.path_id AS directory_id, u.calls, u.time_ns
    FROM paths AS p
    JOIN file_use AS u ON u.path_id = p.path_id AND u.class = 'stat'
    JOIN paths AS d ON d.path = p.directory
    WHERE d.path_id IN (SELECT path_id FROM listed)
), children AS (
    -- Empty if all of them together are too few or cost too little: then no calls are read.
    SELECT a.path_id, a.directory_id
    FROM asked_about AS a
    WHERE (
        SELECT sum(u.calls) >= $min_entries AND coalesce(sum(u.time_ns) >= $min_share * (SELECT elapsed_ns FROM totals), true)
        FROM asked_about AS u
    )
), entries AS (
    -- Those that a process asked about, and did not open or run.
    SELECT c.process_id, c.path_id, k.directory_id, count(*) AS calls, sum(c.dur_ns) AS time_ns
    FROM calls AS c
    JOIN children AS k ON k.path_id = c.path_id
    -- coalesce: DuckDB then looks for the classes while it decodes; a bare IN it would make ORs, tested on decoded rows.
    WHERE coalesce(c.class, '') IN ('stat', 'open', 'process')
    GROUP BY c.process_id, c.path_id, k.directory_id
    HAVING count(*) FILTER (WHERE c.class <> 'stat') = 0
), asked AS (
    SELECT e.directory_id, count(*) AS entries, sum(e.calls) AS calls, sum(e.time_ns) AS time_ns
    FROM entries AS e
    JOIN listed AS l ON l.process_id = e.process_id AND l.path_id = e.directory_id
    GROUP BY e.directory_id
), summed AS (
    SELECT sum(entries) AS entries, sum(calls) AS calls, count(*) AS directories, CAST(sum(time_ns) AS BIGINT) AS cost_ns,
        arg_max(directory_id, entries) AS directory_id
    FROM asked
), found AS (
    SELECT s.*, p.path AS directory
    FROM summed AS s
    JOIN paths AS p ON p.path_id = s.directory_id
    CROSS JOIN totals AS t
    WHERE s.entries >= $min_entries AND coalesce(s.cost_ns >= $min_share * t.elapsed_ns, true)
), listers AS (
    -- Programs that are there to say what lies in directories, or to copy it as it is.
    SELECT CASE WHEN count(*) > 0 AND min(CASE WHEN p.comm IN ('ls', 'dir', 'du', 'find', 'tree', 'tar', 'rsync', 'cp', 'git', 'diff', 'chmod', 'chown', 'rm') THEN 1 ELSE 0 END) = 1
        THEN 1 ELSE 0 END AS is_lister
    FROM entries AS e INNER JOIN processes AS p ON p.task_id = e.process_id
)
SELECT
    f.directory AS subject,
    CASE WHEN f.entries IS NOT NULL THEN 'finding' WHEN t.calls = 0 THEN 'unknown' ELSE 'ok' END AS status,
    CAST(f.entries AS DOUBLE) AS value,
    CAST($min_entries AS DOUBLE) AS limit_value,
    f.cost_ns,
    CASE WHEN f.entries IS NOT NULL AND l.is_lister = 1 THEN CAST(0 AS BIGINT) ELSE f.cost_ns END AS gain_ns,
    CASE WHEN f.entries IS NULL THEN NULL WHEN f.cost_ns IS NULL THEN 'low' ELSE 'medium' END AS certainty,
    CAST(f.calls AS BIGINT) AS cost_calls,
    CAST(f.entries AS BIGINT) AS entries,
    CAST(f.calls AS BIGINT) AS calls,
    f.directories,
    (SELECT count(DISTINCT path_id) FROM listed) AS listed
FROM totals AS t
CROSS JOIN listers AS l
LEFT JOIN found AS f ON f.entries > 0
