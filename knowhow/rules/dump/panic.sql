-- Why the kernel stopped
-- The class of the panic of a crashed kernel, by what it wrote to its log.
-- needs:  crash_dumps, dump_log
-- column: subject VARCHAR       What the kernel said when it stopped.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Errors in the log: records of level 3 or more urgent.
-- column: limit_value DOUBLE    Not used.
-- column: cost_ns BIGINT        Not known [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     high where its words name the class, else low.
-- column: class VARCHAR         sysrq, hung task, out of memory, soft lockup, hard lockup, NULL dereference, bad address, BUG, stack overflow, hardware error, init ended, or other.
-- column: first_error VARCHAR   The record of the log that says what went wrong first, if it is known.
-- says: finding en  {class}: {subject}. First in the log: {first_error}
-- says: finding ja  {class}: {subject}。ログの最初の記録: {first_error}
-- says: ok en  The log names no panic: the dump was taken of a kernel that was running.
-- says: ok ja  ログにパニックの記録はありません。稼働中のカーネルのダンプです。
-- says: unknown en  The log of the kernel could not be read.
-- says: unknown ja  カーネルのログを読み取れませんでした。
-- evidence: dump/log -p level=4
-- tags:   time
WITH lines AS (
    SELECT
        min(CASE WHEN l.text LIKE 'BUG: kernel NULL pointer dereference%' THEN l.sequence END) AS null_pointer,
        min(CASE WHEN l.text LIKE 'BUG: unable to handle page fault%' OR l.text LIKE 'general protection fault%' THEN l.sequence END) AS bad_address,
        min(CASE WHEN l.text LIKE 'kernel BUG at %' THEN l.sequence END) AS bug,
        min(CASE WHEN l.text LIKE 'INFO: task % blocked for more than %' THEN l.sequence END) AS hung,
        min(CASE WHEN l.text LIKE 'watchdog: BUG: soft lockup%' THEN l.sequence END) AS soft,
        min(CASE WHEN l.text LIKE '%hard LOCKUP%' THEN l.sequence END) AS hard,
        min(CASE WHEN l.text LIKE '%invoked oom-killer%' THEN l.sequence END) AS memory,
        min(CASE WHEN l.text LIKE '%Hardware Error%' THEN l.sequence END) AS hardware,
        min(CASE WHEN l.text LIKE 'sysrq: Trigger a crash%' THEN l.sequence END) AS sysrq,
        min(CASE WHEN l.text LIKE '%stack guard page was hit%' OR l.text LIKE '%corrupted stack end%' THEN l.sequence END) AS stack,
        count(*) AS records,
        sum(CASE WHEN l.level <= 3 THEN 1 ELSE 0 END) AS errors
    FROM dump_log AS l
), judged AS (
    SELECT
        d.panic,
        n.*,
        CASE
            WHEN d.panic LIKE 'sysrq triggered crash%' THEN 'sysrq'
            WHEN d.panic LIKE 'hung_task: blocked tasks%' THEN 'hung task'
            WHEN d.panic LIKE 'Out of memory%' OR d.panic LIKE 'out of memory%' OR d.panic LIKE 'System is deadlocked on memory%' THEN 'out of memory'
            WHEN d.panic LIKE 'softlockup: hung tasks%' THEN 'soft lockup'
            WHEN d.panic LIKE 'Hard LOCKUP%' OR d.panic LIKE 'Watchdog detected hard LOCKUP%' THEN 'hard lockup'
            WHEN d.panic LIKE '%stack overflow%' OR d.panic LIKE '%corrupted stack end%' OR n.stack IS NOT NULL THEN 'stack overflow'
            WHEN d.panic LIKE '%Machine check%' OR d.panic LIKE '%achine Check%' THEN 'hardware error'
            WHEN d.panic LIKE 'Attempted to kill init%' THEN 'init ended'
            WHEN d.panic LIKE 'Fatal exception%' AND n.null_pointer IS NOT NULL THEN 'NULL dereference'
            WHEN d.panic LIKE 'Fatal exception%' AND n.bad_address IS NOT NULL THEN 'bad address'
            WHEN d.panic LIKE 'Fatal exception%' AND n.bug IS NOT NULL THEN 'BUG'
            ELSE 'other'
        END AS class
    FROM lines AS n
    LEFT JOIN crash_dumps AS d ON n.records >= 0
), placed AS (
    SELECT
        j.panic,
        j.class,
        j.records,
        j.errors,
        CASE j.class
            WHEN 'sysrq' THEN j.sysrq
            WHEN 'hung task' THEN j.hung
            WHEN 'out of memory' THEN j.memory
            WHEN 'soft lockup' THEN j.soft
            WHEN 'hard lockup' THEN j.hard
            WHEN 'stack overflow' THEN j.stack
            WHEN 'hardware error' THEN j.hardware
            WHEN 'NULL dereference' THEN j.null_pointer
            WHEN 'bad address' THEN j.bad_address
            WHEN 'BUG' THEN j.bug
        END AS sequence
    FROM judged AS j
)

SELECT
    p.panic AS subject,
    CASE WHEN p.panic IS NOT NULL THEN 'finding' WHEN p.records > 0 THEN 'ok' ELSE 'unknown' END AS status,
    CASE WHEN p.panic IS NOT NULL THEN CAST(p.errors AS DOUBLE) END AS value,
    CAST(NULL AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN p.panic IS NULL THEN NULL WHEN p.class = 'other' THEN 'low' ELSE 'high' END AS certainty,
    CASE WHEN p.panic IS NOT NULL THEN p.class END AS class,
    CASE WHEN p.panic IS NOT NULL THEN coalesce(l.text, 'nothing that is known') END AS first_error
FROM placed AS p
LEFT JOIN dump_log AS l ON l.sequence = p.sequence
