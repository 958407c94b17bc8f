-- Last second before a kernel stopped
-- What a flight recorder captured until the end, with the kernel log: system calls, disk requests, and tasks that ran and waited. Latest events first.
-- needs:  dump_panic
-- uses:   calls, block_requests, run_states, processes, dump_log
-- question: last-second The last second before a kernel stopped
-- reads:  panic, log, flight
-- param:  last_ns BIGINT = 1000000000 > 0    Length of the period before the end [ns].
-- param:  most BIGINT = 1000 > 0             Maximum number of events.
-- column: before_ns BIGINT         How long before the end it began [ns].
-- column: at_s DOUBLE              The same as a time: a negative number [s].
-- column: kind VARCHAR             call, request, state (of a task) or log.
-- column: pid BIGINT               Process; NULL: a log record.
-- column: comm VARCHAR             Its name.
-- column: what VARCHAR             Name of the call, kind of the request, state, or the text of the log.
-- column: object VARCHAR           File, device, or what a task waited for.
-- column: dur_ns BIGINT            How long it took; NULL: it had not ended [ns].
-- chart:  points x=at_s y=pid color=kind title="The last second" title_ja="最後の 1 秒"
-- tags:   time, calls, processes
WITH happened AS (
    SELECT c.ts_ns, 'call' AS kind, c.pid, c.comm, c.call AS what, c.path AS object, c.dur_ns
    FROM calls AS c
    UNION ALL
    SELECT b.ts_ns, 'request' AS kind, b.pid, p.comm, b.op AS what, b.device AS object, b.dur_ns
    FROM block_requests AS b
    LEFT JOIN processes AS p ON p.task_id = b.task_id
    UNION ALL
    SELECT r.ts_ns, 'state' AS kind, r.pid, p.comm, r.state AS what, coalesce(r.path, r.cause) AS object, r.dur_ns
    FROM run_states AS r
    LEFT JOIN processes AS p ON p.task_id = r.task_id
    UNION ALL
    SELECT
        l.ts_ns,
        'log' AS kind,
        CAST(NULL AS BIGINT) AS pid,
        CAST(NULL AS VARCHAR) AS comm,
        l.text AS what,
        CAST(NULL AS VARCHAR) AS object,
        CAST(NULL AS BIGINT) AS dur_ns
    FROM dump_log AS l
), counted AS (
    SELECT h.*, d.ts_ns - h.ts_ns AS before_ns, row_number() OVER (ORDER BY h.ts_ns DESC, h.kind, h.pid, h.what) AS place
    FROM happened AS h
    CROSS JOIN dump_panic AS d
    -- What the kernel still wrote while it stopped says nothing of what came before.
    WHERE d.ts_ns - h.ts_ns BETWEEN 0 AND $last_ns
)

SELECT
    c.before_ns,
    round(c.before_ns / -1e9, 6) AS at_s,
    c.kind,
    c.pid,
    c.comm,
    c.what,
    c.object,
    c.dur_ns
FROM counted AS c
WHERE c.place <= $most
ORDER BY c.place
