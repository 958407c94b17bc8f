-- Source lines by instructions
-- The source lines of the executed instructions, if the files have debug information.
-- needs:  source_lines, traced_functions
-- param:  request INTEGER = 0           Only this request; 0: all.
-- param:  function VARCHAR = ''         Only this function; empty: all.
-- column: source VARCHAR                The source file, as the compiler named it.
-- column: line INTEGER                  Line in it.
-- column: function VARCHAR              The function; inlined code belongs to the function around it.
-- column: steps BIGINT                  Steps, with each iteration of a repeated string instruction counted as one.
-- match:  source, line, function
-- sums:   steps
-- tags:   size
SELECT
    l.path AS source,
    l.line,
    f.name AS function,
    CAST(sum(l.steps) AS BIGINT) AS steps
FROM source_lines AS l
INNER JOIN traced_functions AS f ON f.function_id = l.function_id
WHERE ($request = 0 OR l.request_id = $request) AND ($function = '' OR f.name = $function)
GROUP BY l.path, l.line, f.name
ORDER BY steps DESC, l.path, l.line, f.name
