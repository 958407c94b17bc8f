-- Requests without an answer
-- The program sends a request, waits for the answer until its limit is over, and asks again or gives up.
-- needs:  unanswered_requests, processes, totals
-- param:  min_share DOUBLE = 0.05          Minimum share of the elapsed time that these waits take.
-- param:  min_time_ns BIGINT = 500000000   Minimum time that they take [ns].
-- column: subject VARCHAR       Address and port of the other end.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the elapsed time [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time of these waits, of the thread that waited longest [ns].
-- column: gain_ns BIGINT        Potential saving, if the answers came at once [ns].
-- column: certainty VARCHAR     high for queries to a name server; else medium.
-- column: variant VARCHAR       name (a name server) or other.
-- column: process INTEGER       Process id of the thread that waited longest.
-- column: requests BIGINT       Requests without an answer.
-- column: mean_ns BIGINT        Time until the program gave up one of them, on average [ns].
-- says: finding.name en   {requests:query|queries} to the name server {subject} got no answer within {mean_ns}: {cost_ns}, {value} of the elapsed time.
-- says: finding.name ja   ネームサーバー {subject} への問い合わせ {requests} 回に {mean_ns} 待っても応答がなく、{cost_ns}（経過時間の {value}）かかっています。
-- says: finding.other en  {requests:request} to {subject} got no answer within {mean_ns}: {cost_ns}, {value} of the elapsed time.
-- says: finding.other ja  {subject} への要求 {requests} 回に {mean_ns} 待っても応答がなく、{cost_ns}（経過時間の {value}）かかっています。
-- says: ok en             No request waited long for an answer that did not come.
-- says: ok ja             応答のないまま長く待った要求はありません。
-- says: unknown en        The recording contains no system calls with durations.
-- says: unknown ja        所要時間のある呼び出しが記録にありません。
-- at_least: duration min_time_ns
-- evidence: time/calls
-- tags:   time, calls
WITH by_thread AS (
    SELECT u.remote, u.kind, u.task_id, count(*) AS requests, sum(u.waited_ns) AS ns
    FROM unanswered_requests AS u
    GROUP BY u.remote, u.kind, u.task_id
), by_remote AS (
    SELECT b.remote, b.kind, arg_max(b.task_id, b.ns) AS task_id, max(b.ns) AS ns, arg_max(b.requests, b.ns) AS requests
    FROM by_thread AS b
    GROUP BY b.remote, b.kind
), judged AS (
    SELECT b.*, t.elapsed_ns
    FROM by_remote AS b
    CROSS JOIN totals AS t
    WHERE b.ns >= $min_time_ns AND b.ns >= $min_share * t.elapsed_ns
)
SELECT
    j.remote AS subject,
    'finding' AS status,
    round(1e2 * j.ns / j.elapsed_ns, 1) AS value,
    1e2 * $min_share AS limit_value,
    CAST(j.ns AS BIGINT) AS cost_ns,
    CAST(j.ns AS BIGINT) AS gain_ns,
    CASE WHEN j.kind = 'name' THEN 'high' ELSE 'medium' END AS certainty,
    j.kind AS variant,
    p.pid AS process,
    j.requests,
    CAST(j.ns // j.requests AS BIGINT) AS mean_ns
FROM judged AS j
INNER JOIN processes AS p ON p.task_id = j.task_id
UNION ALL
SELECT NULL, CASE WHEN t.calls = 0 OR NOT t.has_durations THEN 'unknown' ELSE 'ok' END, NULL, 1e2 * $min_share, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM totals AS t
WHERE (SELECT count(*) FROM judged) = 0
ORDER BY cost_ns DESC, subject
