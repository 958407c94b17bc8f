-- Task switches
-- Each switch to another task during a request, and how many instructions that task executed until the next switch.
-- needs:  task_switches, traced_tasks, traced_requests
-- param:  request INTEGER = 0           Only this request; 0: all.
-- column: step BIGINT                   Number of the first step of the new task.
-- column: from_task VARCHAR             Name of the task before.
-- column: from_pid INTEGER              Its number.
-- column: to_task VARCHAR               Name of the task that was executed from then on.
-- column: to_pid INTEGER                Its number.
-- column: steps BIGINT                  Steps until the next switch, or the end of the request.
-- portable: false
-- tags:   cpu, processes
WITH ordered AS (
    SELECT
        s.request_id,
        s.step,
        s.previous_task_id,
        s.task_id,
        lead(s.step) OVER (PARTITION BY s.request_id ORDER BY s.step) AS next_step
    FROM task_switches AS s
    WHERE $request = 0 OR s.request_id = $request
)

SELECT
    o.step,
    f.comm AS from_task,
    f.pid AS from_pid,
    t.comm AS to_task,
    t.pid AS to_pid,
    coalesce(o.next_step, r.first_step + r.steps) - o.step AS steps
FROM ordered AS o
INNER JOIN traced_requests AS r ON r.request_id = o.request_id
INNER JOIN traced_tasks AS f ON f.task_id = o.previous_task_id
INNER JOIN traced_tasks AS t ON t.task_id = o.task_id
ORDER BY o.step, t.pid
