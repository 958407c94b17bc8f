-- Memory pressure
-- The command waited for memory: its threads had to reclaim memory themselves, or it was killed for lack of memory.
-- needs:  memory_stalls, critical_path
-- param:  min_share DOUBLE = 0.05       Minimum share of the time of the command that it waits for memory.
-- param:  min_wait_ns BIGINT = 20000000 Minimum time that it waits [ns].
-- column: subject VARCHAR       Empty: it is about the command.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the time of the command that it waited for memory [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time that it waited for memory, along its critical path [ns].
-- column: gain_ns BIGINT        Potential saving [ns].
-- column: certainty VARCHAR     high.
-- column: variant VARCHAR       group (its control group is at its limit), machine, pieces (no contiguous memory), or killed.
-- column: urgent BOOLEAN        A process was killed.
-- column: stalls BIGINT         How often a thread waited, also off that path.
-- column: threads_ns BIGINT     Time that all threads together waited [ns].
-- column: pages BIGINT          Pages that they freed.
-- column: kills BIGINT          Processes that were killed for lack of memory.
-- says: finding.group en    The command waited {cost_ns} for memory, {value} of its time: its control group is at its limit. Its threads reclaimed {pages:page} in {stalls:stall}.
-- says: finding.group ja    メモリ待ちが {cost_ns}、実行時間の {value} あります。コントロールグループ（cgroup）が上限に達し、スレッド自身が {stalls} 回、{pages} ページを回収しました。
-- says: finding.machine en  The command waited {cost_ns} for memory, {value} of its time: the whole machine is short of memory. Its threads reclaimed {pages:page} in {stalls:stall}.
-- says: finding.machine ja  メモリ待ちが {cost_ns}、実行時間の {value} あります。マシン全体のメモリが足りず、スレッド自身が {stalls} 回、{pages} ページを回収しました。
-- says: finding.pieces en   The command waited {cost_ns} for contiguous memory, {value} of its time: pages were compacted {stalls:time}.
-- says: finding.pieces ja   連続したメモリの待ちが {cost_ns}、実行時間の {value} あります。ページの移動（コンパクション）が {stalls} 回ありました。
-- says: finding.killed en   {kills:process} of the command {kills?was|were} killed because memory was exhausted. Waits for memory before that: {stalls}, {threads_ns}.
-- says: finding.killed ja   メモリ不足のため、コマンドのプロセスが {kills} 個、強制終了されました。メモリ待ちは {stalls} 回、{threads_ns} です。
-- says: ok en               The command waited {cost_ns} for memory, {value} of its time.
-- says: ok ja               メモリ待ちは {cost_ns}、実行時間の {value} です。
-- says: unknown en          The recording does not contain waits for memory (`--what io,sched,memory`).
-- says: unknown ja          コマンドのメモリ待ちが記録にありません（`--what io,sched,memory`）。
-- at_least: duration min_wait_ns
-- evidence: memory/stalls
-- tags:   time, processes
WITH waits AS (
    SELECT s.task_id, s.ts_ns, s.ts_ns + s.dur_ns AS end_ns, s.dur_ns, s.kind, s.pages
    FROM memory_stalls AS s
    WHERE s.kind <> 'oom kill' AND s.task_id IS NOT NULL
), costs AS (
    -- Waits of the thread that the end of the command depends on. They do not overlap.
    SELECT w.kind, greatest(0, least(w.end_ns, c.ts_ns + c.dur_ns) - greatest(w.ts_ns, c.ts_ns)) AS ns
    FROM waits AS w
    INNER JOIN critical_path AS c ON c.task_id = w.task_id AND c.ts_ns < w.end_ns AND c.ts_ns + c.dur_ns > w.ts_ns
), path AS (
    SELECT sum(c.dur_ns) AS all_ns FROM critical_path AS c
), paid AS (
    SELECT coalesce(sum(c.ns), 0) AS ns, coalesce(sum(CASE WHEN c.kind = 'group reclaim' THEN c.ns ELSE 0 END), 0) AS group_ns,
        coalesce(sum(CASE WHEN c.kind = 'compaction' THEN c.ns ELSE 0 END), 0) AS pieces_ns
    FROM costs AS c
), taken AS (
    SELECT count(*) AS stalls, coalesce(sum(w.dur_ns), 0) AS threads_ns, coalesce(sum(w.pages), 0) AS pages FROM waits AS w
), killed AS (
    SELECT count(*) AS kills FROM memory_stalls AS s WHERE s.kind = 'oom kill'
), judged AS (
    SELECT p.all_ns, a.ns, t.stalls, t.threads_ns, t.pages, k.kills,
        k.kills > 0 OR (a.ns >= $min_wait_ns AND a.ns >= $min_share * p.all_ns) AS is_much,
        CASE WHEN k.kills > 0 THEN 'killed' WHEN 2 * a.group_ns >= a.ns THEN 'group' WHEN 2 * a.pieces_ns >= a.ns THEN 'pieces' ELSE 'machine' END AS variant
    FROM path AS p CROSS JOIN paid AS a CROSS JOIN taken AS t CROSS JOIN killed AS k
    WHERE p.all_ns > 0 OR k.kills > 0
)
SELECT
    CAST(NULL AS VARCHAR) AS subject,
    CASE WHEN j.ns IS NULL THEN 'unknown' WHEN j.is_much THEN 'finding' ELSE 'ok' END AS status,
    CASE WHEN j.all_ns > 0 THEN round(1e2 * j.ns / j.all_ns, 1) END AS value,
    1e2 * $min_share AS limit_value,
    CAST(j.ns AS BIGINT) AS cost_ns,
    CASE WHEN j.is_much THEN CAST(j.ns AS BIGINT) END AS gain_ns,
    CASE WHEN j.is_much THEN 'high' END AS certainty,
    CASE WHEN j.is_much THEN j.variant END AS variant,
    j.kills > 0 AS urgent,
    j.stalls,
    CAST(j.threads_ns AS BIGINT) AS threads_ns,
    CAST(j.pages AS BIGINT) AS pages,
    j.kills
FROM (SELECT 1 AS one) AS o
LEFT JOIN judged AS j ON o.one = 1
