-- Panic of a crashed kernel
-- Why the kernel stopped, on which processor and in which task, and what tainted it.
-- needs:  dump_panic
-- question: panic Where the kernel stopped
-- reads:  panic, log, stacks
-- column: cause VARCHAR          Class of the panic by the log; empty: the log names none.
-- column: record VARCHAR         The record of the log that says what went wrong.
-- column: cpu INTEGER            Processor that stopped the kernel; empty: none did.
-- column: pid INTEGER            Task that was running on it.
-- column: comm VARCHAR           Name of that task.
-- column: function VARCHAR       Function in which the exception was taken, or the processor hung; empty: there was none.
-- column: taint_letters VARCHAR  What taints the kernel, as letters.
-- column: taint_words VARCHAR    The same as text.
-- column: uptime_ns BIGINT       Since the boot [ns].
-- column: host VARCHAR           Name of the machine.
-- column: version VARCHAR        Version of the kernel.
-- column: status VARCHAR         ok, or why something could not be read.
-- tags:   time
SELECT
    p.cause,
    p.record,
    p.cpu,
    p.pid,
    p.comm,
    p.function,
    p.taint_letters,
    p.taint_words,
    p.uptime_ns,
    p.host,
    p.version,
    p.status
FROM dump_panic AS p
