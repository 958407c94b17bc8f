-- Call tree
-- Each call path of a request with its instructions, as a tree and as a flame graph.
-- needs:  call_paths, traced_functions, traced_tasks
-- param:  request INTEGER = 0           Only this request; 0: all.
-- param:  least_steps BIGINT = 0        Only paths with at least this many steps, including everything that was called.
-- column: request INTEGER               Number of the request, from 1.
-- column: task VARCHAR                  Name of the task.
-- column: depth INTEGER                 Functions that led to it.
-- column: function VARCHAR              The last function of the path.
-- column: times BIGINT                  How often it was entered through this path.
-- column: steps BIGINT                  Its own steps.
-- column: steps_inclusive BIGINT        These steps and those of everything that it called.
-- column: path VARCHAR                  All functions of the path, the outermost first.
-- chart:  flame x=path y=steps title="Instructions by call path" title_ja="呼び出し関係ごとのステップ数"
-- tags:   cpu
SELECT
    c.request_id AS request,
    t.comm AS task,
    c.depth,
    f.name AS function,
    c.times,
    c.steps,
    c.steps_inclusive,
    c.path
FROM call_paths AS c
INNER JOIN traced_tasks AS t ON t.task_id = c.task_id
INNER JOIN traced_functions AS f ON f.function_id = c.function_id
WHERE ($request = 0 OR c.request_id = $request) AND c.steps_inclusive >= $least_steps
ORDER BY c.request_id, c.task_id, c.path, c.path_id
