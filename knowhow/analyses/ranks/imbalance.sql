-- Imbalance between ranks
-- How unevenly time, calls and bytes are distributed among the ranks of a parallel job: maximum divided by mean, and which rank has the maximum.
-- needs:  rank_use
-- column: measure VARCHAR        The measure.
-- column: unit VARCHAR           Its unit: s, MB (of 1,000,000 bytes) or calls.
-- column: ranks BIGINT           Ranks for which it is known: a measure that is not known for all has no row.
-- column: mean DOUBLE            Mean over the ranks.
-- column: largest DOUBLE         Maximum.
-- column: imbalance DOUBLE       Maximum divided by mean: 1 is even, the number of ranks means that one has everything; empty: all have 0.
-- column: excess DOUBLE          Maximum minus mean: what an even distribution would take from that rank.
-- column: largest_rank INTEGER   The rank with the maximum; if there are several, the first.
-- column: largest_name VARCHAR   Name of its recording.
-- column: least DOUBLE           Minimum.
-- column: least_rank INTEGER     The rank with the minimum; if there are several, the first.
-- match:  measure
-- tags:   processes, time, calls, bytes
WITH measured AS (
    SELECT 1 AS place, 'elapsed time' AS measure, 's' AS unit, k.rank, k.name, k.elapsed_ns / 1e9 AS amount FROM rank_use AS k
    UNION ALL SELECT 2, 'time in calls', 's', k.rank, k.name, k.in_calls_ns / 1e9 FROM rank_use AS k
    UNION ALL SELECT 3, 'time in files', 's', k.rank, k.name, k.files_ns / 1e9 FROM rank_use AS k
    UNION ALL SELECT 4, 'time of waiting', 's', k.rank, k.name, k.wait_ns / 1e9 FROM rank_use AS k
    UNION ALL SELECT 5, 'CPU time', 's', k.rank, k.name, k.cpu_ns / 1e9 FROM rank_use AS k
    UNION ALL SELECT 6, 'bytes read', 'MB', k.rank, k.name, k.read_bytes / 1e6 FROM rank_use AS k
    UNION ALL SELECT 7, 'bytes written', 'MB', k.rank, k.name, k.written_bytes / 1e6 FROM rank_use AS k
    UNION ALL SELECT 8, 'calls', 'calls', k.rank, k.name, 1e0 * k.calls FROM rank_use AS k
), placed AS (
    SELECT m.*, row_number() OVER (PARTITION BY m.place ORDER BY m.amount DESC, m.rank) AS from_top,
        row_number() OVER (PARTITION BY m.place ORDER BY m.amount, m.rank) AS from_bottom
    FROM measured AS m
)
SELECT
    p.measure,
    p.unit,
    count(p.amount) AS ranks,
    round(avg(p.amount), 6) AS mean,
    round(max(p.amount), 6) AS largest,
    CASE WHEN max(p.amount) > 0 THEN round(max(p.amount) / avg(p.amount), 3) END AS imbalance,
    round(max(p.amount) - avg(p.amount), 6) AS excess,
    max(CASE WHEN p.from_top = 1 THEN p.rank END) AS largest_rank,
    max(CASE WHEN p.from_top = 1 THEN p.name END) AS largest_name,
    round(min(p.amount), 6) AS least,
    max(CASE WHEN p.from_bottom = 1 THEN p.rank END) AS least_rank
FROM placed AS p
GROUP BY p.place, p.measure, p.unit
HAVING count(p.amount) = count(*)
ORDER BY p.place
