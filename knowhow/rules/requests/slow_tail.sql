-- High tail latency
-- The slowest 1 % of the requests take many times as long as the median, mostly for one reason.
-- needs:  requests, run_states, paths
-- param:  least BIGINT = 500            With fewer requests of a kind nothing is said of them.
-- param:  slow_share DOUBLE = 0.01      Share of the requests that counts as slowest.
-- param:  min_slow_ns BIGINT = 10000000 Minimum mean duration of the slowest ones [ns].
-- param:  min_ratio DOUBLE = 10         They take at least this many times the median.
-- param:  most BIGINT = 200             At most this many of the slowest ones are read, taken evenly.
-- column: subject VARCHAR      Name of the request.
-- column: status VARCHAR       finding, ok or unknown.
-- column: value DOUBLE         How many times the median the slowest ones take [ratio].
-- column: limit_value DOUBLE   Threshold: reported from this value on [ratio].
-- column: cost_ns BIGINT       Time that the slowest ones took more than the median, all together [ns].
-- column: gain_ns BIGINT       0: of a single request, and not of the whole.
-- column: certainty VARCHAR    medium.
-- column: variant VARCHAR      waits, cpu or runs.
-- column: requests BIGINT      Requests of this kind.
-- column: slow BIGINT          The slowest ones of them.
-- column: median_ns BIGINT     Half of the requests took at most this [ns].
-- column: slow_ns BIGINT       Mean duration of the slowest ones [ns].
-- column: cause VARCHAR        What they waited for most.
-- column: detail VARCHAR       In which call, on what.
-- column: part DOUBLE          How much of their time that was [%].
-- says: finding.waits en   The slowest {slow} of {requests:request} ({subject}) take {slow_ns} on average, the median {median_ns}: {part} of that is spent waiting for {cause} ({detail}).
-- says: finding.waits ja   リクエスト（{subject}）{requests} 件のうち最も遅い {slow} 件は平均 {slow_ns} かかっています（中央値は {median_ns}）。その {part} は{cause:ja}の待ちです（{detail:ja}）。
-- says: finding.cpu en     The slowest {slow} of {requests:request} ({subject}) take {slow_ns} on average, the median {median_ns}: for {part} of that they were ready to run but had no CPU.
-- says: finding.cpu ja     リクエスト（{subject}）{requests} 件のうち最も遅い {slow} 件は平均 {slow_ns} かかっています（中央値は {median_ns}）。その {part} は、実行できるのに CPU がなかった時間です。
-- says: finding.runs en    The slowest {slow} of {requests:request} ({subject}) take {slow_ns} on average, the median {median_ns}: they run for {part} of that, so they do more work than the others.
-- says: finding.runs ja    リクエスト（{subject}）{requests} 件のうち最も遅い {slow} 件は平均 {slow_ns} かかっています（中央値は {median_ns}）。その {part} は実行時間で、ほかより多くの処理をしています。
-- says: ok en              No kind of request has a tail that is much slower than the median.
-- says: ok ja              一部だけが中央値よりずっと遅いリクエストはありません。
-- says: unknown en         The recording does not show when threads ran.
-- says: unknown ja         スレッドの実行時刻が記録にありません。
-- at_least: duration min_slow_ns
-- evidence: requests/where
-- tags:   time, processes
WITH placed AS (
    SELECT q.request_id, q.request, q.task_id, q.ts_ns, q.ts_ns + q.dur_ns AS until_ns, q.dur_ns,
        row_number() OVER (PARTITION BY q.request ORDER BY q.dur_ns DESC, q.request_id) AS place,
        count(*) OVER (PARTITION BY q.request) AS total
    FROM requests AS q
    WHERE q.dur_ns IS NOT NULL
), kinds AS (
    SELECT p.request, max(p.total) AS total, sum(CASE WHEN p.place <= p.total * $slow_share THEN 1 ELSE 0 END) AS slow,
        max(CASE WHEN p.place * 2 >= p.total THEN p.dur_ns END) AS median_ns,
        avg(CASE WHEN p.place <= p.total * $slow_share THEN p.dur_ns END) AS slow_ns
    FROM placed AS p
    WHERE p.total >= $least
    GROUP BY p.request
), judged AS (
    SELECT k.request, k.total, k.slow, k.median_ns, k.slow_ns,
        k.slow_ns >= $min_slow_ns AND k.slow_ns >= $min_ratio * k.median_ns AS is_slow
    FROM kinds AS k
), picked AS (
    SELECT p.request, p.task_id, p.ts_ns, p.until_ns, p.dur_ns
    FROM placed AS p
    INNER JOIN judged AS j ON j.request = p.request
    WHERE j.is_slow AND p.place <= j.slow AND (p.place - 1) % CAST(ceil(1e0 * j.slow / $most) AS BIGINT) = 0
), absences AS (
    SELECT p.request, r.cause, r.call, r.path_id,
        greatest(0, least(r.ts_ns + r.wait_ns, p.until_ns) - greatest(r.ts_ns, p.ts_ns)) AS wait_ns,
        greatest(0, least(r.ts_ns + r.dur_ns, p.until_ns) - greatest(r.ts_ns + r.wait_ns, p.ts_ns)) AS cpu_wait_ns
    FROM picked AS p
    INNER JOIN run_states AS r ON r.task_id = p.task_id AND r.ts_ns < p.until_ns AND r.ts_ns + r.dur_ns > p.ts_ns
), parts AS (
    SELECT a.request, 'waits' AS variant, coalesce(a.cause, 'unknown') AS cause,
        concat(coalesce(a.call, 'page fault'), CASE WHEN o.path IS NOT NULL AND o.kind <> 'socket' THEN concat(' ', o.path) ELSE '' END) AS detail,
        sum(a.wait_ns) AS ns
    FROM absences AS a
    LEFT JOIN paths AS o ON o.path_id = a.path_id
    GROUP BY a.request, coalesce(a.cause, 'unknown'),
        concat(coalesce(a.call, 'page fault'), CASE WHEN o.path IS NOT NULL AND o.kind <> 'socket' THEN concat(' ', o.path) ELSE '' END)
    UNION ALL
    SELECT a.request, 'cpu', NULL, NULL, sum(a.cpu_wait_ns) FROM absences AS a GROUP BY a.request
    UNION ALL
    SELECT p.request, 'runs', NULL, NULL, sum(p.dur_ns) - coalesce(max(w.ns), 0)
    FROM picked AS p
    LEFT JOIN (SELECT a.request, sum(a.wait_ns + a.cpu_wait_ns) AS ns FROM absences AS a GROUP BY a.request) AS w ON w.request = p.request
    GROUP BY p.request
), ranked AS (
    SELECT s.request, s.variant, s.cause, s.detail, s.ns, sum(s.ns) OVER (PARTITION BY s.request) AS all_ns,
        row_number() OVER (PARTITION BY s.request ORDER BY s.ns DESC, s.variant, s.cause, s.detail) AS place
    FROM parts AS s
), worst AS (
    SELECT max(CASE WHEN j.median_ns > 0 THEN j.slow_ns / j.median_ns END) AS ratio, (SELECT count(*) FROM run_states AS n) AS states FROM judged AS j
), found AS (
    SELECT j.request, j.total, j.slow, j.median_ns, j.slow_ns, r.variant, r.cause, r.detail, r.ns, r.all_ns
    FROM judged AS j
    INNER JOIN ranked AS r ON r.request = j.request AND r.place = 1
    WHERE j.is_slow
)
SELECT
    f.request AS subject,
    CASE WHEN w.states = 0 THEN 'unknown' WHEN f.request IS NOT NULL THEN 'finding' ELSE 'ok' END AS status,
    round(CASE WHEN f.request IS NOT NULL THEN f.slow_ns / greatest(1, f.median_ns) ELSE w.ratio END, 1) AS value,
    $min_ratio AS limit_value,
    CAST(round((f.slow_ns - f.median_ns) * f.slow) AS BIGINT) AS cost_ns,
    CAST(CASE WHEN f.request IS NOT NULL THEN 0 END AS BIGINT) AS gain_ns,
    CASE WHEN f.request IS NOT NULL THEN 'medium' END AS certainty,
    f.variant,
    f.total AS requests,
    CAST(f.slow AS BIGINT) AS slow,
    f.median_ns,
    CAST(round(f.slow_ns) AS BIGINT) AS slow_ns,
    f.cause,
    f.detail,
    round(1e2 * f.ns / f.all_ns, 1) AS part
FROM worst AS w
LEFT JOIN found AS f ON w.states > 0
