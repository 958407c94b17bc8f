-- Calls over time
-- Calls of each class that began in each time step. A step without calls of a class has no row.
-- Operations of libaio are not system calls and are left out; the calls that submit them are included.
-- needs:  calls, recording
-- param:  interval_s DOUBLE = 1.0 > 0   Length of a step; fractions allowed [s].
-- column: from_s DOUBLE     Start of the step, since the start of the recording [s].
-- column: until_s DOUBLE    End of the step [s].
-- column: class VARCHAR     What the calls do: open, read, write, ...
-- column: calls BIGINT      Calls that began in the step.
-- column: ok BIGINT         Calls that returned without an error.
-- column: errors BIGINT     Calls that returned an error.
-- column: time_ns BIGINT    Time in these calls, even if they ended later [ns].
-- column: avg_ns BIGINT     Average time of these calls [ns].
-- chart:  lines x=from_s x2=until_s y=calls color=class title="Calls per step" title_ja="区間ごとの回数"
-- chart:  heat x=from_s x2=until_s y=calls color=class title="Calls by class" title_ja="種類ごとの回数"
-- chart:  lines x=from_s x2=until_s y=errors color=class title="Errors per step" title_ja="区間ごとのエラー"
-- chart:  lines x=from_s x2=until_s y=time_ns color=class title="Time in calls per step" title_ja="区間ごとの所要時間"
-- chart:  lines x=from_s x2=until_s y=avg_ns color=class y_scale=log title="Average time per call" title_ja="1 回の平均時間"
-- tags:   calls, errors, time
WITH step AS (
    SELECT started_ns, greatest(CAST(round(least($interval_s, 1e9) * 1e9) AS BIGINT), 1) AS step_ns
    FROM recording
), placed AS (
    SELECT CAST(floor((c.ts_ns - s.started_ns) / s.step_ns) AS BIGINT) AS number, c.class, c.result, c.errno, c.dur_ns
    FROM calls AS c
    CROSS JOIN step AS s
    WHERE c.via IS NULL
), counted AS (
    SELECT number, class, count(*) AS calls,
        count(*) FILTER (WHERE errno IS NULL AND result IS NOT NULL) AS ok,
        count(errno) AS errors,
        CAST(sum(dur_ns) AS BIGINT) AS time_ns,
        CAST(round(avg(dur_ns)) AS BIGINT) AS avg_ns
    FROM placed
    GROUP BY number, class
)
SELECT
    round(c.number * s.step_ns / 1e9, 9) AS from_s,
    round((c.number + 1) * s.step_ns / 1e9, 9) AS until_s,
    c.class,
    c.calls,
    c.ok,
    c.errors,
    c.time_ns,
    c.avg_ns
FROM counted AS c
CROSS JOIN step AS s
ORDER BY c.number, c.class
