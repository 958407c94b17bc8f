-- Entries into the kernel
-- System calls, interrupts and faults of a request, and the instructions the kernel executed for each kind.
-- needs:  kernel_entries
-- param:  request INTEGER = 0           Only this request; 0: all.
-- column: kind VARCHAR                  system_call, interrupt, exception (a fault), or signal.
-- column: name VARCHAR                  The system call, or the function that was entered.
-- column: times BIGINT                  Number of times.
-- column: min_steps BIGINT              Minimum steps of one; NULL: the kernel is not in this trace.
-- column: avg_steps DOUBLE              Average steps of one.
-- column: max_steps BIGINT              Maximum steps of one.
-- column: total_steps BIGINT            Steps of all, including what interrupted them.
-- match:  kind, name
-- sums:   total_steps
-- chart:  bars x=name y=total_steps color=kind title="Kernel instructions by entry" title_ja="カーネルへの入り口ごとのステップ数"
-- tags:   calls, cpu
SELECT
    e.kind,
    e.name,
    count(*) AS times,
    min(e.steps) AS min_steps,
    round(avg(e.steps), 2) AS avg_steps,
    max(e.steps) AS max_steps,
    CAST(sum(e.steps) AS BIGINT) AS total_steps
FROM kernel_entries AS e
WHERE $request = 0 OR e.request_id = $request
GROUP BY e.kind, e.name
ORDER BY total_steps DESC, times DESC, e.kind, e.name
