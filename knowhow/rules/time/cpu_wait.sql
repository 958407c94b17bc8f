-- Waiting for a CPU
-- The command was ready to run but had no CPU: it has more threads than there are CPUs, or other programs use the CPUs.
-- needs:  critical_path, run_states, processes, environment
-- uses:   samples, stack_places, calls
-- param:  min_share DOUBLE = 0.1        Minimum share of the time of the command that it waits for a CPU.
-- param:  min_wait_ns BIGINT = 20000000 Minimum time that it waits [ns].
-- param:  min_used DOUBLE = 0.8         Share of the time of all CPUs from which on its own threads are taken to fill them.
-- column: subject VARCHAR       Empty: it is about the command.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the time of the command that it waited for a CPU [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time that it waited for a CPU, along its critical path [ns].
-- column: gain_ns BIGINT        The time that it waited, where its threads are bound to one CPU (sched_setaffinity); empty where they only happened to run on one; 0 where others had the CPUs, as no change of the program saves that; empty where its own threads had them [ns].
-- column: certainty VARCHAR     high where others had the CPUs; medium where its own threads had.
-- column: variant VARCHAR       one, own or others.
-- column: circumstance BOOLEAN  Others had the CPUs: that says nothing of the command.
-- column: used DOUBLE           Share of the time of all CPUs that its threads took [%].
-- column: used_of_one DOUBLE    Share of the time of one CPU that its threads took [%].
-- column: place VARCHAR         Function of the program in which its threads were sampled most often, and what it calls; `code that is not known` without samples.
-- column: waiter VARCHAR        Program whose threads waited most of this time.
-- column: cpus BIGINT           CPUs of the machine.
-- column: threads BIGINT        Number of its threads, one after another or together.
-- says: finding.one en     The command waited {cost_ns} for a CPU, {value} of its time: its {threads:thread} all ran on one of {cpus:CPU} and used {used_of_one} of its time.
-- says: finding.one ja     CPU 待ちが {cost_ns}、実行時間の {value} あります。{threads} 個のスレッドがすべて {cpus} 個のうち 1 個の CPU で動き、その時間の {used_of_one} を使っています。
-- says: finding.own en     The command waited {cost_ns} for a CPU, {value} of its time, mostly {waiter}: its own {threads:thread} used {used} of the time of {cpus:CPU}, mostly in {place}.
-- says: finding.own ja     CPU 待ちが {cost_ns}、実行時間の {value} あり、最も長く待ったのは {waiter} です。コマンド自身の {threads} スレッドが {cpus} 個の CPU の時間の {used} を使い、最も多いのは {place:ja} です。
-- says: finding.others en  The command waited {cost_ns} for a CPU, {value} of its time, mostly {waiter}, although its threads used only {used} of the time of {cpus:CPU}: other programs were running. Times measured now are longer than on an idle machine.
-- says: finding.others ja  CPU 待ちが {cost_ns}、実行時間の {value} あり、最も長く待ったのは {waiter} です。しかしコマンド自身が使ったのは {cpus} 個の CPU の時間の {used} だけで、ほかのプログラムが CPU を使っていました。測定された時間は、単独で実行した場合より長くなっています。
-- says: ok en              The command waited {cost_ns} for a CPU, {value} of its time.
-- says: ok ja              CPU 待ちは {cost_ns}、実行時間の {value} です。
-- says: unknown en         The recording does not show when the threads of a command ran.
-- says: unknown ja         コマンドのスレッドの実行時刻が記録にありません。
-- at_least: duration min_wait_ns
-- evidence: time/waits
-- tags:   time, processes, cpu
WITH path AS (
    SELECT sum(p.dur_ns) AS all_ns, sum(CASE WHEN p.part = 'runnable' THEN p.dur_ns ELSE 0 END) AS wait_ns
    FROM critical_path AS p
), programs AS (
    SELECT r.comm, sum(p.dur_ns) AS ns
    FROM critical_path AS p INNER JOIN processes AS r ON r.task_id = p.task_id
    WHERE p.part = 'runnable'
    GROUP BY r.comm
), waiters AS (
    SELECT arg_max(p.comm, p.ns) AS comm FROM programs AS p
), lives AS (
    SELECT sum(t.end_ts_ns - t.start_ts_ns) AS lived_ns, count(*) AS threads FROM processes AS t WHERE t.end_ts_ns IS NOT NULL
), away AS (
    SELECT sum(r.dur_ns) AS away_ns
    FROM run_states AS r INNER JOIN processes AS t ON t.task_id = r.task_id
    WHERE t.end_ts_ns IS NOT NULL
), places AS (
    SELECT count(DISTINCT r.cpu) AS cpus_met, count(DISTINCT r.task_id) AS threads_met
    FROM run_states AS r INNER JOIN processes AS t ON t.task_id = r.task_id
    WHERE r.cpu IS NOT NULL
), machine AS (
    SELECT max(CAST(e.value AS BIGINT)) AS cpus
    FROM environment AS e
    WHERE e.section = 'cpu' AND e.name = 'online' AND regexp_extract(e.value, '^[0-9]+$') <> ''
), met AS (
    SELECT coalesce(p.function, regexp_extract(p.object, '[^/]*$')) AS function, p.called, count(*) AS number
    FROM samples AS s INNER JOIN stack_places AS p ON p.stack_id = s.stack_id
    GROUP BY coalesce(p.function, regexp_extract(p.object, '[^/]*$')), p.called
), top AS (
    SELECT arg_max(concat(m.function, CASE WHEN m.called IS NULL THEN '' ELSE concat(' (', m.called, ')') END), m.number) AS place
    FROM met AS m
    WHERE m.function IS NOT NULL
), judged AS (
    SELECT CAST(p.wait_ns AS BIGINT) AS wait_ns, p.all_ns, m.cpus > 1 AND o.cpus_met = 1 AND o.threads_met > 1 AS keeps_to_one, l.threads, m.cpus,
        1e0 * (l.lived_ns - coalesce(a.away_ns, 0)) / (p.all_ns * m.cpus) AS used,
        p.wait_ns >= $min_wait_ns AND p.wait_ns >= $min_share * p.all_ns AS is_long
    FROM path AS p CROSS JOIN lives AS l CROSS JOIN away AS a CROSS JOIN machine AS m CROSS JOIN places AS o
    WHERE p.all_ns > 0 AND m.cpus > 0
), bound AS (
    SELECT count(*) AS calls FROM calls AS c WHERE c.action = 'affinity' AND c.errno IS NULL
), decided AS (
    SELECT d.*, CASE WHEN d.keeps_to_one AND d.used * d.cpus >= $min_used THEN 'one' WHEN d.used < $min_used THEN 'others' ELSE 'own' END AS variant
    FROM judged AS d
)
SELECT
    CAST(NULL AS VARCHAR) AS subject,
    CASE WHEN j.wait_ns IS NULL THEN 'unknown' WHEN j.is_long THEN 'finding' ELSE 'ok' END AS status,
    round(1e2 * j.wait_ns / j.all_ns, 1) AS value,
    1e2 * $min_share AS limit_value,
    j.wait_ns AS cost_ns,
    CASE j.variant WHEN 'one' THEN CASE WHEN b.calls > 0 THEN j.wait_ns END WHEN 'others' THEN CAST(0 AS BIGINT) END AS gain_ns,
    CASE WHEN j.is_long THEN CASE WHEN j.variant = 'others' THEN 'high' ELSE 'medium' END END AS certainty,
    CASE WHEN j.is_long THEN j.variant END AS variant,
    j.variant = 'others' AS circumstance,
    round(1e2 * j.used, 1) AS used,
    round(1e2 * j.used * j.cpus, 1) AS used_of_one,
    coalesce((SELECT t.place FROM top AS t), 'code that is not known') AS place,
    CASE WHEN j.is_long THEN coalesce((SELECT w.comm FROM waiters AS w), '?') END AS waiter,
    j.cpus,
    CAST(j.threads AS BIGINT) AS threads
FROM (SELECT 1 AS one) AS o
CROSS JOIN bound AS b
LEFT JOIN decided AS j ON o.one = 1
