-- Consistency of kernel counters
-- Whether lists, trees and counters of a crashed kernel agree: if they do not, the kernel or the dump is damaged.
-- needs:  dump_counts
-- question: sanity Whether numbers agree
-- reads:  counts, tasks
-- column: name VARCHAR       What was counted.
-- column: found BIGINT       Actual number; empty: it cannot be read.
-- column: expected BIGINT    Expected number; empty: it cannot be read.
-- column: against VARCHAR    What it was compared with.
-- column: status VARCHAR     ok; differs; or why one of them could not be read.
-- sums:   found
-- match:  name
-- tags:   errors
SELECT
    c.name,
    c.found,
    c.expected,
    c.against,
    c.status
FROM dump_counts AS c
ORDER BY c.name
