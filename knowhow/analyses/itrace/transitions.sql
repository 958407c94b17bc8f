-- Transitions between functions
-- Each transition from one function to another: calls, returns and jumps, in order, with their depth.
-- needs:  function_transitions, traced_functions, traced_tasks
-- param:  request INTEGER = 0           Only this request; 0: all.
-- param:  first_step BIGINT = 0         Begin at this step.
-- param:  most BIGINT = 1000 > 0        Maximum number of rows.
-- column: step BIGINT                   Number of the first step of the new function.
-- column: task VARCHAR                  Name of the task.
-- column: depth INTEGER                 Calls in progress from then on.
-- column: how VARCHAR                   call, return, jump; enter or leave: the kernel.
-- column: from_function VARCHAR         The function before.
-- column: to_function VARCHAR           The function that is executing from then on.
-- tags:   cpu, time
SELECT
    x.step,
    t.comm AS task,
    x.depth,
    x.how,
    f.name AS from_function,
    g.name AS to_function
FROM function_transitions AS x
INNER JOIN traced_tasks AS t ON t.task_id = x.task_id
INNER JOIN traced_functions AS f ON f.function_id = x.previous_function_id
INNER JOIN traced_functions AS g ON g.function_id = x.function_id
WHERE ($request = 0 OR x.request_id = $request) AND x.step >= $first_step
ORDER BY x.step, x.depth DESC, g.name
LIMIT $most
