-- Cost of allocating memory
-- The kernel uses much CPU time to give memory to the program, page by page, and to take it back.
-- needs:  samples, kernel_activities, calls, file_faults
-- uses:   run_states, processes
-- param:  min_share DOUBLE = 0.3        Minimum share of the CPU time that new memory takes.
-- param:  min_share_once DOUBLE = 0.4   The same where it is not given back again and again.
-- param:  min_time_ns BIGINT = 20000000 Minimum CPU time that it takes [ns].
-- param:  least_samples BIGINT = 40     With fewer samples nothing is said.
-- param:  churn_calls BIGINT = 100      From so many calls that give memory back on it is taken and given back again and again.
-- column: subject VARCHAR       Empty: it is about all that was recorded.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the CPU time that new memory took [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        CPU time for it: page faults on memory that is no file, and calls that take and give back memory [ns].
-- column: gain_ns BIGINT        Potential saving; empty where memory is not given back again and again, and may all be needed [ns].
-- column: certainty VARCHAR     medium where memory is given back again and again; else low.
-- column: variant VARCHAR       churn or once.
-- column: faults_ns BIGINT      CPU time in the page faults, by samples [ns].
-- column: calls_ns BIGINT       Time in the calls [ns].
-- column: given_back BIGINT     Calls that gave memory back: munmap, madvise, brk.
-- column: most VARCHAR          Which of these calls took longest; `no call`: there were none.
-- says: finding.churn en  {value} of the CPU time, {cost_ns}, is spent on allocating memory: {faults_ns} in page faults on new memory and {calls_ns} in system calls; memory is returned {given_back:time}, mostly by {most}.
-- says: finding.churn ja  CPU 時間の {value}（{cost_ns}）をメモリの確保と返却に使っています。新しいメモリのページフォールトが {faults_ns}、呼び出しが {calls_ns} で、{given_back} 回返却しています（最も長いのは {most:ja}）。
-- says: finding.once en   {value} of the CPU time, {cost_ns}, is spent on allocating memory: {faults_ns} in page faults on new memory and {calls_ns} in system calls.
-- says: finding.once ja   CPU 時間の {value}（{cost_ns}）をメモリの確保に使っています。新しいメモリのページフォールトが {faults_ns}、呼び出しが {calls_ns} です。
-- says: ok en             Allocating memory takes {value} of the CPU time.
-- says: ok ja             メモリの確保は CPU 時間の {value} です。
-- says: unknown en        There are too few CPU samples.
-- says: unknown ja        CPU 時間のサンプルが足りません。
-- at_least: thread_time min_time_ns
-- evidence: cpu/kernel
-- tags:   time, cpu
WITH taken AS (
    SELECT count(*) AS number, sum(s.period_ns) AS all_ns,
        sum(CASE WHEN s.call IS NULL AND k.entry = 'page fault' THEN s.period_ns ELSE 0 END) AS faults_ns
    FROM samples AS s
    LEFT JOIN kernel_activities AS k ON k.stack_id = s.kernel_stack_id
), of_files AS (
    -- Page faults of files are counted one by one. What of them is waiting for the disk is no CPU time.
    SELECT coalesce(sum(CASE WHEN f.major THEN 0 ELSE f.dur_ns END), 0) AS ns FROM file_faults AS f WHERE NOT f.in_call
), away AS (
    -- What a thread waits for in such a call, a lock or a CPU, is no CPU time.
    SELECT coalesce(sum(r.dur_ns), 0) AS ns FROM run_states AS r WHERE r.action IN ('unmap', 'remap')
), used AS (
    SELECT sum(p.user_ns) + sum(p.system_ns) AS ns FROM processes AS p
), memory_calls AS (
    SELECT least(greatest(0, coalesce(sum(c.dur_ns), 0) - coalesce(max(w.ns), 0)), coalesce(max(u.ns), 9e18)) AS ns,
        coalesce(sum(CASE WHEN c.action = 'unmap' THEN 1 ELSE 0 END), 0) AS given_back
    FROM calls AS c
    CROSS JOIN away AS w
    CROSS JOIN used AS u
    WHERE c.action IN ('unmap', 'remap')
), by_call AS (
    SELECT c.call, sum(c.dur_ns) AS ns FROM calls AS c WHERE c.action = 'unmap' GROUP BY c.call
), judged AS (
    SELECT t.all_ns, CAST(greatest(0, t.faults_ns - f.ns) AS BIGINT) AS faults_ns, CAST(c.ns AS BIGINT) AS calls_ns,
        CAST(c.given_back AS BIGINT) AS given_back, CAST(least(greatest(0, t.faults_ns - f.ns) + c.ns, t.all_ns, coalesce(u.ns, t.all_ns)) AS BIGINT) AS cost_ns
    FROM taken AS t CROSS JOIN of_files AS f CROSS JOIN memory_calls AS c CROSS JOIN used AS u
    WHERE t.number >= $least_samples
), decided AS (
    SELECT j.all_ns, j.faults_ns, j.calls_ns, j.given_back, j.cost_ns,
        j.cost_ns >= $min_time_ns
            AND j.cost_ns >= CASE WHEN j.given_back >= $churn_calls THEN $min_share ELSE $min_share_once END * j.all_ns AS is_much
    FROM judged AS j
)
SELECT
    CAST(NULL AS VARCHAR) AS subject,
    CASE WHEN d.cost_ns IS NULL THEN 'unknown' WHEN d.is_much THEN 'finding' ELSE 'ok' END AS status,
    CASE WHEN d.all_ns > 0 THEN round(least(1e2, 1e2 * d.cost_ns / d.all_ns), 1) END AS value,
    1e2 * CASE WHEN coalesce(d.given_back, 0) >= $churn_calls THEN $min_share ELSE $min_share_once END AS limit_value,
    d.cost_ns,
    CASE WHEN d.is_much AND d.given_back >= $churn_calls THEN d.cost_ns END AS gain_ns,
    CASE WHEN d.is_much THEN CASE WHEN d.given_back >= $churn_calls THEN 'medium' ELSE 'low' END END AS certainty,
    CASE WHEN d.is_much THEN CASE WHEN d.given_back >= $churn_calls THEN 'churn' ELSE 'once' END END AS variant,
    d.faults_ns,
    d.calls_ns,
    d.given_back,
    coalesce((SELECT CASE arg_max(b.call, b.ns) WHEN 'munmap' THEN 'munmap (of mmap)' ELSE arg_max(b.call, b.ns) END FROM by_call AS b), 'no call') AS most
FROM (SELECT 1 AS one) AS o
LEFT JOIN decided AS d ON o.one = 1
