-- Predicted transactions of a database
-- One row per workload and number of clients: what a PostgreSQL server would get from the disk, and what limits it.
-- needs:  diskio_predictions
-- param:  workload VARCHAR = ''       Only this workload: simple_update, tpcb or select; empty: all.
-- column: workload VARCHAR            simple_update (pgbench -N), tpcb (-b tpcb-like) or select (-S).
-- column: clients INTEGER             Concurrent clients.
-- column: predicted_tps DOUBLE        Transactions per second between checkpoints [1/s].
-- column: steady_tps DOUBLE           Transactions per second over hours, with checkpoints [1/s].
-- column: measured_tps DOUBLE         Transactions per second of a real server [1/s].
-- column: error DOUBLE                Prediction divided by measurement, minus 1.
-- column: latency_ns BIGINT           Mean time of a transaction [ns].
-- column: flush_ns BIGINT             Mean time of a flush of the log [ns].
-- column: commits_per_flush DOUBLE    Commits that one flush makes durable.
-- column: flush_busy DOUBLE           Share of the time in which a flush is in progress.
-- column: cpu_busy DOUBLE             Share of the processors' time that is used.
-- column: limited_by VARCHAR          What takes most of a transaction's time.
-- tags:   time, disk
SELECT
    d.workload,
    d.clients,
    round(d.predicted_tps, 1) AS predicted_tps,
    round(d.steady_tps, 1) AS steady_tps,
    round(d.measured_tps, 1) AS measured_tps,
    CASE WHEN d.measured_tps > 0 THEN round(d.predicted_tps / d.measured_tps - 1, 3) END AS error,
    d.latency_ns,
    d.flush_ns,
    round(d.commits_per_flush, 1) AS commits_per_flush,
    round(d.flush_busy, 2) AS flush_busy,
    round(d.cpu_busy, 2) AS cpu_busy,
    d.limited_by
FROM diskio_predictions AS d
WHERE $workload = '' OR d.workload = $workload
ORDER BY d.workload, d.clients
