-- Programs run one after another
-- A process starts the same program again and again and waits for each before it starts the next, although nothing else runs in the meantime.
-- needs:  processes, totals, environment
-- uses:   critical_path
-- param:  min_share DOUBLE = 0.5           Minimum share of the elapsed time that these programs run.
-- param:  min_time_ns BIGINT = 200000000   Minimum time that they run [ns].
-- param:  min_mean_ns BIGINT = 50000000    Programs that run for less are a matter of process creation [ns].
-- param:  most_busy DOUBLE = 0.2           Share of their time on a CPU, or of the critical path, up to which they mostly wait.
-- param:  most_overlap DOUBLE = 1.1        Sum of their times over the time from the first start to the last end, up to which they run one by one.
-- column: subject VARCHAR       The program, and the one that starts it.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the elapsed time that they run [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time that they run, one after another [ns].
-- column: gain_ns BIGINT        Potential saving, if all ran at the same time; empty where they compute, or may: then it depends on the CPUs and on what they need of each other; and of sleep: then on what it waits for [ns].
-- column: certainty VARCHAR     low: whether one needs what another has made, the recording cannot tell; medium for sleep.
-- column: variant VARCHAR       sleep (the program is sleep), runs, or logged (it is not known how much they compute).
-- column: explained_by VARCHAR  Rules whose findings explain this one: programs that wait for a timer need not run at the same time, but stop to wait.
-- column: process INTEGER       Process id of the one that starts them.
-- column: programs BIGINT       Number of calls.
-- column: mean_ns BIGINT        How long one runs, on average [ns].
-- column: program VARCHAR       The program.
-- column: busy DOUBLE           Share of their time that they were on a CPU [%].
-- column: cpus BIGINT           CPUs of the machine.
-- column: waits_in VARCHAR      The system call in which the command waits longest along its critical path; `no call`: it does not, or it is not known.
-- column: busiest VARCHAR       The program of the command with the most CPU time: often one that these start.
-- column: busiest_ns BIGINT     Its CPU time [ns].
-- says: finding.runs en   {program} is started {programs:time}, one after another, and runs for {mean_ns} each: {cost_ns}, {value} of the time. It is on a CPU for {busy} of that, on a machine with {cpus:CPU}. {busiest} uses the most CPU time of all programs, {busiest_ns}. The command waits longest in {waits_in}. If the runs are independent, they can run in parallel.
-- says: finding.runs ja   {program} を {programs} 回、1 つずつ順に実行しています。1 回 {mean_ns}、合計 {cost_ns}（時間の {value}）です。そのうち CPU を使っているのは {busy}、このマシンの CPU は {cpus} 個です。CPU 時間が最も長いプログラムは {busiest}（{busiest_ns}）、最も長く待つのは {waits_in:ja} です。互いに依存しなければ、同時に実行できます。
-- says: finding.logged en {program} is started {programs:time}, one after another, and runs for {mean_ns} each: {cost_ns}, {value} of the time. How much of it is computing was not recorded. If the runs are independent, they can run in parallel; the machine has {cpus:CPU}.
-- says: finding.logged ja {program} を {programs} 回、1 つずつ順に実行しています。1 回 {mean_ns}、合計 {cost_ns}（時間の {value}）です。そのうち計算している時間は記録にありません。このマシンの CPU は {cpus} 個です。互いに依存しなければ、同時に実行できます。
-- says: finding.sleep en  sleep is started {programs:time}, {mean_ns} each: {cost_ns}, {value} of the time, in which no work is done.
-- says: finding.sleep ja  sleep を {programs} 回、1 回 {mean_ns} 実行しています。何もしない時間は合計 {cost_ns}（時間の {value}）です。
-- says: ok en             No program is started again and again, one after another, for much of the time.
-- says: ok ja             時間の多くを占めるほど、同じプログラムを 1 つずつ順に実行しているものはありません。
-- says: unknown en        The recording does not show when processes started and ended.
-- says: unknown ja        プロセスの開始と終了の時刻が記録にありません。
-- at_least: thread_time min_time_ns
-- evidence: processes/lifecycle
-- tags:   time, processes
WITH children AS (
    SELECT p.comm, p.ppid, p.start_ts_ns, p.end_ts_ns, p.end_ts_ns - p.start_ts_ns AS ns, p.user_ns + p.system_ns AS cpu_ns
    FROM processes AS p
    WHERE p.tid = p.pid AND p.ppid IS NOT NULL AND p.end_ts_ns IS NOT NULL AND p.comm IS NOT NULL AND p.execs > 0
), grouped AS (
    SELECT c.comm, c.ppid, count(*) AS programs, sum(c.ns) AS ns, max(c.ns) AS longest_ns, sum(c.cpu_ns) AS cpu_ns,
        max(c.end_ts_ns) - min(c.start_ts_ns) AS span_ns
    FROM children AS c
    GROUP BY c.comm, c.ppid
    HAVING count(*) >= 2
), machine AS (
    SELECT greatest(1, coalesce(max(CAST(e.value AS BIGINT)), 1)) AS cpus
    FROM environment AS e
    WHERE e.section = 'cpu' AND e.name = 'online' AND regexp_extract(e.value, '^[0-9]+$') <> ''
), parents AS (
    SELECT p.pid, min(p.comm) AS comm FROM processes AS p WHERE p.tid = p.pid GROUP BY p.pid
), waits AS (
    SELECT c.call, sum(c.dur_ns) AS ns FROM critical_path AS c WHERE c.cause IS NOT NULL AND c.call IS NOT NULL GROUP BY c.call
), by_program AS (
    SELECT p.comm, CAST(sum(p.user_ns + p.system_ns) AS BIGINT) AS ns FROM processes AS p WHERE p.comm IS NOT NULL GROUP BY p.comm
), path AS (
    -- Also what the programs that these start do.
    SELECT coalesce(1e0 * sum(CASE WHEN c.cause IS NULL THEN c.dur_ns ELSE 0 END) / greatest(1, sum(c.dur_ns)), 0) AS busy FROM critical_path AS c
), judged AS (
    SELECT g.*, m.cpus, t.elapsed_ns, p.comm AS parent, CASE WHEN g.comm = 'sleep' THEN 'sleep' WHEN g.cpu_ns IS NULL THEN 'logged' ELSE 'runs' END AS variant,
        CASE WHEN g.comm <> 'sleep' AND g.cpu_ns <= $most_busy * g.ns AND a.busy <= $most_busy
            THEN greatest(0, g.ns - greatest(g.longest_ns, g.cpu_ns // m.cpus)) END AS gain_ns
    FROM grouped AS g
    CROSS JOIN machine AS m
    CROSS JOIN totals AS t
    CROSS JOIN path AS a
    LEFT JOIN parents AS p ON p.pid = g.ppid
    WHERE g.ns >= $min_time_ns AND g.ns >= $min_share * t.elapsed_ns AND g.ns >= g.programs * $min_mean_ns AND g.ns <= $most_overlap * g.span_ns
), endless AS (
    -- Programs of one name of which no end is known, so that they may have run one after the other or together.
    SELECT p.comm, p.ppid FROM processes AS p
    WHERE p.tid = p.pid AND p.ppid IS NOT NULL AND p.execs > 0
    GROUP BY p.comm, p.ppid
    HAVING count(*) >= 2 AND count(p.end_ts_ns) = 0
), ends AS (
    SELECT count(*) AS unknown_ends FROM endless AS e
)
SELECT
    CASE WHEN j.ns IS NOT NULL THEN concat(j.comm, CASE WHEN j.parent IS NOT NULL THEN concat(' by ', j.parent, ' ', CAST(j.ppid AS VARCHAR)) ELSE '' END) END AS subject,
    CASE WHEN j.ns IS NOT NULL THEN 'finding' WHEN e.unknown_ends > 0 OR t.calls = 0 THEN 'unknown' ELSE 'ok' END AS status,
    round(1e2 * j.ns / j.elapsed_ns, 1) AS value,
    1e2 * $min_share AS limit_value,
    CAST(j.ns AS BIGINT) AS cost_ns,
    CAST(j.gain_ns AS BIGINT) AS gain_ns,
    CASE WHEN j.variant = 'sleep' THEN 'medium' WHEN j.variant IS NOT NULL THEN 'low' END AS certainty,
    j.variant,
    CASE WHEN j.variant <> 'sleep' THEN 'time/polling' END AS explained_by,
    j.ppid AS process,
    j.programs,
    CAST(j.ns // j.programs AS BIGINT) AS mean_ns,
    j.comm AS program,
    round(1e2 * j.cpu_ns / j.ns, 1) AS busy,
    j.cpus,
    coalesce((SELECT arg_max(w.call, w.ns) FROM waits AS w), 'no call') AS waits_in,
    (SELECT arg_max(b.comm, b.ns) FROM by_program AS b) AS busiest,
    (SELECT max(b.ns) FROM by_program AS b) AS busiest_ns
FROM ends AS e
CROSS JOIN totals AS t
LEFT JOIN judged AS j ON j.ns > 0
ORDER BY cost_ns DESC, subject
