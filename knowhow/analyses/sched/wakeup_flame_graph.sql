-- Wake-up flame graph
-- Which threads ended the waits of others, and where those waited: the waker, then the woken program, its stack and the cause.
-- needs:  run_states, processes
-- uses:   stack_texts
-- param:  stacks INTEGER = 10000 > 0   Number of separate rows, those with the most time; the others are combined into one row per waker.
-- column: stack VARCHAR      The waker, the woken program, its functions from the outermost in, its call, and what it waited for, separated by `;`.
-- column: time_ns BIGINT     Time waited until it was woken [ns].
-- column: share DOUBLE       Share of the time waited.
-- column: waits BIGINT       Number of times.
-- chart:  flame x=stack y=time_ns,waits title="Wait time, by waker" title_ja="待ち時間（起こした相手別）"
-- tags:   time, processes
WITH waits AS (
    SELECT coalesce(CASE WHEN w.task_id IS NULL THEN r.waker ELSE coalesce(w.comm, '?') END, '(no waker)') AS waker,
        p.comm, r.stack_id, r.call, coalesce(r.cause, 'unknown') AS cause, r.wait_ns AS ns
    FROM run_states AS r
    INNER JOIN processes AS p ON p.task_id = r.task_id
    LEFT JOIN processes AS w ON w.task_id = r.waker_task_id
    WHERE r.wait_ns > 0
), used AS (
    SELECT x.waker, x.comm, x.stack_id, x.call, x.cause, sum(x.ns) AS ns, count(*) AS number
    FROM waits AS x
    GROUP BY x.waker, x.comm, x.stack_id, x.call, x.cause
), ranked AS (
    SELECT u.waker, u.comm, u.stack_id, u.call, u.cause, u.ns, u.number, sum(u.ns) OVER () AS whole,
        row_number() OVER (ORDER BY u.ns DESC, u.waker, u.comm, u.stack_id, u.call, u.cause) AS rank
    FROM used AS u
), named AS (
    SELECT r.ns, r.number, r.whole,
        concat(r.waker, CASE r.waker WHEN '(no waker)' THEN '' ELSE ' woke' END, CASE
            WHEN r.rank > $stacks THEN ';(other stacks)'
            ELSE concat(';', coalesce(r.comm, '?'), ';', coalesce(t.frames, '(no stack)'),
                CASE WHEN r.call IS NULL THEN '' ELSE concat(';', r.call, '()') END, ';waiting: ', r.cause)
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
