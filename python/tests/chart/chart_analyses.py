"""Analyses made for the tests of charts."""

# 12,001 points on a slow wave with two spikes of one point each, and a second series of ten points.
WAVE = """-- Wave
-- For tests.
-- needs:  recording
-- column: at_s DOUBLE        Time [s].
-- column: size BIGINT        Height [B].
-- column: kind VARCHAR       Series.
-- chart:  points x=at_s y=size color=kind title="Height" title_ja="高さ"
-- chart:  points x=at_s y=size y_scale=log
-- portable: false
SELECT CAST(n / 100.0 AS DOUBLE) AS at_s,
    CAST(CASE n WHEN 4321 THEN 900000 WHEN 7777 THEN 0 ELSE 1000 + sin(n / 500.0) * 100 END
        AS BIGINT) AS size,
    CASE WHEN n % 1200 = 5 THEN 'few' ELSE 'many' END AS kind
FROM range(12001) AS t(n)
"""

# 60 names in ten series; the name of one is an expression, as a hostile log could hold.
BARS = """-- Bars
-- For tests.
-- needs:  recording
-- column: path VARCHAR       Name.
-- column: kind VARCHAR       Series.
-- column: calls BIGINT       Number of calls.
-- column: avg_ns BIGINT      Average time [ns].
-- chart:  bars x=path y=calls color=kind
-- chart:  bars x=path y=avg_ns
-- portable: false
SELECT CASE n WHEN 59 THEN '\\"]);alert(1)//' WHEN 58 THEN '名前.txt' ELSE concat('/srv/', n) END AS path,
    concat('datum.', n % 10) AS kind, CAST(n + 1 AS BIGINT) AS calls,
    CAST((n + 1) * 1000000 AS BIGINT) AS avg_ns
FROM range(60) AS t(n)
"""

# Numbers that no axis has.
ODD = """-- Odd
-- For tests.
-- needs:  recording
-- column: size_to BIGINT     Size [B].
-- column: value DOUBLE       Value.
-- chart:  classes x=size_to y=value
-- chart:  bars x=size_to y=value
-- chart:  points x=size_to y=value
-- portable: false
SELECT CAST(n AS BIGINT) AS size_to, CAST(['nan', 'inf', '-inf', '5', NULL][n] AS DOUBLE) AS value
FROM range(1, 6) AS t(n)
"""

# One bar with a name of two characters.
NAMED = """-- Named
-- For tests.
-- needs:  recording
-- column: name VARCHAR       Name.
-- column: calls BIGINT       Number of calls.
-- chart:  bars x=name y=calls
SELECT 'NAME' AS name, CAST(1 AS BIGINT) AS calls FROM recording
"""

EMPTY = """-- Empty
-- For tests.
-- needs:  recording
-- column: size_to BIGINT     Size [B].
-- column: reads BIGINT       Reads.
-- chart:  classes x=size_to y=reads
-- chart:  bars x=size_to y=reads
-- chart:  points x=size_to y=reads
SELECT CAST(1 AS BIGINT) AS size_to, CAST(1 AS BIGINT) AS reads FROM recording WHERE started_ns < 0
"""

# Two series over 300 steps, the second silent for a while.
CELLS = """-- Cells
-- For tests.
-- needs:  recording
-- column: from_s DOUBLE      Start of the step [s].
-- column: class VARCHAR      Series.
-- column: calls BIGINT       Number of calls.
-- chart:  heat x=from_s y=calls color=class title="Calls" title_ja="回数"
-- portable: false
SELECT CAST(n AS DOUBLE) AS from_s, k AS class, CAST(CASE k WHEN 'a' THEN 2 ELSE 1 END AS BIGINT) AS calls
FROM range($STEPS) AS t(n), (VALUES ('a'), ('b')) AS s(k)
WHERE k = 'a' OR n NOT BETWEEN 100 AND 199
"""
