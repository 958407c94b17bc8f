-- Machine load
-- What the whole machine did during the recording, including all other programs: CPUs, run queue, memory, paging, disks, network, pressure, and
-- the control group of the command.
-- needs:  system_metrics
-- column: source VARCHAR       cpu, load, memory, paging, disk, network, pressure, or cgroup.
-- column: object VARCHAR       CPU, disk, interface or resource; empty: the whole machine.
-- column: metric VARCHAR       Name of the number, as in the kernel if there is one; missing: this kernel has no such file.
-- column: unit VARCHAR         ns, B or count.
-- column: readings BIGINT      How often it was read.
-- column: total DOUBLE         For a counter: its increase.
-- column: per_second DOUBLE    For a counter: its increase per second.
-- column: share DOUBLE         For a time: its increase as a share of the elapsed time; for CPUs, 100 % is one CPU [%].
-- column: mean DOUBLE          For other values: mean of the readings.
-- column: least DOUBLE         The lowest reading.
-- column: most DOUBLE          The highest reading.
-- heads_ja:  source=分類
-- chart:  bars x=metric y=share color=source title="Share of the elapsed time" title_ja="経過時間に対する割合"
-- tags:   time, cpu
WITH summed AS (
    SELECT m.source, m.object, m.metric, m.unit, m.is_counter, count(*) AS readings,
        arg_max(m.value, m.ts_ns) - arg_min(m.value, m.ts_ns) AS total,
        max(m.ts_ns) - min(m.ts_ns) AS ns,
        avg(m.value) AS mean, min(m.value) AS least, max(m.value) AS most
    FROM system_metrics AS m
    GROUP BY m.source, m.object, m.metric, m.unit, m.is_counter
)
SELECT
    s.source,
    s.object,
    s.metric,
    s.unit,
    s.readings,
    CASE WHEN s.is_counter THEN s.total END AS total,
    CASE WHEN s.is_counter AND s.ns > 0 THEN round(s.total * 1e9 / s.ns, 3) END AS per_second,
    CASE WHEN s.is_counter AND s.ns > 0 AND s.unit = 'ns' THEN round(s.total * 1e2 / s.ns, 3) END AS share,
    CASE WHEN NOT s.is_counter THEN round(s.mean, 3) END AS mean,
    CASE WHEN NOT s.is_counter THEN s.least END AS least,
    CASE WHEN NOT s.is_counter THEN s.most END AS most
FROM summed AS s
ORDER BY s.source, s.object NULLS FIRST, s.metric
