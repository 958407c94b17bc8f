-- Disk does not respond
-- A disk of a crashed kernel with a request that has been pending for longer than a healthy disk takes.
-- needs:  dump_requests
-- param:  min_age_ns BIGINT = 2000000000 > 0    Minimum age of a request [ns].
-- column: subject VARCHAR       The disk.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Requests that are as old.
-- column: limit_value DOUBLE    Not used.
-- column: cost_ns BIGINT        Not known [ns].
-- column: gain_ns BIGINT        Not known [ns].
-- column: certainty VARCHAR     high where the driver has the oldest of them; medium where it has not got it, or this is not known.
-- column: age_ns BIGINT         Age of the oldest of them [ns].
-- column: operation VARCHAR     What it is: read, write, flush and so on.
-- column: requests BIGINT       All requests of the disk that were in progress.
-- says: finding en  {subject} has not completed a {operation} for {age_ns}. Requests pending for {min_age_ns} or longer: {value} of {requests}.
-- says: finding ja  {subject} が {operation} を {age_ns} 完了していません。{min_age_ns} 以上の要求: {requests} 件中 {value} 件。
-- says: ok en  No disk request was pending for {min_age_ns}.
-- says: ok ja  {min_age_ns} 以上経過したディスクの要求はありません。
-- says: unknown en  No disk request was pending, or the requests could not be read.
-- says: unknown ja  処理中のディスクの要求がないか、読み取れませんでした。
-- evidence: dump/requests
-- tags:   disk, time
WITH disks AS (
    SELECT
        q.disk,
        count(*) AS requests,
        sum(CASE WHEN q.age_ns >= $min_age_ns THEN 1 ELSE 0 END) AS old,
        max(q.age_ns) AS age_ns,
        arg_max(q.operation, q.age_ns) AS operation,
        arg_max(CASE WHEN q.state = 'in flight' THEN 1 ELSE 0 END, q.age_ns) AS in_flight
    FROM dump_requests AS q
    GROUP BY q.disk
), state AS (
    SELECT count(*) AS requests FROM dump_requests
)

SELECT
    d.disk AS subject,
    CASE WHEN d.disk IS NOT NULL THEN 'finding' WHEN s.requests > 0 THEN 'ok' ELSE 'unknown' END AS status,
    CAST(d.old AS DOUBLE) AS value,
    CAST(NULL AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN d.disk IS NULL THEN NULL WHEN d.in_flight = 1 THEN 'high' ELSE 'medium' END AS certainty,
    d.age_ns,
    d.operation,
    d.requests
FROM state AS s
LEFT JOIN disks AS d ON d.old > 0
ORDER BY d.age_ns DESC, d.disk
