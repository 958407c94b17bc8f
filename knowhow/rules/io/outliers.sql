-- Outliers
-- Single calls that took far longer than others of the same kind. Calls that wait for another process, a signal or a timer are left out.
-- needs:  call_use, calls, totals
-- param:  min_ns BIGINT = 100000000 > 0   A shorter call is no outlier [ns].
-- param:  min_times DOUBLE = 100.0 > 1    How many times longer than its kind it must be.
-- param:  min_calls BIGINT = 20 > 0       Minimum number of calls of its kind.
-- param:  min_share DOUBLE = 0.01         Minimum share of the elapsed time.
-- column: subject VARCHAR       The call and the file.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          How many times longer than its kind it is.
-- column: limit_value DOUBLE    Threshold: reported from this value on.
-- column: cost_ns BIGINT        Time in the call [ns].
-- column: gain_ns BIGINT        What it took beyond the usual [ns].
-- column: certainty VARCHAR     medium: why it took so long is not in the log.
-- column: file VARCHAR          The file.
-- column: process INTEGER       The process that made it.
-- column: from_s DOUBLE         When it began, since the start of the recording [s].
-- column: until_s DOUBLE        When it returned [s].
-- column: explained_by VARCHAR  Rules whose findings explain this one.
-- column: call VARCHAR          Name of the call.
-- column: usual_ns BIGINT       Mean time of the others [ns].
-- column: kin BIGINT            Number of the others.
-- column: neighbours BIGINT     Other calls that took at least a tenth of min_ns and overlap with it.
-- column: calls BIGINT          Calls checked.
-- says: finding en  One {call} took {cost_ns}, {value} times as long as the mean of {kin:other call} of the same kind ({usual_ns}); {neighbours:other slow call} at the same time.
-- says: finding ja  1 回の {call} に {cost_ns} かかりました。同種の {kin} 回の平均（{usual_ns}）の {value} 倍です。同じ時に遅かった呼び出しはほかに {neighbours} 回です。
-- says: ok en       Checked {calls:call}: no outliers.
-- says: ok ja       システムコール {calls} 回を調べました。外れ値はありません。
-- says: unknown en  The recording contains no system calls with durations.
-- says: unknown ja  所要時間のある呼び出しが記録にありません。
-- at_least: duration min_ns
-- evidence: io/files --file {file} --from {from_s} --until {until_s}
-- tags:   time, calls, files
-- was:    io/singular_points
WITH kinds AS (
    SELECT call, class, kind, sum(calls) AS calls, sum(time_ns) AS time_ns, max(longest_ns) AS longest_ns, sum(transferred_bytes) AS bytes
    FROM call_use
    WHERE class IN ('open', 'close', 'read', 'write', 'copy', 'seek', 'stat', 'dir', 'name', 'attr', 'sync')
        AND coalesce(kind, 'file') IN ('file', 'directory', 'unknown', 'virtual')
    GROUP BY call, class, kind
), suspects AS (
    SELECT *, greatest((time_ns - longest_ns) / greatest(calls - 1, 1), 1) AS usual_ns, greatest(1e0 * bytes / calls, 1) AS usual_bytes
    FROM kinds
    WHERE longest_ns >= $min_ns AND calls >= $min_calls
), long AS (
    -- All calls that may be points, or crowd one: few, and read once.
    SELECT c.ts_ns, c.dur_ns, c.task_id, c.pid, c.path, c.kind, c.call, c.class, c.transferred_bytes
    FROM calls AS c
    WHERE c.dur_ns >= $min_ns / 10 AND c.via IS NULL
        AND c.class IN ('open', 'close', 'read', 'write', 'copy', 'seek', 'stat', 'dir', 'name', 'attr', 'sync')
), points AS (
    SELECT c.ts_ns, c.dur_ns, c.task_id, c.pid, c.path, c.call, s.usual_ns, s.calls,
        c.dur_ns / (s.usual_ns * greatest(1, coalesce(c.transferred_bytes, 0) / s.usual_bytes)) AS times
    FROM long AS c
    JOIN suspects AS s ON s.call = c.call AND s.class = c.class AND coalesce(s.kind, '') = coalesce(c.kind, '')
    CROSS JOIN totals AS t
    WHERE c.dur_ns >= $min_ns AND c.dur_ns >= $min_share * t.elapsed_ns
), found AS (
    SELECT *, row_number() OVER (ORDER BY dur_ns DESC, ts_ns) AS place
    FROM points
    WHERE times >= $min_times
), crowds AS (
    SELECT f.place, count(*) AS neighbours
    FROM found AS f
    JOIN long AS s ON s.ts_ns < f.ts_ns + f.dur_ns AND s.ts_ns + s.dur_ns > f.ts_ns AND s.task_id <> f.task_id
    WHERE f.place <= 100
    GROUP BY f.place
)
SELECT
    CASE WHEN f.place IS NOT NULL THEN concat(f.call, ' ', coalesce(f.path, '')) END AS subject,
    CASE WHEN f.place IS NOT NULL THEN 'finding' WHEN t.calls = 0 OR NOT t.has_durations THEN 'unknown' ELSE 'ok' END AS status,
    round(f.times, 0) AS value,
    CAST($min_times AS DOUBLE) AS limit_value,
    f.dur_ns AS cost_ns,
    CAST(f.dur_ns - f.usual_ns AS BIGINT) AS gain_ns,
    CASE WHEN f.place IS NOT NULL THEN 'medium' END AS certainty,
    f.path AS file,
    f.pid AS process,
    round((f.ts_ns - t.started_ns) / 1e9, 6) AS from_s,
    round((f.ts_ns + f.dur_ns - t.started_ns) / 1e9, 6) AS until_s,
    CASE WHEN f.call = 'close' THEN 'io/flush_on_close' END AS explained_by,
    f.call,
    CAST(f.usual_ns AS BIGINT) AS usual_ns,
    CAST(f.calls - 1 AS BIGINT) AS kin,
    coalesce(n.neighbours, 0) AS neighbours,
    t.calls
FROM totals AS t
LEFT JOIN found AS f ON f.place > 0
LEFT JOIN crowds AS n ON n.place = f.place
