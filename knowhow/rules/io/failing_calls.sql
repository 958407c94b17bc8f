-- Calls that keep failing
-- A system call that nearly always fails, or a path that is looked up again and again without success.
-- Errors of normal waiting (EAGAIN, EINTR, ...) do not count, nor do searches along lists of directories (io/failed_lookups).
-- needs:  call_use, calls, file_use, failed_lookups, totals
-- param:  min_errors BIGINT = 100 > 0    Minimum number of failures of a kind.
-- param:  min_percent DOUBLE = 90.0      Minimum share of the calls of that name, or on that path, that must fail this way [%].
-- param:  min_share DOUBLE = 0.02        Minimum share of the elapsed time.
-- column: subject VARCHAR       Name of the call and of the error, or the path.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the calls that fail this way [%].
-- column: limit_value DOUBLE    Threshold for the Share: reported from this value on [%].
-- column: cost_ns BIGINT        Time in the failing calls [ns].
-- column: gain_ns BIGINT        What avoiding them could save at most [ns].
-- column: certainty VARCHAR     high; low where the log has no durations.
-- column: cost_calls BIGINT     Calls that this cost is the time of.
-- column: file VARCHAR          The path that is not found.
-- column: variant VARCHAR       call: a kind of call. path: a path that is not there. descriptors: closes of descriptors that are not open. pathless: a kind of call without a path.
-- column: call VARCHAR          Name of the call.
-- column: explained_by VARCHAR  Rules whose findings explain this one.
-- column: errors BIGINT         Calls that failed this way.
-- column: calls BIGINT          Calls of that name, or on that path.
-- column: errno VARCHAR         Name of the error.
-- column: paths BIGINT          Paths they were about.
-- says: finding.call en  {errors} of {calls:call} of {call} fail with {errno}, on {paths:path}.
-- says: finding.call ja  {call} {calls} 回のうち {errors} 回が {errno} で失敗しています（{paths} 個のパス）。
-- says: finding.descriptors en  {errors} of {calls:call} of {call} are about descriptors that are not open: the program closes one number after another, up to the limit.
-- says: finding.descriptors ja  {call} {calls} 回のうち {errors} 回は、開いていないディスクリプターが対象です。上限までの番号を 1 つずつ閉じています。
-- says: finding.pathless en  {errors} of {calls:call} of {call} fail with {errno}.
-- says: finding.pathless ja  {call} {calls} 回のうち {errors} 回が {errno} で失敗しています。
-- says: finding.path en  {errors:lookup} of this path failed.
-- says: finding.path ja  このパスの検索が {errors} 回失敗しています。
-- says: ok en            Checked {calls:call}: no kind of call keeps failing.
-- says: ok ja            システムコール {calls} 回を調べました。失敗を繰り返す呼び出しはありません。
-- says: unknown en       The recording contains no system calls.
-- says: unknown ja       システムコールが記録にありません。
-- at_least: calls min_errors
-- evidence: io/errors --call {call} --file {file}
-- tags:   errors, calls, metadata
WITH by_name AS (
    SELECT call, sum(calls) AS calls FROM call_use GROUP BY call
), failed AS (
    SELECT call, min(class) AS class, errno, sum(calls) AS errors, CAST(sum(time_ns) AS BIGINT) AS cost_ns
    FROM call_use
    WHERE errno NOT IN ('EAGAIN', 'EWOULDBLOCK', 'EINTR', 'EINPROGRESS', 'EALREADY', 'ETIMEDOUT')
        AND NOT starts_with(errno, 'ERESTART') AND NOT (class = 'wait' AND errno = 'ECHILD')
        AND NOT (class IN ('open', 'stat', 'process') AND errno IN ('ENOENT', 'ENOTDIR'))
    GROUP BY call, errno
), by_path AS (
    SELECT path_id, sum(calls) AS calls FROM file_use WHERE class IN ('open', 'stat', 'process') GROUP BY path_id
), kinds AS (
    SELECT CASE WHEN f.class = 'close' AND f.errno = 'EBADF' THEN 'descriptors' ELSE 'call' END AS variant, f.call, f.errno, CAST(NULL AS VARCHAR) AS path, f.errors, f.cost_ns, n.calls
    FROM failed AS f
    JOIN by_name AS n ON n.call = f.call
    UNION ALL
    SELECT 'path' AS variant, NULL AS call, NULL AS errno, l.path, l.lookups AS errors, l.time_ns AS cost_ns, p.calls
    FROM failed_lookups AS l
    JOIN by_path AS p ON p.path_id = l.path_id
    WHERE NOT l.searched
), found AS (
    SELECT k.*, 1e2 * k.errors / k.calls AS percent
    FROM kinds AS k
    CROSS JOIN totals AS t
    WHERE k.errors >= $min_errors AND 1e2 * k.errors / k.calls >= $min_percent AND coalesce(k.cost_ns >= $min_share * t.elapsed_ns, true)
), about AS (
    SELECT c.call, c.errno, count(DISTINCT c.path_id) AS paths
    FROM calls AS c
    JOIN found AS f ON f.call = c.call AND f.errno = c.errno
    GROUP BY c.call, c.errno
)
SELECT
    CASE WHEN f.variant IN ('call', 'descriptors') THEN concat(f.call, ' ', f.errno) ELSE f.path END AS subject,
    CASE WHEN f.variant IS NOT NULL THEN 'finding' WHEN t.calls = 0 THEN 'unknown' ELSE 'ok' END AS status,
    round(CAST(f.percent AS DOUBLE), 1) AS value,
    CAST($min_percent AS DOUBLE) AS limit_value,
    f.cost_ns,
    f.cost_ns AS gain_ns,
    CASE WHEN f.variant IS NULL THEN NULL WHEN f.cost_ns IS NULL THEN 'low' ELSE 'high' END AS certainty,
    CAST(f.errors AS BIGINT) AS cost_calls,
    f.path AS file,
    CASE WHEN f.variant = 'call' AND coalesce(a.paths, 0) = 0 THEN 'pathless' ELSE f.variant END AS variant,
    f.call,
    'processes/process_creation' AS explained_by,
    CAST(f.errors AS BIGINT) AS errors,
    CAST(coalesce(f.calls, t.calls) AS BIGINT) AS calls,
    f.errno,
    a.paths
FROM totals AS t
LEFT JOIN found AS f ON f.errors > 0
LEFT JOIN about AS a ON a.call = f.call AND a.errno = f.errno
