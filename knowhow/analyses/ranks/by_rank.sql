-- Ranks
-- Each rank of a parallel job: calls, time in file operations, wait time, CPU time and bytes, side by side.
-- needs:  ranks, rank_use
-- column: rank INTEGER          Number of the rank.
-- column: name VARCHAR          Name of its recording.
-- column: host VARCHAR          Host on which it ran; empty: unknown.
-- column: start_s DOUBLE        Time of its first event, since the first event of all ranks [s].
-- column: elapsed_ns BIGINT     Time from its first event to its last [ns].
-- column: calls BIGINT          System calls.
-- column: in_calls_ns BIGINT    Time in calls of all its threads; empty if durations are unknown [ns].
-- column: files_ns BIGINT       Of this, in calls that read, write, open, look up or flush files and directories [ns].
-- column: wait_ns BIGINT        Of this, in calls that wait for another process, a lock, a signal or a clock, and on pipes and sockets [ns].
-- column: cpu_ns BIGINT         CPU time as counted by the kernel; empty if that of a thread is unknown, as in logs [ns].
-- column: read_bytes BIGINT     Bytes read from files [B].
-- column: written_bytes BIGINT  Bytes written to files [B].
-- sums:   calls, in_calls_ns, files_ns, wait_ns, cpu_ns, read_bytes, written_bytes
-- match:  rank
-- chart:  bars x=name y=files_ns,wait_ns title="Time in calls, by rank" title_ja="ランク別のシステムコール時間"
-- tags:   processes, time, calls, bytes
WITH first AS (
    SELECT min(start_ts_ns) AS ts_ns FROM ranks
)
SELECT
    u.rank,
    u.name,
    r.host,
    round((r.start_ts_ns - f.ts_ns) / 1e9, 6) AS start_s,
    u.elapsed_ns,
    u.calls,
    u.in_calls_ns,
    u.files_ns,
    u.wait_ns,
    u.cpu_ns,
    u.read_bytes,
    u.written_bytes
FROM rank_use AS u
INNER JOIN ranks AS r ON r.rank = u.rank
CROSS JOIN first AS f
ORDER BY u.rank
