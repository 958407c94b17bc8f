-- Log of a crashed kernel
-- The kernel log before the kernel stopped (dmesg), latest records last.
-- needs:  dump_log
-- question: log-tail Log of the kernel
-- reads:  log
-- param:  level INTEGER = 7       Only records of this level or more urgent: 3 errors, 4 warnings, 7 all.
-- column: sequence BIGINT         Number of the record since the boot.
-- column: after_boot_ns BIGINT    When it was written, after boot [ns].
-- column: level INTEGER           0 emergency, 1 alert, 2 critical, 3 error, 4 warning, 5 notice, 6 information, 7 debugging.
-- column: text VARCHAR            Text of the message.
-- tags:   time
SELECT
    l.sequence,
    l.after_boot_ns,
    l.level,
    l.text
FROM dump_log AS l
WHERE l.level <= $level
ORDER BY l.sequence
