-- Instructions by task and image
-- Where the instructions of a request were executed: in the program, in its libraries, or in the kernel.
-- needs:  traced_tasks, images
-- uses:   trace_segments, function_totals, traced_functions
-- param:  request INTEGER = 0           Only this request; 0: all.
-- column: request INTEGER               Number of the request, from 1.
-- column: task VARCHAR                  Name of the task; NULL: unknown.
-- column: pid INTEGER                   Its number.
-- column: mode VARCHAR                  user (a program), library or kernel.
-- column: image VARCHAR                 The file of the code.
-- column: steps BIGINT                  Steps; each iteration of a repeated string instruction (REP) counts.
-- column: steps_collapsed BIGINT        Steps; a repeated string instruction counts once. NULL: not in a profile.
-- column: part DOUBLE                   Share of the steps of the request [%].
-- column: loads BIGINT                  Memory reads; NULL: a profile may not count them.
-- column: stores BIGINT                 Memory writes; NULL: a profile may not count them.
-- heads_ja:  part=割合
-- match:  task, mode, image
-- sums:   steps, steps_collapsed, loads, stores
-- chart:  bars x=image y=steps color=mode title="Where instructions were executed" title_ja="命令が実行された場所"
-- tags:   cpu, processes
WITH sums AS (
    SELECT
        s.request_id,
        s.task_id,
        s.mode,
        s.image_id,
        CAST(sum(s.steps) AS BIGINT) AS steps,
        CAST(sum(s.steps_collapsed) AS BIGINT) AS steps_collapsed,
        CAST(sum(s.loads) AS BIGINT) AS loads,
        CAST(sum(s.stores) AS BIGINT) AS stores
    FROM trace_segments AS s
    WHERE $request = 0 OR s.request_id = $request
    GROUP BY s.request_id, s.task_id, s.mode, s.image_id
    UNION ALL
    SELECT
        t.request_id,
        t.task_id,
        i.mode,
        f.image_id,
        CAST(sum(t.steps) AS BIGINT) AS steps,
        CAST(NULL AS BIGINT) AS steps_collapsed,
        CAST(sum(t.loads) AS BIGINT) AS loads,
        CAST(sum(t.stores) AS BIGINT) AS stores
    FROM function_totals AS t
    INNER JOIN traced_functions AS f ON f.function_id = t.function_id
    INNER JOIN images AS i ON i.image_id = f.image_id
    WHERE $request = 0 OR t.request_id = $request
    GROUP BY t.request_id, t.task_id, i.mode, f.image_id
), whole AS (
    SELECT u.request_id, sum(u.steps) AS steps FROM sums AS u GROUP BY u.request_id
)

SELECT
    u.request_id AS request,
    t.comm AS task,
    t.pid,
    u.mode,
    i.path AS image,
    u.steps,
    u.steps_collapsed,
    CASE WHEN w.steps > 0 THEN round(1e2 * u.steps / w.steps, 2) END AS part,
    u.loads,
    u.stores
FROM sums AS u
INNER JOIN whole AS w ON w.request_id = u.request_id
INNER JOIN traced_tasks AS t ON t.task_id = u.task_id
INNER JOIN images AS i ON i.image_id = u.image_id
ORDER BY u.request_id, u.steps DESC, i.path, t.pid
