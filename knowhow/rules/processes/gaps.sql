-- Idle gaps
-- Long periods without a call on files: the program computes, sleeps or waits.
-- needs:  calls, processes, totals, recording, captures
-- param:  min_gap_ns BIGINT = 500000000 > 0  A shorter gap is none [ns].
-- param:  min_share DOUBLE = 0.1             Minimum share of the elapsed time that all gaps take.
-- param:  min_computed DOUBLE = 0.5          Minimum share of a gap that lies in no call at all, if the program computes there.
-- param:  steps BIGINT = 4096 > 0            Into how many time steps the recording is cut; shorter gaps are not seen.
-- column: subject VARCHAR       What the program does in the gaps: sleeps, waits or computes.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the elapsed time that is such gaps [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time in the gaps [ns].
-- column: gain_ns BIGINT        Potential saving: sleep, or I/O that could go on while the program computes; empty where a tracer slowed that down [ns].
-- column: certainty VARCHAR     high for sleeping; medium for computing; low for waiting.
-- column: explained_by VARCHAR  Rules whose findings explain this one: what is seen when threads run says more.
-- column: from_s DOUBLE         Begin of the longest, since the start of the recording [s].
-- column: until_s DOUBLE        End of the interval [s].
-- column: variant VARCHAR       sleep, wait or compute.
-- column: gaps BIGINT           Number of gaps.
-- column: longest_ns BIGINT     The longest [ns].
-- column: busy_ns BIGINT        Time in calls that do not wait [ns].
-- says: finding.sleep en    {gaps:gap}, {cost_ns} in total, the longest {longest_ns}: the program sleeps voluntarily.
-- says: finding.sleep ja    無活動区間が {gaps} 回、合計 {cost_ns}（最長 {longest_ns}）あります。プログラムが自発的にスリープしています。
-- says: finding.wait en     {gaps:gap}, {cost_ns} in total, the longest {longest_ns}: the program waits for another process, a user or the network.
-- says: finding.wait ja     無活動区間が {gaps} 回、合計 {cost_ns}（最長 {longest_ns}）あります。ほかのプロセス、利用者、ネットワークのいずれかを待っています。
-- says: finding.compute en  {gaps:gap}, {cost_ns} in total, the longest {longest_ns}: the program computes. Its I/O takes {busy_ns} in total and makes no progress in the meantime.
-- says: finding.compute ja  無活動区間が {gaps} 回、合計 {cost_ns}（最長 {longest_ns}）あります。プログラムは計算しています。入出力は合計 {busy_ns} で、この間は進んでいません。
-- says: unknown.lost en   {gaps:gap}, {cost_ns} in total, the longest {longest_ns}: whether the program computes is unknown, because parts of the log are missing.
-- says: unknown.lost ja   無活動区間が {gaps} 回、合計 {cost_ns}（最長 {longest_ns}）あります。ログの一部が失われているため、計算しているかどうかは不明です。
-- says: ok en               No long gaps between system calls.
-- says: ok ja               システムコールの間に長い無活動区間はありません。
-- says: unknown en          The recording contains no system calls with durations.
-- says: unknown ja          所要時間のある呼び出しが記録にありません。
-- at_least: duration min_gap_ns
-- evidence: io/calls_over_time --from {from_s} --until {until_s}
-- tags:   time, calls, processes
WITH clock AS (
    -- Coarse stamps lie before the events: what seems to be a gap may be none.
    SELECT t.started_ns, t.elapsed_ns, t.busy_ns, greatest(t.elapsed_ns // $steps, 1) AS step_ns,
        CASE WHEN r.resolution_ns >= 1000000 THEN r.resolution_ns ELSE 0 END AS unsure_ns
    FROM totals AS t
    CROSS JOIN recording AS r
    WHERE t.has_durations AND t.calls > 0 AND coalesce(t.stamps, 'entry') = 'entry'
), made AS (
    -- A call that has not returned lasts until the end, unless it ends its thread.
    SELECT c.ts_ns, coalesce(c.dur_ns, k.started_ns + k.elapsed_ns - c.ts_ns) AS dur_ns, c.action, c.class, c.dur_ns IS NOT NULL
        AND c.class NOT IN ('wait', 'lock', 'time', 'signal', 'process') AND coalesce(c.kind, '') NOT IN ('pipe', 'socket', 'anonymous') AS ends_gap
    FROM calls AS c
    CROSS JOIN clock AS k
    WHERE c.dur_ns IS NOT NULL OR (c.result IS NULL AND c.errno IS NULL AND coalesce(c.action, '') <> 'exit')
), steps AS (
    -- The first start and the last end in each step of time are all that is needed to see gaps that are longer than a step.
    -- Other calls, such as those that wait or read the clock, do not end a gap, but the program does not compute in them either.
    SELECT m.step, min(CASE WHEN m.ends_gap THEN m.ts_ns END) AS first_ns, max(CASE WHEN m.ends_gap THEN m.ts_ns + m.dur_ns END) AS last_ns,
        sum(CASE WHEN NOT m.ends_gap AND m.dur_ns < $min_gap_ns / 10 THEN m.dur_ns ELSE 0 END) AS short_ns
    FROM (
        SELECT (c.ts_ns - k.started_ns) // k.step_ns AS step, c.ts_ns, c.dur_ns, c.ends_gap
        FROM made AS c
        CROSS JOIN clock AS k
    ) AS m
    GROUP BY m.step
), edges AS (
    SELECT first_ns, last_ns FROM steps WHERE first_ns IS NOT NULL
    UNION ALL
    SELECT started_ns + elapsed_ns AS first_ns, started_ns + elapsed_ns AS last_ns FROM clock
), reached AS (
    SELECT first_ns, max(last_ns) OVER (ORDER BY first_ns, last_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns
    FROM edges
), gaps AS (
    SELECT row_number() OVER (ORDER BY r.reached_ns) AS gap, r.reached_ns AS from_ns, r.first_ns AS to_ns, r.first_ns - r.reached_ns - k.unsure_ns AS ns
    FROM reached AS r
    CROSS JOIN clock AS k
    WHERE r.first_ns - r.reached_ns - k.unsure_ns >= $min_gap_ns
), waits AS (
    SELECT g.gap, g.from_ns, g.to_ns, g.ns,
        coalesce(sum(CASE WHEN c.ts_ns IS NOT NULL THEN least(c.ts_ns + c.dur_ns, g.to_ns) - greatest(c.ts_ns, g.from_ns) END), 0) AS longer_ns,
        coalesce(max(least(c.ts_ns + c.dur_ns, g.to_ns) - greatest(c.ts_ns, g.from_ns)) FILTER (WHERE c.action = 'sleep'), 0) AS slept_ns,
        coalesce(max(least(c.ts_ns + c.dur_ns, g.to_ns) - greatest(c.ts_ns, g.from_ns))
            FILTER (WHERE c.class <> 'process' AND coalesce(c.action, '') NOT IN ('sleep', 'child_wait')), 0) AS waited_ns
    FROM gaps AS g
    LEFT JOIN made AS c ON c.ts_ns < g.to_ns AND c.ts_ns + c.dur_ns > g.from_ns AND c.dur_ns >= $min_gap_ns / 10 AND NOT c.ends_gap
    GROUP BY g.gap, g.from_ns, g.to_ns, g.ns
), shorts AS (
    SELECT g.gap, sum(s.short_ns) AS short_ns
    FROM gaps AS g
    CROSS JOIN clock AS k
    INNER JOIN steps AS s ON s.step >= (g.from_ns - k.started_ns) // k.step_ns AND s.step <= (g.to_ns - k.started_ns) // k.step_ns
    GROUP BY g.gap
), outside AS (
    -- A line that was not understood may be a call that lasts as long as the gap.
    SELECT CASE WHEN sum(c.total - c.understood + c.lost) > 0 THEN 'lost' ELSE 'compute' END AS variant FROM captures AS c WHERE c.about = 'calls'
), used AS (
    -- CPU time of all threads; empty: not recorded, or not of all.
    SELECT CASE WHEN count(p.user_ns) = count(*) THEN sum(p.user_ns + p.system_ns) END AS cpu_ns, count(p.user_ns) AS known FROM processes AS p
), judged AS (
    -- Where short calls of other kinds, or several waits, take most of the gap, other rules say so.
    SELECT w.gap, w.from_ns, w.to_ns, w.ns, CASE WHEN 2 * w.slept_ns > w.ns THEN 'sleep' WHEN 2 * w.waited_ns > w.ns THEN 'wait'
        WHEN coalesce(s.short_ns, 0) + w.longer_ns <= (1 - $min_computed) * w.ns THEN o.variant END AS variant
    FROM waits AS w
    CROSS JOIN outside AS o
    LEFT JOIN shorts AS s ON s.gap = w.gap
), summed AS (
    SELECT variant, count(*) AS gaps, CAST(sum(ns) AS BIGINT) AS cost_ns, max(ns) AS longest_ns, arg_max(from_ns, ns) AS from_ns,
        arg_max(to_ns, ns) AS to_ns
    FROM judged
    WHERE variant IS NOT NULL
    GROUP BY variant
), lone AS (
    -- The program `sleep` by itself does what it was asked for.
    SELECT CASE WHEN count(*) = 1 AND max(p.comm) = 'sleep' THEN 1 ELSE 0 END AS is_sleep FROM processes AS p
), found AS (
    SELECT s.*, k.started_ns, k.elapsed_ns,
        CASE s.variant WHEN 'sleep' THEN CASE WHEN o.is_sleep = 1 THEN 0 ELSE s.cost_ns END WHEN 'compute' THEN CASE WHEN u.known > 0 THEN least(s.cost_ns, k.busy_ns) END WHEN 'wait' THEN 0 END AS gain_ns
    FROM summed AS s
    CROSS JOIN clock AS k
    CROSS JOIN lone AS o
    CROSS JOIN used AS u
    WHERE s.cost_ns >= $min_share * k.elapsed_ns AND (s.variant <> 'compute' OR coalesce(u.cpu_ns, s.cost_ns) >= $min_computed * s.cost_ns)
)
SELECT
    CASE f.variant WHEN 'sleep' THEN 'sleeps' WHEN 'wait' THEN 'waits' WHEN 'compute' THEN 'computes' END AS subject,
    CASE WHEN f.variant = 'lost' THEN 'unknown' WHEN f.variant IS NOT NULL THEN 'finding' WHEN (SELECT count(*) FROM clock) = 0 THEN 'unknown' ELSE 'ok' END AS status,
    round(1e2 * f.cost_ns / f.elapsed_ns, 1) AS value,
    round(1e2 * $min_share, 1) AS limit_value,
    f.cost_ns,
    f.gain_ns,
    CASE f.variant WHEN 'sleep' THEN 'high' WHEN 'wait' THEN 'low' WHEN 'compute' THEN 'medium' END AS certainty,
    CASE f.variant WHEN 'compute' THEN 'time/user_code,time/kernel_work,calls/storm,memory/new_memory,time/cpu_wait,locks/futexes,time/handover'
        WHEN 'wait' THEN 'time/peer,locks/futexes,locks/file_locks,network/delayed_ack' END AS explained_by,
    round((f.from_ns - f.started_ns) / 1e9, 6) AS from_s,
    round((f.to_ns - f.started_ns) / 1e9, 6) AS until_s,
    f.variant,
    f.gaps,
    f.longest_ns,
    t.busy_ns
FROM totals AS t
LEFT JOIN found AS f ON f.gaps > 0
