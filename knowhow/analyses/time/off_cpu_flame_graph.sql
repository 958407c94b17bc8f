-- Off-CPU flame graph
-- Where in the programs threads waited and for what, as complete call stacks, with the system call and the cause at the end.
-- needs:  run_states, processes
-- uses:   stack_texts
-- param:  stacks INTEGER = 10000 > 0   Number of separate rows, those with the most time; the others are combined into one row per program.
-- column: stack VARCHAR      Program, its functions from the outermost to the innermost, the system call, and what it waited for, separated by `;`.
-- column: time_ns BIGINT     Time off CPU [ns].
-- column: share DOUBLE       Share of the off-CPU time.
-- column: waits BIGINT       Number of times.
-- chart:  flame x=stack y=time_ns,waits title="Off-CPU time" title_ja="CPU で動いていない時間"
-- tags:   time, processes
WITH waits AS (
    SELECT r.task_id, r.stack_id, r.call, coalesce(r.cause, 'unknown') AS cause, r.wait_ns AS ns
    FROM run_states AS r
    WHERE r.wait_ns > 0
    UNION ALL
    SELECT r.task_id, r.stack_id, r.call, 'CPU', r.runnable_ns
    FROM run_states AS r
    WHERE r.runnable_ns > 0
), used AS (
    SELECT p.comm, w.stack_id, w.call, w.cause, sum(w.ns) AS ns, count(*) AS number
    FROM waits AS w
    INNER JOIN processes AS p ON p.task_id = w.task_id
    GROUP BY p.comm, w.stack_id, w.call, w.cause
), ranked AS (
    SELECT u.comm, u.stack_id, u.call, u.cause, u.ns, u.number, sum(u.ns) OVER () AS whole,
        row_number() OVER (ORDER BY u.ns DESC, u.comm, u.stack_id, u.call, u.cause) AS rank
    FROM used AS u
), named AS (
    SELECT r.ns, r.number, r.whole,
        concat(coalesce(r.comm, '?'), CASE
            WHEN r.rank > $stacks THEN ';(other stacks)'
            ELSE concat(';', coalesce(t.frames, '(no stack)'), CASE WHEN r.call IS NULL THEN '' ELSE concat(';', r.call, '()') END,
                ';waiting: ', r.cause)
        END) AS stack
    FROM ranked AS r
    LEFT JOIN stack_texts AS t ON t.stack_id = r.stack_id
)
SELECT
    n.stack,
    CAST(sum(n.ns) AS BIGINT) AS time_ns,
    round(1e0 * sum(n.ns) / max(n.whole), 4) AS share,
    CAST(sum(n.number) AS BIGINT) AS waits
FROM named AS n
GROUP BY n.stack
ORDER BY time_ns DESC, n.stack
