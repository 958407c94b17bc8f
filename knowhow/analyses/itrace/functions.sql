-- Functions by instructions
-- Functions that executed the instructions of a request, how often each was called, and its cost including its callees.
-- needs:  traced_functions, images
-- uses:   function_calls, function_totals
-- param:  request INTEGER = 0           Only this request; 0: all.
-- column: image VARCHAR                 The file of the code.
-- column: function VARCHAR              Name, or the file and its first address there if it has no symbol.
-- column: times BIGINT                  How often it was entered; NULL: the profile did not count its calls.
-- column: min_steps BIGINT              Minimum own steps per call; NULL: not in a profile.
-- column: avg_steps DOUBLE              Average own steps per call.
-- column: max_steps BIGINT              Maximum own steps per call; NULL: not in a profile.
-- column: total_steps BIGINT            Own steps of all calls.
-- column: inclusive_steps BIGINT        These steps and those of everything that it called, including interrupts; calls of itself count once. NULL: not in a profile if it calls itself through others.
-- column: part DOUBLE                   Share of all steps that are its own [%].
-- heads_ja:  part=割合
-- match:  image, function
-- sums:   total_steps
-- chart:  bars x=function y=total_steps title="Functions by their own instructions" title_ja="関数ごとの自身のステップ数"
-- tags:   cpu
WITH sums AS (
    SELECT
        c.function_id,
        count(*) AS times,
        min(c.steps) AS min_steps,
        max(c.steps) AS max_steps,
        CAST(sum(c.steps) AS BIGINT) AS total_steps,
        CAST(sum(CASE WHEN c.outermost THEN c.steps_inclusive ELSE 0 END) AS BIGINT) AS inclusive_steps
    FROM function_calls AS c
    WHERE $request = 0 OR c.request_id = $request
    GROUP BY c.function_id
    UNION ALL
    SELECT
        t.function_id,
        CAST(sum(t.times) AS BIGINT) AS times,
        CAST(NULL AS BIGINT) AS min_steps,
        CAST(NULL AS BIGINT) AS max_steps,
        CAST(sum(t.steps) AS BIGINT) AS total_steps,
        CASE WHEN count(t.steps_inclusive) = count(*) THEN CAST(sum(t.steps_inclusive) AS BIGINT) END AS inclusive_steps
    FROM function_totals AS t
    WHERE $request = 0 OR t.request_id = $request
    GROUP BY t.function_id
), whole AS (
    SELECT sum(u.total_steps) AS steps FROM sums AS u
)

SELECT
    i.path AS image,
    f.name AS function,
    u.times,
    u.min_steps,
    CASE WHEN u.times > 0 THEN round(1.0 * u.total_steps / u.times, 2) END AS avg_steps,
    u.max_steps,
    u.total_steps,
    u.inclusive_steps,
    CASE WHEN w.steps > 0 THEN round(1e2 * u.total_steps / w.steps, 2) END AS part
FROM sums AS u
CROSS JOIN whole AS w
INNER JOIN traced_functions AS f ON f.function_id = u.function_id
INNER JOIN images AS i ON i.image_id = f.image_id
ORDER BY u.total_steps DESC, i.path, f.name
