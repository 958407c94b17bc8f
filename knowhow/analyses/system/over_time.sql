-- Machine load over time
-- What the whole machine did between readings, usually one per second: CPUs, run queue, memory, paging, network and pressure.
-- needs:  system_metrics, recording
-- column: from_s DOUBLE            Time of the previous reading, since the start of the recording [s].
-- column: until_s DOUBLE           Time of the reading [s].
-- column: user DOUBLE              Share of the time of all CPUs: programs, including those with low priority [%].
-- column: system DOUBLE            The kernel [%].
-- column: irq DOUBLE               Interrupts and softirqs [%].
-- column: iowait DOUBLE            Idle while a thread waited for a disk [%].
-- column: steal DOUBLE             Taken by the host of a virtual machine [%].
-- column: idle DOUBLE              Idle otherwise [%].
-- column: running DOUBLE           Threads that were running or waiting for a CPU, at the end.
-- column: available_bytes DOUBLE   Memory that programs could still get, at the end [B].
-- column: dirty_bytes DOUBLE       Pages of files that are not written back, at the end [B].
-- column: major_faults DOUBLE      Page faults that waited for a disk.
-- column: read_bytes DOUBLE        Read from all block devices [B].
-- column: written_bytes DOUBLE     Written to all block devices [B].
-- column: network_bytes DOUBLE     Received and sent by all interfaces except `lo` [B].
-- column: cpu_pressure DOUBLE      Share of the time in which at least one thread waited for a CPU; empty: not reported by this kernel [%].
-- column: memory_pressure DOUBLE   Share of the time in which at least one thread waited for memory [%].
-- column: io_pressure DOUBLE       Share of the time in which at least one thread waited for a disk [%].
-- heads_ja:  running=実行・待機スレッド数
-- chart:  lines x=from_s x2=until_s y=user,system,irq,iowait,steal title="Time of all CPUs [%]" title_ja="全 CPU の時間の割合 [%]"
-- tags:   time, cpu
WITH wanted AS (
    SELECT m.ts_ns, m.source, m.object, m.metric, m.value,
        row_number() OVER (PARTITION BY m.source, m.object, m.metric ORDER BY m.ts_ns) AS reading,
        m.value - lag(m.value, 1, m.value) OVER (PARTITION BY m.source, m.object, m.metric ORDER BY m.ts_ns) AS grown,
        lag(m.ts_ns, 1, m.ts_ns) OVER (PARTITION BY m.source, m.object, m.metric ORDER BY m.ts_ns) AS before_ns
    FROM system_metrics AS m
    WHERE m.value IS NOT NULL AND (m.object IS NULL OR m.source IN ('network', 'pressure'))
), steps AS (
    SELECT w.reading,
        min(w.before_ns) FILTER (WHERE w.source = 'cpu') AS from_ns,
        max(w.ts_ns) FILTER (WHERE w.source = 'cpu') AS until_ns,
        sum(w.grown) FILTER (WHERE w.source = 'cpu' AND w.metric IN ('user', 'nice', 'system', 'irq', 'softirq', 'iowait', 'steal', 'idle')) AS all_ns,
        sum(w.grown) FILTER (WHERE w.source = 'cpu' AND w.metric IN ('user', 'nice')) AS user_ns,
        sum(w.grown) FILTER (WHERE w.source = 'cpu' AND w.metric = 'system') AS system_ns,
        sum(w.grown) FILTER (WHERE w.source = 'cpu' AND w.metric IN ('irq', 'softirq')) AS irq_ns,
        sum(w.grown) FILTER (WHERE w.source = 'cpu' AND w.metric = 'iowait') AS iowait_ns,
        sum(w.grown) FILTER (WHERE w.source = 'cpu' AND w.metric = 'steal') AS steal_ns,
        sum(w.grown) FILTER (WHERE w.source = 'cpu' AND w.metric = 'idle') AS idle_ns,
        max(w.value) FILTER (WHERE w.metric = 'procs_running') AS running,
        max(w.value) FILTER (WHERE w.metric = 'MemAvailable') AS available_bytes,
        max(w.value) FILTER (WHERE w.metric = 'Dirty') AS dirty_bytes,
        max(w.grown) FILTER (WHERE w.metric = 'pgmajfault') AS major_faults,
        max(w.grown) FILTER (WHERE w.metric = 'pgpgin') AS read_bytes,
        max(w.grown) FILTER (WHERE w.metric = 'pgpgout') AS written_bytes,
        sum(w.grown) FILTER (WHERE w.source = 'network' AND w.object <> 'lo' AND w.metric IN ('received_bytes', 'sent_bytes')) AS network_bytes,
        max(1e2 * w.grown / (w.ts_ns - w.before_ns)) FILTER (WHERE w.object = 'cpu' AND w.metric = 'some') AS cpu_pressure,
        max(1e2 * w.grown / (w.ts_ns - w.before_ns)) FILTER (WHERE w.object = 'memory' AND w.metric = 'some') AS memory_pressure,
        max(1e2 * w.grown / (w.ts_ns - w.before_ns)) FILTER (WHERE w.object = 'io' AND w.metric = 'some') AS io_pressure
    FROM wanted AS w
    WHERE w.before_ns < w.ts_ns
    GROUP BY w.reading
)
SELECT
    round((s.from_ns - r.started_ns) / 1e9, 3) + 0e0 AS from_s,
    round((s.until_ns - r.started_ns) / 1e9, 3) AS until_s,
    CASE WHEN s.all_ns > 0 THEN round(1e2 * s.user_ns / s.all_ns, 2) END AS user,
    CASE WHEN s.all_ns > 0 THEN round(1e2 * s.system_ns / s.all_ns, 2) END AS system,
    CASE WHEN s.all_ns > 0 THEN round(1e2 * s.irq_ns / s.all_ns, 2) END AS irq,
    CASE WHEN s.all_ns > 0 THEN round(1e2 * s.iowait_ns / s.all_ns, 2) END AS iowait,
    CASE WHEN s.all_ns > 0 THEN round(1e2 * s.steal_ns / s.all_ns, 2) END AS steal,
    CASE WHEN s.all_ns > 0 THEN round(1e2 * s.idle_ns / s.all_ns, 2) END AS idle,
    s.running,
    s.available_bytes,
    s.dirty_bytes,
    s.major_faults,
    s.read_bytes,
    s.written_bytes,
    s.network_bytes,
    round(s.cpu_pressure, 2) AS cpu_pressure,
    round(s.memory_pressure, 2) AS memory_pressure,
    round(s.io_pressure, 2) AS io_pressure
FROM steps AS s
CROSS JOIN recording AS r
ORDER BY s.reading
