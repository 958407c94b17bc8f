-- Failing calls
-- Calls that fail in large numbers. Errors that belong to normal waiting (EAGAIN, EINTR, ...) do not count.
-- needs:  calls
-- param:  min_errors BIGINT = 100    Fewer failures of a kind are no finding.
-- param:  min_percent DOUBLE = 10.0  Least share of the calls of that name that must fail this way [%].
-- param:  min_share DOUBLE = 0.01    Least part of the time of all calls that do not wait.
-- column: subject VARCHAR       Name of the call and of the error.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the calls of that name that fail this way [%].
-- column: limit_value DOUBLE    Share from which on it is a finding [%].
-- column: cost_ns BIGINT        Time in the failing calls [ns].
-- column: gain_ns BIGINT        What avoiding them could save at most [ns].
-- column: reason VARCHAR        Why, in one sentence.
-- column: reason_ja VARCHAR     The same in Japanese.
-- evidence: io/errors --call {first}
-- tags:   errors, calls, metadata
WITH work AS (
    SELECT coalesce(sum(dur_ns), 0) AS ns FROM calls
    WHERE class NOT IN ('wait', 'lock', 'time', 'signal') AND coalesce(kind, '') NOT IN ('pipe', 'socket') AND via IS NULL
), totals AS (
    SELECT call, count(*) AS calls FROM calls GROUP BY call
), failed AS (
    SELECT call, errno, count(*) AS errors, count(DISTINCT path_id) AS files, CAST(sum(dur_ns) AS BIGINT) AS cost_ns
    FROM calls
    WHERE errno NOT IN ('EAGAIN', 'EWOULDBLOCK', 'EINTR', 'EINPROGRESS', 'EALREADY', 'ETIMEDOUT')
        AND NOT starts_with(errno, 'ERESTART') AND NOT (class = 'wait' AND errno = 'ECHILD')
    GROUP BY call, errno
), found AS (
    SELECT f.call, f.errno, f.errors, f.files, f.cost_ns, t.calls, 1e2 * f.errors / t.calls AS percent,
        row_number() OVER (ORDER BY coalesce(f.cost_ns, 0) DESC, f.errors DESC, f.call, f.errno) AS place, count(*) OVER () AS subjects
    FROM failed AS f
    JOIN totals AS t ON t.call = f.call
    WHERE f.errors >= $min_errors AND 1e2 * f.errors / t.calls >= $min_percent
        AND coalesce(f.cost_ns >= $min_share * (SELECT ns FROM work), true)
), state AS (
    SELECT (SELECT count(*) FROM calls) AS calls
)
SELECT
    CASE WHEN f.call IS NULL THEN 'all calls' ELSE concat(f.call, ' ', f.errno) END AS subject,
    CASE WHEN f.call IS NOT NULL THEN 'finding' WHEN s.calls = 0 THEN 'unknown' ELSE 'ok' END AS status,
    round(f.percent, 1) AS value,
    CAST($min_percent AS DOUBLE) AS limit_value,
    f.cost_ns,
    f.cost_ns AS gain_ns,
    CASE WHEN f.call IS NOT NULL THEN concat(CAST(f.errors AS VARCHAR), ' of ', CAST(f.calls AS VARCHAR), ' calls of ', f.call, ' fail with ',
            f.errno, CASE WHEN f.files = 0 THEN '' ELSE concat(', on ', CAST(f.files AS VARCHAR), ' path(s)') END, '.',
            CASE WHEN f.place = 10 AND f.subjects > 10 THEN concat(' ', CAST(f.subjects - 10 AS VARCHAR), ' more are not shown.') ELSE '' END)
        WHEN s.calls = 0 THEN 'The recording holds no calls.'
        ELSE concat(CAST(s.calls AS VARCHAR), ' calls looked at: no kind of failure takes time worth mentioning.') END AS reason,
    CASE WHEN f.call IS NOT NULL THEN concat(f.call, ' ', CAST(f.calls AS VARCHAR), ' 回のうち ', CAST(f.errors AS VARCHAR), ' 回が ', f.errno,
            ' で失敗しています', CASE WHEN f.files = 0 THEN '' ELSE concat('（', CAST(f.files AS VARCHAR), ' 個のパス）') END, '。')
        WHEN s.calls = 0 THEN 'システムコールが記録にありません。'
        ELSE concat(CAST(s.calls AS VARCHAR), ' 回のシステムコールを調べました。失敗に目立つ時間を使うものはありません。') END AS reason_ja
FROM state AS s
LEFT JOIN found AS f ON f.place <= 10
ORDER BY f.place
