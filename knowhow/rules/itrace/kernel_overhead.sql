-- Kernel overhead of requests
-- Instructions of requests that the kernel spent on mitigations, copying, locks or page faults.
-- needs:  trace_segments, function_calls, traced_functions, images, kernel_entries
-- param:  max_share DOUBLE = 0.05 > 0   A larger part of the steps of all requests is a finding.
-- column: subject VARCHAR       mitigations, copies, locks or page faults.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the steps of all requests [ratio].
-- column: limit_value DOUBLE    max_share [ratio].
-- column: cost_ns BIGINT        Not known: steps are not time [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     medium: steps are counted exactly, their time is not known.
-- column: steps BIGINT          Steps for it.
-- column: times BIGINT          How often it was done.
-- column: example VARCHAR       The function with most of these steps.
-- says: finding en  The kernel spent {value} of all instructions on {subject}: {steps:instruction} in {times:occurrence}, mostly in {example}.
-- says: finding ja  カーネルは全ステップの {value} を{subject:ja}に使いました。{times} 回で {steps} ステップ、最も多い関数は {example} です。
-- says: ok en  Mitigations, copies, locks and page faults each took at most {limit_value} of the instructions.
-- says: ok ja  脆弱性の緩和策、コピー、ロック、ページフォールトに使われたステップは、それぞれ全体の {limit_value} 以下です。
-- says: unknown en  The kernel was not traced: `sysdock itrace vm` traces it.
-- says: unknown ja  カーネルはトレースされていません。`sysdock itrace vm` はカーネルもトレースします。
-- evidence: itrace/functions
-- tags:   cpu
WITH whole AS (
    SELECT
        sum(s.steps) AS steps,
        coalesce(sum(CASE WHEN s.mode = 'kernel' THEN s.steps ELSE 0 END), 0) AS in_kernel
    FROM trace_segments AS s
), named AS (
    SELECT
        f.name,
        CASE
            WHEN f.name LIKE '%return_thunk%' OR f.name LIKE '%safe_ret%' OR f.name LIKE '%untrain_ret%'
            OR f.name LIKE '%indirect_thunk%' OR f.name LIKE '%clear_bhb%' THEN 'mitigations'
            WHEN f.name LIKE 'copy_user%' OR f.name LIKE '%memcpy%' OR f.name LIKE '%memmove%' OR f.name LIKE 'copy_page%'
            OR f.name LIKE 'rep_movs%' OR f.name LIKE '_copy_%' THEN 'copies'
            WHEN f.name LIKE '_raw_spin%' OR f.name LIKE '_raw_read%' OR f.name LIKE '_raw_write%' OR f.name LIKE 'mutex_%lock%'
            OR f.name LIKE 'down_%' OR f.name LIKE 'up_%' OR f.name LIKE '%queued_spin_lock%' THEN 'locks'
        END AS subject,
        c.steps
    FROM function_calls AS c
    INNER JOIN traced_functions AS f ON f.function_id = c.function_id
    INNER JOIN images AS i ON i.image_id = f.image_id
    WHERE i.mode = 'kernel'
), by_name AS (
    SELECT n.subject, n.name, count(*) AS times, sum(n.steps) AS steps
    FROM named AS n
    WHERE n.subject IS NOT NULL
    GROUP BY n.subject, n.name
), found AS (
    SELECT b.subject, arg_max(b.name, b.steps) AS example, sum(b.times) AS times, sum(b.steps) AS steps
    FROM by_name AS b
    GROUP BY b.subject
    UNION
    SELECT 'page faults' AS subject, 'page_fault' AS example, count(*) AS times, coalesce(sum(e.steps), 0) AS steps
    FROM kernel_entries AS e
    WHERE e.kind = 'exception' AND e.name = 'page_fault'
), above AS (
    SELECT o.subject, o.example, o.times, o.steps, CAST(o.steps AS DOUBLE) / w.steps AS share
    FROM found AS o
    CROSS JOIN whole AS w
    WHERE w.in_kernel > 0 AND CAST(o.steps AS DOUBLE) / w.steps > $max_share
)

SELECT
    a.subject,
    CASE WHEN w.in_kernel = 0 THEN 'unknown' WHEN a.subject IS NULL THEN 'ok' ELSE 'finding' END AS status,
    a.share AS value,
    CASE WHEN w.in_kernel > 0 THEN CAST($max_share AS DOUBLE) END AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN a.subject IS NOT NULL THEN 'medium' END AS certainty,
    CAST(a.steps AS BIGINT) AS steps,
    CAST(a.times AS BIGINT) AS times,
    a.example
FROM whole AS w
LEFT JOIN above AS a ON a.share IS NOT NULL
ORDER BY a.share DESC, a.subject
