-- Users
-- Users whose processes are in the recording, and what they used: one row per user.
-- needs:  processes, calls
-- column: user_id BIGINT             Real user id; empty if unknown.
-- column: processes BIGINT           Processes of this user.
-- column: programs BIGINT            Distinct programs that they ran.
-- column: calls BIGINT               Their calls.
-- column: time_ns BIGINT             Time in these calls, including waits [ns].
-- column: bytes BIGINT               Bytes that the calls transferred [B].
-- column: cpu_ns BIGINT              CPU time of their threads whose end was recorded; empty if there are none [ns].
-- column: device_read_bytes BIGINT   Bytes read from devices for these threads [B].
-- column: device_write_bytes BIGINT  Bytes that these threads caused to be written to devices, now or later [B].
-- sums:   calls, time_ns, bytes
-- match:  user_id
-- tags:   processes, calls, time, bytes
WITH used AS (
    SELECT c.task_id, count(*) FILTER (WHERE c.via IS NULL) AS calls,
        sum(c.dur_ns) FILTER (WHERE c.via IS NULL) AS time_ns, sum(c.transferred_bytes) AS bytes
    FROM calls AS c
    GROUP BY c.task_id
)
SELECT
    p.user_id,
    count(DISTINCT p.process_id) AS processes,
    count(DISTINCT p.comm_id) AS programs,
    CAST(coalesce(sum(u.calls), 0) AS BIGINT) AS calls,
    CAST(sum(u.time_ns) AS BIGINT) AS time_ns,
    CAST(sum(u.bytes) AS BIGINT) AS bytes,
    CAST(sum(p.user_ns + p.system_ns) AS BIGINT) AS cpu_ns,
    CAST(sum(p.device_read_bytes) AS BIGINT) AS device_read_bytes,
    CAST(sum(p.device_write_bytes) AS BIGINT) AS device_write_bytes
FROM processes AS p
LEFT JOIN used AS u ON u.task_id = p.task_id
GROUP BY p.user_id
ORDER BY coalesce(sum(u.time_ns), 0) DESC, p.user_id
