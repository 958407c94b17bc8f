-- Kernel accounting by process
-- CPU time, page faults and bytes of each process as counted by the kernel, alongside the bytes of the recorded calls.
-- needs:  processes, calls
-- column: process VARCHAR             Program and process id.
-- column: threads BIGINT              Threads of it that are in the recording.
-- column: user_ns BIGINT              CPU time outside the kernel; empty if the end of a thread was not recorded [ns].
-- column: system_ns BIGINT            CPU time in the kernel [ns].
-- column: minor_faults BIGINT         Page faults that needed no device.
-- column: major_faults BIGINT         Page faults that waited for a device.
-- column: recorded_read_bytes BIGINT  Bytes of its recorded read calls [B].
-- column: rchar_bytes BIGINT           The same as counted by the kernel [B].
-- column: recorded_write_bytes BIGINT Bytes of its recorded write calls [B].
-- column: wchar_bytes BIGINT          The same as counted by the kernel [B].
-- column: device_read_bytes BIGINT    Bytes read from devices for it [B].
-- column: device_write_bytes BIGINT   Bytes it caused to be written to devices, now or later [B].
-- sums:   user_ns, system_ns, minor_faults, major_faults, recorded_read_bytes, rchar_bytes, recorded_write_bytes, wchar_bytes
-- match:  process
-- tags:   processes, bytes, time
WITH moved AS (
    -- What rchar and wchar count (fs/read_write.c): sockets have calls of their own, which are in neither.
    SELECT process_id,
        sum(CASE WHEN action IN ('file_read', 'file_copy') THEN transferred_bytes ELSE 0 END)
            AS read_bytes,
        sum(CASE WHEN action IN ('file_write', 'file_copy') THEN transferred_bytes ELSE 0 END)
            AS write_bytes
    FROM calls
    WHERE via IS NULL AND transferred_bytes > 0
    GROUP BY process_id
), used AS (
    -- A sum is known only if every thread told its part.
    SELECT process_id, min(pid) AS pid, count(*) AS threads, min(start_ts_ns) AS start_ts_ns,
        count(user_ns) = count(*) AS known,
        max(CASE WHEN tid = pid THEN comm END) AS comm,
        sum(user_ns) AS user_ns, sum(system_ns) AS system_ns, sum(minor_faults) AS minor_faults, sum(major_faults) AS major_faults,
        sum(rchar_bytes) AS rchar_bytes, sum(wchar_bytes) AS wchar_bytes,
        sum(device_read_bytes) AS device_read_bytes, sum(device_write_bytes) AS device_write_bytes
    FROM processes
    GROUP BY process_id
)
SELECT
    concat(coalesce(u.comm, '?'), ' ', CAST(u.pid AS VARCHAR)) AS process,
    u.threads,
    CAST(CASE WHEN u.known THEN u.user_ns END AS BIGINT) AS user_ns,
    CAST(CASE WHEN u.known THEN u.system_ns END AS BIGINT) AS system_ns,
    CAST(CASE WHEN u.known THEN u.minor_faults END AS BIGINT) AS minor_faults,
    CAST(CASE WHEN u.known THEN u.major_faults END AS BIGINT) AS major_faults,
    CAST(coalesce(m.read_bytes, 0) AS BIGINT) AS recorded_read_bytes,
    CAST(CASE WHEN u.known THEN u.rchar_bytes END AS BIGINT) AS rchar_bytes,
    CAST(coalesce(m.write_bytes, 0) AS BIGINT) AS recorded_write_bytes,
    CAST(CASE WHEN u.known THEN u.wchar_bytes END AS BIGINT) AS wchar_bytes,
    CAST(CASE WHEN u.known THEN u.device_read_bytes END AS BIGINT) AS device_read_bytes,
    CAST(CASE WHEN u.known THEN u.device_write_bytes END AS BIGINT) AS device_write_bytes
FROM used AS u
LEFT JOIN moved AS m ON m.process_id = u.process_id
ORDER BY coalesce(u.user_ns + u.system_ns, 0) DESC, u.start_ts_ns, u.process_id
