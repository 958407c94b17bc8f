-- Where the time went, by system calls
-- The time of the command and of each thread, as far as system calls show it: calls that wait, other calls by what they do, and
-- the rest. While a process waits for its child, the activity of the child counts.
-- needs:  calls, call_actions, processes, paths, captures
-- else:   time/states
-- column: process VARCHAR   Program and process id; empty: the command as a whole.
-- column: tid INTEGER       Thread id.
-- column: part VARCHAR      Where the time went.
-- column: detail VARCHAR    The call that took most of this time, and its share of the part.
-- column: time_ns BIGINT    Time of the part [ns].
-- column: share DOUBLE      Share of the time of the command, or of the thread.
-- column: evidence VARCHAR  The analysis that shows the details.
-- sums:   time_ns
-- match:  process, part
-- chart:  bars x=part y=time_ns title="Where the time went" title_ja="時間の内訳"
-- portable: false
-- tags:   time, processes
WITH RECURSIVE lasts AS (
    SELECT c.task_id, max(c.ts_ns + coalesce(c.dur_ns, 0)) AS last_ns FROM calls AS c WHERE c.via IS NULL GROUP BY c.task_id
), threads AS (
    -- A log without durations or without a clock has no times.
    SELECT p.task_id, p.process_id, p.pid, p.depth, p.start_ts_ns AS ts_ns, coalesce(p.end_ts_ns, l.last_ns) AS until_ns, l.last_ns
    FROM processes AS p
    LEFT JOIN lasts AS l ON l.task_id = p.task_id
    WHERE EXISTS (SELECT 1 FROM captures AS c WHERE c.has_durations AND coalesce(c.clock, 'order') <> 'order')
), timed AS NOT MATERIALIZED (
    -- The last call of a thread may not have returned: it lasted until the end.
    SELECT c.task_id, c.ts_ns, c.call, c.class, c.path_id, c.result,
        c.ts_ns + coalesce(c.dur_ns, CASE WHEN c.ts_ns = t.last_ns THEN greatest(0, t.until_ns - c.ts_ns) ELSE 0 END) AS until_ns
    FROM calls AS c
    INNER JOIN threads AS t ON t.task_id = c.task_id
    WHERE c.via IS NULL
), child_waits AS (
    -- Which child such a call waited for: of those that had the number, the one that began last.
    SELECT w.task_id, w.ts_ns, w.until_ns, w.call, w.class, k.task_id AS child_id, k.depth AS child_depth, k.ts_ns AS child_ts_ns, k.until_ns AS child_until_ns,
        row_number() OVER (PARTITION BY w.task_id, w.ts_ns ORDER BY k.ts_ns DESC) AS place
    FROM timed AS w
    INNER JOIN call_actions AS x ON x.call = w.call
    INNER JOIN threads AS k ON k.pid = w.result AND k.task_id = k.process_id AND k.ts_ns < w.until_ns
    WHERE (x.action = 'child_wait' OR w.call = 'vfork') AND w.result > 0
), stays AS (
    -- When the command is at which thread. It begins with the first one, if there is only one that comes from outside.
    SELECT min(t.process_id) AS task_id, min(t.depth) AS depth, min(t.ts_ns) AS ts_ns, max(t.until_ns) AS until_ns, CAST(NULL AS VARCHAR) AS call, CAST(NULL AS VARCHAR) AS class
    FROM (
        SELECT f.process_id, f.depth, f.ts_ns, f.until_ns, count(*) OVER () AS number
        FROM threads AS f WHERE f.depth = 0 AND f.task_id = f.process_id
    ) AS t
    WHERE t.number = 1
    HAVING count(*) = 1
    UNION ALL
    SELECT w.child_id, w.child_depth, greatest(s.ts_ns, w.ts_ns, w.child_ts_ns), least(s.until_ns, w.until_ns, w.child_until_ns), w.call, w.class
    FROM stays AS s
    INNER JOIN child_waits AS w ON w.task_id = s.task_id AND w.place = 1 AND w.child_depth > s.depth
    WHERE greatest(s.ts_ns, w.ts_ns, w.child_ts_ns) < least(s.until_ns, w.until_ns, w.child_until_ns)
), special AS (
    -- Objects that are no files: few, where there may be as many files as calls.
    SELECT p.path_id, p.kind FROM paths AS p WHERE p.kind IN ('socket', 'pipe')
), used AS (
    SELECT c.task_id, c.call, c.class, o.kind, c.path_id IS NOT NULL AS has_object, sum(c.until_ns - c.ts_ns) AS time_ns
    FROM timed AS c
    LEFT JOIN special AS o ON o.path_id = c.path_id
    GROUP BY c.task_id, c.call, c.class, o.kind, c.path_id IS NOT NULL
    UNION ALL
    SELECT CAST(NULL AS INTEGER), c.call, c.class, o.kind, c.path_id IS NOT NULL,
        sum(least(c.until_ns, s.until_ns) - greatest(c.ts_ns, s.ts_ns))
    FROM timed AS c
    -- There are fewer stays than calls. The engine cannot estimate how many a recursion gives, and would keep all calls in memory without the limit.
    INNER JOIN (SELECT f.task_id, f.ts_ns, f.until_ns FROM stays AS f LIMIT 1000000000) AS s ON s.task_id = c.task_id
    LEFT JOIN special AS o ON o.path_id = c.path_id
    WHERE c.ts_ns < s.until_ns AND c.until_ns > s.ts_ns
    GROUP BY c.call, c.class, o.kind, c.path_id IS NOT NULL
    UNION ALL
    SELECT CAST(NULL AS INTEGER), s.call, s.class, CAST(NULL AS VARCHAR), false, s.ts_ns - s.until_ns FROM stays AS s WHERE s.call IS NOT NULL
), named AS (
    SELECT u.task_id, u.call, u.time_ns,
        CASE
            WHEN x.action = 'sleep' THEN 'waiting: timer'
            WHEN x.action = 'child_wait' OR u.call = 'vfork' THEN 'waiting: child process'
            WHEN u.class = 'lock' AND u.has_object THEN 'waiting: file lock'
            WHEN u.class = 'lock' AND coalesce(x.action, '') <> 'robust_list' THEN 'waiting: lock'
            WHEN u.class = 'wait' OR x.action = 'signal_wait' THEN 'waiting: events'
            WHEN u.kind = 'socket' OR u.class = 'socket' THEN 'in calls: network'
            WHEN u.kind = 'pipe' THEN 'in calls: pipes'
            WHEN u.class = 'sync' THEN 'in calls: writing to disk'
            WHEN u.class IN ('read', 'write', 'copy') THEN 'in calls: file data'
            WHEN u.class IN ('open', 'close', 'seek', 'stat', 'dir', 'name', 'attr', 'control') THEN 'in calls: file system'
            WHEN u.class IN ('map', 'memory') THEN 'in calls: memory'
            WHEN u.class = 'process' THEN 'in calls: processes'
            ELSE 'in calls: other'
        END AS part
    FROM used AS u
    LEFT JOIN call_actions AS x ON x.call = u.call
), by_call AS (
    SELECT n.task_id, n.part, n.call, sum(n.time_ns) AS time_ns FROM named AS n GROUP BY n.task_id, n.part, n.call
), parts AS (
    -- The longest call of each; of several the first by name.
    SELECT b.task_id, b.part, CAST(sum(b.time_ns) AS BIGINT) AS time_ns,
        max(CASE WHEN b.place = 1 THEN b.call END) AS call, max(b.time_ns) AS call_ns
    FROM (
        SELECT c.task_id, c.part, c.call, c.time_ns, row_number() OVER (PARTITION BY c.task_id, c.part ORDER BY c.time_ns DESC, c.call) AS place
        FROM by_call AS c
    ) AS b
    GROUP BY b.task_id, b.part
), spans AS (
    SELECT CAST(NULL AS INTEGER) AS task_id, s.until_ns - s.ts_ns AS time_ns FROM stays AS s WHERE s.call IS NULL
    UNION ALL
    SELECT t.task_id, t.until_ns - t.ts_ns FROM threads AS t WHERE t.until_ns IS NOT NULL
), rows_of_all AS (
    SELECT p.task_id, p.part, p.time_ns,
        CASE WHEN p.time_ns > 0 THEN concat(p.call, ' (', CAST(CAST(round(1e2 * p.call_ns / p.time_ns) AS BIGINT) AS VARCHAR), ' %)') END AS detail
    FROM parts AS p
    UNION ALL
    SELECT s.task_id, 'unknown: outside of calls', s.time_ns - CAST(coalesce(sum(p.time_ns), 0) AS BIGINT), NULL
    FROM spans AS s
    LEFT JOIN parts AS p ON coalesce(p.task_id, -1) = coalesce(s.task_id, -1)
    GROUP BY s.task_id, s.time_ns
)
SELECT
    CASE WHEN r.task_id IS NOT NULL THEN concat(coalesce(p.comm, '?'), ' ', CAST(p.pid AS VARCHAR)) END AS process,
    p.tid,
    r.part,
    r.detail,
    r.time_ns,
    CASE WHEN s.time_ns > 0 THEN round(1e0 * r.time_ns / s.time_ns, 4) END AS share,
    CASE WHEN r.detail IS NOT NULL THEN 'io/durations' END AS evidence
FROM rows_of_all AS r
INNER JOIN spans AS s ON coalesce(s.task_id, -1) = coalesce(r.task_id, -1)
LEFT JOIN processes AS p ON p.task_id = r.task_id
WHERE r.time_ns > 0
ORDER BY coalesce(p.tree_order, -1), r.time_ns DESC, r.part
