-- Kernel stacks of a crashed kernel
-- Where the tasks were in the kernel when it stopped: tasks with the same stack share a row.
-- needs:  dump_stacks, dump_tasks
-- question: stacks-grouped Kernel stacks of tasks
-- reads:  tasks, stacks
-- column: stack_id INTEGER        The stack, as in dump_frames.
-- column: tasks INTEGER           Tasks that have it.
-- column: waiting BIGINT          Of these, in state D.
-- column: comm VARCHAR            Name of one of them.
-- column: frames VARCHAR          Functions, innermost first.
-- column: status VARCHAR          ok, or why the stack is incomplete.
-- sums:   tasks, waiting
-- match:  comm, frames
-- chart:  bars x=comm y=tasks title="Tasks by stack" title_ja="スタックごとのタスク数"
-- tags:   time
WITH held AS (
    SELECT t.stack_id, sum(CASE WHEN t.state = 'D' THEN 1 ELSE 0 END) AS waiting, min(coalesce(t.full_name, t.comm)) AS comm
    FROM dump_tasks AS t
    WHERE t.stack_id IS NOT NULL
    GROUP BY t.stack_id
)

SELECT
    s.stack_id,
    s.tasks,
    CAST(coalesce(h.waiting, 0) AS BIGINT) AS waiting,
    h.comm,
    s.frames,
    s.status
FROM dump_stacks AS s
LEFT JOIN held AS h ON h.stack_id = s.stack_id
ORDER BY s.tasks DESC, s.stack_id
