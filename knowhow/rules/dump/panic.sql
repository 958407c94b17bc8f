-- Why the kernel stopped
-- The class of the panic of a crashed kernel, from its log, and the task that was running.
-- needs:  crash_dumps, dump_log, dump_panic
-- column: subject VARCHAR       What the kernel said when it stopped.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Errors in the log: records of level 3 or more urgent.
-- column: limit_value DOUBLE    Not used.
-- column: cost_ns BIGINT        Not known [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     high where its words name the class, else low.
-- column: class VARCHAR         sysrq, hung task, out of memory, soft lockup, hard lockup, NULL dereference, bad address, BUG, stack overflow, hardware error, init ended, or other.
-- column: record VARCHAR        The record of the log that says what went wrong: the last of its kind before the panic.
-- column: at VARCHAR            The task that ran on the processor that stopped the kernel, and the function of the exception.
-- column: taint VARCHAR         What tainted the kernel before, as letters; empty: nothing.
-- says: finding en  {class}: {subject}. Task: {at}. In the log: {record}
-- says: finding ja  {class:ja}: {subject}。タスク: {at}。ログの記録: {record}
-- says: ok en  The log contains no panic: the dump is of a running kernel.
-- says: ok ja  ログにパニックの記録はありません。稼働中のカーネルのダンプです。
-- says: unknown en  The kernel log could not be read.
-- says: unknown ja  カーネルのログを読み取れませんでした。
-- evidence: dump/log -p level=4
-- tags:   time
WITH lines AS (
    SELECT
        count(*) AS records,
        sum(CASE WHEN l.level <= 3 THEN 1 ELSE 0 END) AS errors
    FROM dump_log AS l
), judged AS (
    SELECT
        n.records,
        n.errors,
        d.panic,
        p.cause,
        p.record,
        p.taint_letters,
        concat(coalesce(p.comm, 'not known'), CASE WHEN p.function IS NULL THEN '' ELSE concat(', in ', p.function) END) AS at
    FROM lines AS n
    LEFT JOIN crash_dumps AS d ON n.records > 0
    LEFT JOIN dump_panic AS p ON n.records > 0
)

SELECT
    j.panic AS subject,
    CASE WHEN j.panic IS NOT NULL THEN 'finding' WHEN j.records > 0 THEN 'ok' ELSE 'unknown' END AS status,
    CASE WHEN j.panic IS NOT NULL THEN CAST(j.errors AS DOUBLE) END AS value,
    CAST(NULL AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN j.panic IS NULL THEN NULL WHEN coalesce(j.cause, 'other') = 'other' THEN 'low' ELSE 'high' END AS certainty,
    CASE WHEN j.panic IS NOT NULL THEN coalesce(j.cause, 'other') END AS class,
    CASE WHEN j.panic IS NOT NULL THEN coalesce(j.record, 'nothing that is known') END AS record,
    CASE WHEN j.panic IS NOT NULL THEN j.at END AS at,
    CASE WHEN j.panic IS NOT NULL THEN coalesce(j.taint_letters, '') END AS taint
FROM judged AS j
