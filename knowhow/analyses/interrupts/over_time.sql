-- Interrupts over time
-- Time and number of interrupts in each time step. A step without interrupts has no row.
-- needs:  interrupts, recording
-- param:  interval_s DOUBLE = 1.0 > 0   Length of a step; fractions allowed [s].
-- column: from_s DOUBLE       Start of the step, since the start of the recording [s].
-- column: until_s DOUBLE      End of the step [s].
-- column: hard BIGINT         Runs of device handlers.
-- column: vectors BIGINT      Interrupts of the CPUs' own timers and from other CPUs.
-- column: softirqs BIGINT     Runs of softirqs.
-- column: timers BIGINT       Runs of high-resolution timer functions.
-- column: hard_ns BIGINT      Time in device handlers [ns].
-- column: vector_ns BIGINT    Time in interrupts of the CPUs' own timers and from other CPUs [ns].
-- column: soft_ns BIGINT      Time in softirqs [ns].
-- column: timer_ns BIGINT     Time in high-resolution timer functions [ns].
-- column: latest_ns BIGINT    Longest time that a softirq waited until it ran [ns].
-- chart:  lines x=from_s x2=until_s y=hard_ns,vector_ns,soft_ns,timer_ns title="Time in interrupts" title_ja="割り込みの時間"
-- tags:   time, cpu
WITH step AS (
    SELECT started_ns, greatest(CAST(round(least($interval_s, 1e9) * 1e9) AS BIGINT), 1) AS step_ns
    FROM recording
), placed AS (
    SELECT CAST(floor((i.ts_ns - s.started_ns) / s.step_ns) AS BIGINT) AS number, i.kind, i.self_ns, i.delay_ns
    FROM interrupts AS i
    CROSS JOIN step AS s
), counted AS (
    SELECT number,
        count(*) FILTER (WHERE kind = 'hard') AS hard,
        count(*) FILTER (WHERE kind = 'vector') AS vectors,
        count(*) FILTER (WHERE kind = 'soft') AS softirqs,
        count(*) FILTER (WHERE kind = 'timer') AS timers,
        CAST(coalesce(sum(self_ns) FILTER (WHERE kind = 'hard'), 0) AS BIGINT) AS hard_ns,
        CAST(coalesce(sum(self_ns) FILTER (WHERE kind = 'vector'), 0) AS BIGINT) AS vector_ns,
        CAST(coalesce(sum(self_ns) FILTER (WHERE kind = 'soft'), 0) AS BIGINT) AS soft_ns,
        CAST(coalesce(sum(self_ns) FILTER (WHERE kind = 'timer'), 0) AS BIGINT) AS timer_ns,
        max(delay_ns) FILTER (WHERE kind = 'soft') AS latest_ns
    FROM placed
    GROUP BY number
)
SELECT round(c.number * s.step_ns / 1e9, 9) AS from_s, round((c.number + 1) * s.step_ns / 1e9, 9) AS until_s,
    c.hard, c.vectors, c.softirqs, c.timers, c.hard_ns, c.vector_ns, c.soft_ns, c.timer_ns, c.latest_ns
FROM counted AS c
CROSS JOIN step AS s
ORDER BY c.number
