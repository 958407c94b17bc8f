-- Files that several ranks wait for
-- Files and directories that more than one rank of a parallel job spent time on: which ranks, for how long, and whether at the same time.
-- Overlapping calls of several threads of a rank count once, so `time_ns` is elapsed time of the rank.
-- needs:  calls, paths, ranks
-- param:  min_time_ns BIGINT = 1000000  Leave out files on which all ranks together spent less [ns].
-- column: path VARCHAR           The file or directory.
-- column: ranks BIGINT           Ranks that spent time on it.
-- column: all_ns BIGINT          Time of all these ranks [ns].
-- column: rank INTEGER           One of them.
-- column: name VARCHAR           Name of its recording.
-- column: calls BIGINT           Its calls on the file.
-- column: time_ns BIGINT         Time in which it was in such a call [ns].
-- column: longest_ns BIGINT      The longest of them [ns].
-- column: together_ns BIGINT     Of `time_ns`, while another rank was in a call on the same file [ns].
-- column: together DOUBLE        That share: 1 means always at the same time as another rank, 0 never.
-- column: first_s DOUBLE         Start of its first call on the file, since the first event of all ranks [s].
-- column: last_s DOUBLE          End of its last one [s].
-- match:  path, rank
-- tags:   files, time, processes
WITH on_files AS (
    SELECT c.path_id, c.rank, c.ts_ns, c.ts_ns + c.dur_ns AS end_ns, c.dur_ns
    FROM calls AS c
    WHERE c.rank IS NOT NULL AND c.via IS NULL AND c.dur_ns IS NOT NULL AND c.kind IN ('file', 'directory')
), shared AS (
    SELECT o.path_id, count(DISTINCT o.rank) AS ranks, sum(o.dur_ns) AS all_ns
    FROM on_files AS o
    GROUP BY o.path_id
    HAVING count(DISTINCT o.rank) > 1 AND sum(o.dur_ns) >= $min_time_ns
), of_ranks AS (
    SELECT o.path_id, o.rank, count(*) AS calls, max(o.dur_ns) AS longest_ns, min(o.ts_ns) AS first_ns, max(o.end_ns) AS last_ns
    FROM on_files AS o INNER JOIN shared AS s ON s.path_id = o.path_id
    GROUP BY o.path_id, o.rank
), steps AS (
    SELECT o.path_id, o.rank, o.ts_ns AS at_ns, 1 AS step FROM on_files AS o INNER JOIN shared AS s ON s.path_id = o.path_id
    UNION ALL
    SELECT o.path_id, o.rank, o.end_ns, -1 FROM on_files AS o INNER JOIN shared AS s ON s.path_id = o.path_id
), counted AS (
    -- Calls of the rank that are under way from here on: threads, and calls within others.
    SELECT t.path_id, t.rank, t.at_ns, t.step,
        sum(t.step) OVER (PARTITION BY t.path_id, t.rank ORDER BY t.at_ns, t.step DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS under_way
    FROM steps AS t
), changes AS (
    -- When the rank comes to the file, and when it leaves it.
    SELECT c.path_id, c.rank, c.at_ns, c.step
    FROM counted AS c
    WHERE c.step = 1 AND c.under_way = 1 OR c.step = -1 AND c.under_way = 0
), in_order AS (
    SELECT c.path_id, c.rank, c.at_ns, c.step,
        sum(c.step) OVER (PARTITION BY c.path_id ORDER BY c.at_ns, c.step DESC, c.rank ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS here,
        min(c.at_ns) OVER (PARTITION BY c.path_id ORDER BY c.at_ns, c.step DESC, c.rank ROWS BETWEEN 1 FOLLOWING AND 1 FOLLOWING) - c.at_ns
            AS until_next_ns
    FROM changes AS c
), before AS (
    -- For how long several ranks were in calls on the file until this change.
    SELECT i.path_id, i.rank, i.at_ns, i.step, sum(CASE WHEN i.here > 1 THEN i.until_next_ns ELSE 0 END) OVER (
        PARTITION BY i.path_id ORDER BY i.at_ns, i.step DESC, i.rank ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS together_ns
    FROM in_order AS i
), times AS (
    SELECT b.path_id, b.rank, -sum(b.step * b.at_ns) AS time_ns, -sum(b.step * coalesce(b.together_ns, 0)) AS together_ns
    FROM before AS b
    GROUP BY b.path_id, b.rank
), first AS (
    SELECT min(start_ts_ns) AS ts_ns FROM ranks
)
SELECT
    p.path,
    s.ranks,
    CAST(sum(t.time_ns) OVER (PARTITION BY s.path_id) AS BIGINT) AS all_ns,
    o.rank,
    r.name,
    o.calls,
    CAST(t.time_ns AS BIGINT) AS time_ns,
    o.longest_ns,
    CAST(t.together_ns AS BIGINT) AS together_ns,
    CASE WHEN t.time_ns > 0 THEN round(1e0 * t.together_ns / t.time_ns, 4) END AS together,
    round((o.first_ns - f.ts_ns) / 1e9, 6) AS first_s,
    round((o.last_ns - f.ts_ns) / 1e9, 6) AS last_s
FROM of_ranks AS o
INNER JOIN shared AS s ON s.path_id = o.path_id
INNER JOIN times AS t ON t.path_id = o.path_id AND t.rank = o.rank
INNER JOIN paths AS p ON p.path_id = o.path_id
INNER JOIN ranks AS r ON r.rank = o.rank
CROSS JOIN first AS f
ORDER BY all_ns DESC, p.path, s.path_id, t.time_ns DESC, o.rank
