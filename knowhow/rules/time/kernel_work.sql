-- Much time in the kernel
-- The kernel works on behalf of the command for much of the time: it copies data, handles page faults, looks up names.
-- needs:  critical_path, samples, kernel_activities
-- param:  min_share DOUBLE = 0.5          Minimum share of the time of the command, without waits for a CPU, that the kernel works for it.
-- param:  min_time_ns BIGINT = 500000000  Minimum time that it does so [ns].
-- param:  least_samples BIGINT = 40       With fewer samples on the critical path nothing is said.
-- column: subject VARCHAR       What the kernel does most: the activity and the call, or page faults.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Share of the time of the command, without waits for a CPU, that its critical path was in the kernel, on a CPU [%].
-- column: limit_value DOUBLE    Threshold: reported from this value on [%].
-- column: cost_ns BIGINT        Time in the kernel on a CPU along the critical path, by samples [ns].
-- column: gain_ns BIGINT        Empty: how much of it could be saved is not known [ns].
-- column: certainty VARCHAR     low: that the kernel works is sure, but not that it could do less.
-- column: variant VARCHAR       memory, data, names, network, pipes, processes, waiting or other.
-- column: explained_by VARCHAR  Rules whose findings explain this one.
-- column: kind_share DOUBLE     Share of this time that is spent on what the variant names [%].
-- column: entry VARCHAR         The system call with most of that, or `page fault`, or another way into the kernel.
-- column: entry_share DOUBLE    Share of this time in that call [%].
-- column: activity VARCHAR      What the kernel did there most.
-- column: function VARCHAR      The function of the kernel that was sampled most often there.
-- says: finding.memory en     The kernel works for the command for {value} of its time, {cost_ns}: {kind_share} of that on memory (page faults, mappings), mostly in {entry} ({entry_share}): {activity}.
-- says: finding.memory ja     実行時間の {value}（{cost_ns}）をカーネルが使っています。うち {kind_share} がメモリ（ページフォールト、マッピング）で、主に {entry:ja}（{entry_share}）の{activity:ja}です。
-- says: finding.data en       The kernel works for the command for {value} of its time, {cost_ns}: {kind_share} of that on reading and writing files, mostly in {entry} ({entry_share}): {activity}.
-- says: finding.data ja       実行時間の {value}（{cost_ns}）をカーネルが使っています。うち {kind_share} がファイルの読み書きで、主に {entry:ja}（{entry_share}）の{activity:ja}です。
-- says: finding.names en      The kernel works for the command for {value} of its time, {cost_ns}: {kind_share} of that on file names and attributes, mostly in {entry} ({entry_share}): {activity}.
-- says: finding.names ja      実行時間の {value}（{cost_ns}）をカーネルが使っています。うち {kind_share} がファイルの名前と属性で、主に {entry:ja}（{entry_share}）の{activity:ja}です。
-- says: finding.network en    The kernel works for the command for {value} of its time, {cost_ns}: {kind_share} of that on the network, mostly in {entry} ({entry_share}): {activity}.
-- says: finding.network ja    実行時間の {value}（{cost_ns}）をカーネルが使っています。うち {kind_share} がネットワークで、主に {entry:ja}（{entry_share}）の{activity:ja}です。
-- says: finding.pipes en      The kernel works for the command for {value} of its time, {cost_ns}: {kind_share} of that on pipes, mostly in {entry} ({entry_share}): {activity}.
-- says: finding.pipes ja      実行時間の {value}（{cost_ns}）をカーネルが使っています。うち {kind_share} がパイプで、主に {entry:ja}（{entry_share}）の{activity:ja}です。
-- says: finding.processes en  The kernel works for the command for {value} of its time, {cost_ns}: {kind_share} of that on starting and ending processes and threads, mostly in {entry} ({entry_share}): {activity}.
-- says: finding.processes ja  実行時間の {value}（{cost_ns}）をカーネルが使っています。うち {kind_share} がプロセスとスレッドの開始と終了で、主に {entry:ja}（{entry_share}）の{activity:ja}です。
-- says: finding.waiting en    The kernel works for the command for {value} of its time, {cost_ns}: {kind_share} of that on waiting and waking others, mostly in {entry} ({entry_share}): {activity}.
-- says: finding.waiting ja    実行時間の {value}（{cost_ns}）をカーネルが使っています。うち {kind_share} が待ち合わせとほかのスレッドを起こす処理で、主に {entry:ja}（{entry_share}）の{activity:ja}です。
-- says: finding.other en      The kernel works for the command for {value} of its time, {cost_ns}, mostly in {entry} ({entry_share}): {activity}, {function}.
-- says: finding.other ja      実行時間の {value}（{cost_ns}）をカーネルが使っています。主に {entry:ja}（{entry_share}）の{activity:ja}、{function} です。
-- says: ok en                 The kernel works for the command for {value} of its time, {cost_ns}.
-- says: ok ja                 カーネルの処理は実行時間の {value}（{cost_ns}）です。
-- says: unknown en            There are too few CPU samples along the critical path of the command.
-- says: unknown ja            コマンドのクリティカルパス上の CPU 時間のサンプルが足りません。
-- at_least: duration min_time_ns
-- evidence: cpu/kernel
-- tags:   time, cpu, calls
WITH path AS (
    -- Waits for a CPU say how busy the machine is, not what the command does.
    SELECT sum(p.dur_ns) AS all_ns FROM critical_path AS p WHERE p.part <> 'runnable'
), marks AS (
    -- A sample lies on the path where a piece of its thread that ran is under way.
    SELECT s.task_id, s.ts_ns AS at_ns, 0 AS step, 1 AS is_sample, s.period_ns, s.in_kernel, s.call, s.action, s.class, s.kernel_stack_id FROM samples AS s
    UNION ALL
    SELECT p.task_id, p.ts_ns, 1, 0, 0, false, NULL, NULL, NULL, NULL FROM critical_path AS p WHERE p.part = 'running'
    UNION ALL
    SELECT p.task_id, p.ts_ns + p.dur_ns, -1, 0, 0, false, NULL, NULL, NULL, NULL FROM critical_path AS p WHERE p.part = 'running'
), met AS (
    SELECT m.at_ns, m.is_sample, m.period_ns, m.in_kernel, m.call, m.action, m.class, m.kernel_stack_id,
        sum(m.step) OVER (ORDER BY m.task_id, m.at_ns) AS under_way
    FROM marks AS m
), on_path AS (
    SELECT m.period_ns, m.in_kernel, m.call, m.action, m.class, k.entry, coalesce(k.activity, 'other') AS activity, coalesce(k.function, '?') AS function
    FROM met AS m LEFT JOIN kernel_activities AS k ON k.stack_id = m.kernel_stack_id
    -- Without what the recorder itself adds.
    WHERE m.is_sample = 1 AND m.under_way > 0 AND coalesce(k.activity, '') <> 'tracing'
), whole AS (
    SELECT count(*) AS number, coalesce(sum(CASE WHEN o.in_kernel THEN o.period_ns END), 0) AS kernel_ns FROM on_path AS o
), kinds AS (
    SELECT o.activity, o.function, o.period_ns, CASE WHEN o.entry = 'page fault' THEN 'page fault' ELSE coalesce(o.call, o.entry, 'other') END AS entry,
        CASE
            WHEN o.entry = 'page fault' OR o.class IN ('map', 'memory') THEN 'memory'
            WHEN o.activity = 'network' OR o.class = 'socket' THEN 'network'
            WHEN o.activity = 'pipes' THEN 'pipes'
            WHEN o.class IN ('read', 'write', 'copy', 'sync') THEN 'data'
            WHEN o.class IN ('open', 'close', 'stat', 'dir', 'name', 'attr') THEN 'names'
            WHEN coalesce(o.action, '') = 'yield' OR o.class IN ('lock', 'wait', 'time', 'signal') THEN 'waiting'
            WHEN o.class = 'process' THEN 'processes'
            ELSE 'other'
        END AS kind
    FROM on_path AS o
    WHERE o.in_kernel
), by_kind AS (
    SELECT k.kind, sum(k.period_ns) AS ns FROM kinds AS k GROUP BY k.kind
), top_kind AS (
    SELECT arg_max(b.kind, b.ns) AS kind, max(b.ns) AS ns FROM by_kind AS b
), by_entry AS (
    SELECT k.entry, sum(k.period_ns) AS ns FROM kinds AS k INNER JOIN top_kind AS t ON t.kind = k.kind GROUP BY k.entry
), top_entry AS (
    SELECT arg_max(b.entry, b.ns) AS entry, max(b.ns) AS ns FROM by_entry AS b
), by_activity AS (
    SELECT k.activity, k.function, sum(k.period_ns) AS ns,
        sum(sum(k.period_ns)) OVER (PARTITION BY k.activity) AS activity_ns
    FROM kinds AS k INNER JOIN top_kind AS t ON t.kind = k.kind INNER JOIN top_entry AS e ON e.entry = k.entry
    GROUP BY k.activity, k.function
), top_activity AS (
    SELECT arg_max(b.activity, b.activity_ns) AS activity, arg_max(b.function, b.activity_ns + b.ns) AS function FROM by_activity AS b
), judged AS (
    SELECT w.kernel_ns, p.all_ns, t.kind, t.ns AS kind_ns, e.entry, e.ns AS entry_ns, a.activity, a.function,
        w.kernel_ns >= $min_time_ns AND w.kernel_ns >= $min_share * p.all_ns AS is_much
    FROM whole AS w CROSS JOIN path AS p CROSS JOIN top_kind AS t CROSS JOIN top_entry AS e CROSS JOIN top_activity AS a
    WHERE p.all_ns > 0 AND w.number >= $least_samples
)
SELECT
    CASE WHEN j.is_much THEN CASE WHEN j.entry = 'page fault' THEN 'page faults' ELSE concat(j.activity, ' in ', j.entry) END END AS subject,
    CASE WHEN j.kernel_ns IS NULL THEN 'unknown' WHEN j.is_much THEN 'finding' ELSE 'ok' END AS status,
    CASE WHEN j.all_ns > 0 THEN round(least(1e2, 1e2 * j.kernel_ns / j.all_ns), 1) END AS value,
    1e2 * $min_share AS limit_value,
    CAST(least(j.kernel_ns, j.all_ns) AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN j.is_much THEN 'low' END AS certainty,
    CASE WHEN j.is_much THEN j.kind END AS variant,
    CASE WHEN j.is_much THEN CASE j.kind
        WHEN 'memory' THEN 'memory/new_memory,calls/storm,memory/pressure,locks/contention,io/mapped_files,io/random_faults'
        WHEN 'data' THEN 'calls/storm,locks/contention,io/small_requests,io/rereads,io/seeks,io/sync_per_write,io/shared_file,time/polling,memory/pressure'
        WHEN 'names' THEN 'calls/storm,locks/contention,io/metadata_cost,io/failed_lookups,io/repeated_open,io/directory_stat,time/polling'
        WHEN 'processes' THEN 'processes/process_creation,locks/contention'
        ELSE 'calls/storm,locks/futexes,time/handover,time/polling,time/peer,locks/contention,io/failing_calls' END END AS explained_by,
    round(1e2 * j.kind_ns / j.kernel_ns, 1) AS kind_share,
    j.entry,
    round(1e2 * j.entry_ns / j.kernel_ns, 1) AS entry_share,
    j.activity,
    j.function
FROM (SELECT 1 AS one) AS o
LEFT JOIN judged AS j ON o.one = 1
