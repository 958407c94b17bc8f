-- Waits for memory
-- How often and how long threads had to wait for memory, because they had to reclaim or compact memory first.
-- needs:  memory_stalls, processes
-- column: comm VARCHAR          Program of the thread.
-- column: pid INTEGER           Its process.
-- column: tid INTEGER           The thread.
-- column: kind VARCHAR          direct reclaim (the machine is short), group reclaim (a control group is at its limit), node reclaim, compaction, oom kill.
-- column: stalls BIGINT         Number of times.
-- column: total_ns BIGINT       Total time [ns].
-- column: avg_ns BIGINT         Mean time [ns].
-- column: longest_ns BIGINT     The longest [ns].
-- column: pages_each DOUBLE     Pages that it freed each time, on average; empty: compaction and OOM kills.
-- column: highest_order INTEGER It requested up to 2 to the power of this number contiguous pages.
-- column: call VARCHAR          The call with the longest total wait; `page faults` stands for those outside of calls.
-- sums:   stalls, total_ns
-- match:  comm, kind, call
-- chart:  bars x=comm y=total_ns color=kind title="Waits for memory" title_ja="メモリ待ち"
-- tags:   time, processes
WITH stalls AS (
    SELECT p.comm, p.pid, p.tid, s.task_id, s.kind, s.dur_ns, s.pages, s.page_order,
        CASE WHEN s.kind <> 'oom kill' THEN coalesce(s.call, 'page faults') END AS call
    FROM memory_stalls AS s
    LEFT JOIN processes AS p ON p.task_id = s.task_id
), by_call AS (
    SELECT s.task_id, s.kind, s.call, sum(s.dur_ns) AS ns FROM stalls AS s WHERE s.call IS NOT NULL GROUP BY s.task_id, s.kind, s.call
), calls_of AS (
    SELECT b.task_id, b.kind, arg_max(b.call, b.ns) AS call FROM by_call AS b GROUP BY b.task_id, b.kind
)
SELECT
    s.comm,
    s.pid,
    s.tid,
    s.kind,
    count(*) AS stalls,
    CAST(sum(s.dur_ns) AS BIGINT) AS total_ns,
    CAST(round(avg(s.dur_ns)) AS BIGINT) AS avg_ns,
    max(s.dur_ns) AS longest_ns,
    round(1e0 * sum(s.pages) / count(*), 1) AS pages_each,
    max(s.page_order) AS highest_order,
    max(c.call) AS call
FROM stalls AS s
LEFT JOIN calls_of AS c ON c.task_id = s.task_id AND c.kind = s.kind
GROUP BY s.comm, s.pid, s.tid, s.kind
ORDER BY total_ns DESC, s.pid, s.tid, s.kind
