-- What slow requests waited for
-- How the time of the slowest requests was spent, compared with typical ones. Times are means per request.
-- needs:  requests, calls, run_states, paths
-- uses:   locks, stack_places
-- param:  slow_share DOUBLE = 0.01   Share of the requests that counts as slowest.
-- param:  most BIGINT = 200          Maximum number of requests read from each group, taken evenly.
-- column: request VARCHAR    Name of the request.
-- column: part VARCHAR       Where the time went, as in time/where.
-- column: detail VARCHAR     The object or the call.
-- column: slow_ns BIGINT     Mean time of it in one of the slowest requests [ns].
-- column: usual_ns BIGINT    The same in one of the requests around the median [ns].
-- column: more_ns BIGINT     The difference [ns].
-- column: share DOUBLE       Share of the difference between slow and usual requests.
-- tags:   time, processes
WITH placed AS (
    SELECT q.request_id, q.request, q.task_id, q.ts_ns, q.ts_ns + q.dur_ns AS until_ns, q.dur_ns,
        row_number() OVER (PARTITION BY q.request ORDER BY q.dur_ns DESC, q.request_id) AS place,
        count(*) OVER (PARTITION BY q.request) AS total
    FROM requests AS q
    WHERE q.dur_ns IS NOT NULL
), grouped AS (
    -- The slowest ones, and those within 5 % of the median. Of fewer than five requests nothing is said.
    SELECT p.request_id, p.request, p.task_id, p.ts_ns, p.until_ns, p.dur_ns, p.place,
        CASE WHEN p.place <= greatest(1, p.total * $slow_share) THEN 'slow' ELSE 'usual' END AS kind
    FROM placed AS p
    WHERE p.total >= 5
        AND (p.place <= greatest(1, p.total * $slow_share) OR p.place BETWEEN floor(p.total * 0.45) AND ceil(p.total * 0.55))
), counted AS (
    SELECT g.request_id, g.request, g.task_id, g.ts_ns, g.until_ns, g.dur_ns, g.kind,
        row_number() OVER (PARTITION BY g.request, g.kind ORDER BY g.place) - 1 AS number,
        CAST(ceil(1e0 * count(*) OVER (PARTITION BY g.request, g.kind) / $most) AS BIGINT) AS each
    FROM grouped AS g
), picked AS (
    SELECT c.request_id, c.request, c.task_id, c.ts_ns, c.until_ns, c.dur_ns, c.kind FROM counted AS c WHERE c.number % c.each = 0
), sizes AS (
    SELECT p.request, p.kind, count(*) AS number, sum(p.dur_ns) AS time_ns FROM picked AS p GROUP BY p.request, p.kind
), absences AS (
    SELECT p.request, p.kind, r.call, r.class, r.cause, r.path_id, r.stack_id, r.lock_id,
        greatest(0, least(r.ts_ns + r.wait_ns, p.until_ns) - greatest(r.ts_ns, p.ts_ns)) AS wait_ns,
        greatest(0, least(r.ts_ns + r.dur_ns, p.until_ns) - greatest(r.ts_ns + r.wait_ns, p.ts_ns)) AS cpu_wait_ns
    FROM picked AS p
    INNER JOIN run_states AS r ON r.task_id = p.task_id AND r.ts_ns < p.until_ns AND r.ts_ns + r.dur_ns > p.ts_ns
), slots AS (
    -- Time in slots of the longest request: what is shorter than one and overlaps a request begins in its slot, or in one beside it. So a call
    -- is compared with the requests of three slots, and not with all of its thread.
    SELECT min(p.ts_ns) AS from_ns, greatest(1, max(p.dur_ns)) AS slot_ns FROM picked AS p
), sides AS (
    SELECT -1 AS side UNION ALL SELECT 0 UNION ALL SELECT 1
), near AS (
    SELECT p.request, p.kind, p.task_id, p.ts_ns, p.until_ns, (p.ts_ns - s.from_ns) // s.slot_ns + d.side AS slot
    FROM picked AS p CROSS JOIN slots AS s CROSS JOIN sides AS d
), made AS (
    SELECT c.task_id, c.call, c.class, c.path_id, c.ts_ns, c.ts_ns + coalesce(c.dur_ns, 0) AS until_ns,
        CAST(floor((c.ts_ns - s.from_ns) / s.slot_ns) AS BIGINT) AS slot, coalesce(c.dur_ns, 0) < s.slot_ns AS is_short
    FROM calls AS c CROSS JOIN slots AS s
    WHERE c.via IS NULL
), met AS (
    SELECT n.request, n.kind, m.call, m.class, m.path_id, least(m.until_ns, n.until_ns) - greatest(m.ts_ns, n.ts_ns) AS time_ns
    FROM near AS n
    INNER JOIN made AS m ON m.task_id = n.task_id AND m.slot = n.slot AND m.ts_ns < n.until_ns AND m.until_ns > n.ts_ns
    WHERE m.is_short
    UNION ALL
    SELECT p.request, p.kind, m.call, m.class, m.path_id, least(m.until_ns, p.until_ns) - greatest(m.ts_ns, p.ts_ns)
    FROM picked AS p
    INNER JOIN made AS m ON m.task_id = p.task_id AND m.ts_ns < p.until_ns AND m.until_ns > p.ts_ns
    WHERE NOT m.is_short
), worked AS (
    -- Time in calls without that on no CPU.
    SELECT m.request, m.kind, m.call, m.class, m.path_id, m.time_ns FROM met AS m
    UNION ALL
    SELECT a.request, a.kind, a.call, a.class, a.path_id, -a.wait_ns - a.cpu_wait_ns FROM absences AS a WHERE a.call IS NOT NULL
), pieces AS (
    SELECT a.request, a.kind, concat('waiting: ', coalesce(a.cause, 'unknown')) AS part,
        coalesce(CASE WHEN l.name IS NOT NULL THEN concat(coalesce(a.call, 'page fault'), ' ', l.name) END,
            CASE WHEN o.path IS NOT NULL AND o.kind <> 'socket' THEN concat(coalesce(a.call, 'page fault'), ' ', o.path) END,
            CASE WHEN s.own THEN concat(a.call, ' in ', coalesce(s.function, '?')) END, a.call) AS detail,
        a.wait_ns AS time_ns
    FROM absences AS a
    LEFT JOIN paths AS o ON o.path_id = a.path_id
    LEFT JOIN locks AS l ON l.lock_id = a.lock_id
    LEFT JOIN stack_places AS s ON s.stack_id = a.stack_id
    WHERE a.wait_ns > 0
    UNION ALL
    SELECT a.request, a.kind, 'waiting for a CPU', NULL, a.cpu_wait_ns FROM absences AS a WHERE a.cpu_wait_ns > 0
    UNION ALL
    SELECT w.request, w.kind, 'kernel', concat(w.call, CASE WHEN o.path IS NOT NULL AND o.kind <> 'socket' THEN concat(' ', o.path) ELSE '' END), w.time_ns
    FROM worked AS w
    LEFT JOIN paths AS o ON o.path_id = w.path_id
), summed AS (
    SELECT p.request, p.kind, p.part, p.detail, sum(p.time_ns) AS time_ns FROM pieces AS p GROUP BY p.request, p.kind, p.part, p.detail
), whole AS (
    SELECT s.request, s.kind, s.part, s.detail, s.time_ns FROM summed AS s
    UNION ALL
    SELECT z.request, z.kind, 'user code', NULL, z.time_ns - coalesce((
        SELECT sum(s.time_ns) FROM summed AS s WHERE s.request = z.request AND s.kind = z.kind), 0)
    FROM sizes AS z
), means AS (
    SELECT w.request, w.part, w.detail,
        sum(CASE WHEN w.kind = 'slow' THEN 1e0 * w.time_ns / z.number ELSE 0 END) AS slow_ns,
        sum(CASE WHEN w.kind = 'usual' THEN 1e0 * w.time_ns / z.number ELSE 0 END) AS usual_ns
    FROM whole AS w
    INNER JOIN sizes AS z ON z.request = w.request AND z.kind = w.kind
    GROUP BY w.request, w.part, w.detail
), differences AS (
    SELECT m.request, m.part, m.detail, m.slow_ns, m.usual_ns, m.slow_ns - m.usual_ns AS more_ns,
        sum(m.slow_ns - m.usual_ns) OVER (PARTITION BY m.request) AS all_ns
    FROM means AS m
)
SELECT
    d.request,
    d.part,
    d.detail,
    CAST(round(d.slow_ns) AS BIGINT) AS slow_ns,
    CAST(round(d.usual_ns) AS BIGINT) AS usual_ns,
    CAST(round(d.more_ns) AS BIGINT) AS more_ns,
    CASE WHEN d.all_ns > 0 THEN round(d.more_ns / d.all_ns, 4) END AS share
FROM differences AS d
WHERE round(d.slow_ns) <> 0 OR round(d.usual_ns) <> 0
ORDER BY d.request, d.more_ns DESC, d.part, d.detail
