-- Offsets over time
-- One row per read, write or seek whose file offset is known: when, how long, how much, where.
-- A copy call (sendfile, copy_file_range, ...) has one row for each of its files whose offset is known.
-- Straight rising lines are sequential access, clouds are random access, a line that restarts is a file that is read again.
-- needs:  calls, recording
-- column: start_s DOUBLE         Start of the call, since the start of the recording [s].
-- column: dur_ns BIGINT          Time in the call [ns].
-- column: size BIGINT            Bytes it transferred; empty for seeks and failed calls [B].
-- column: offset_bytes BIGINT    Offset in the file where it began; for a seek, where it ended [B].
-- column: call VARCHAR           Name of the system call.
-- column: path VARCHAR           The file.
-- column: uncertain BOOLEAN      Whether another call moved the same position at the same time: the offset is one of several possible values.
-- chart:  points x=start_s y=offset_bytes color=call title="Offset" title_ja="オフセット"
-- chart:  points x=start_s y=size color=call y_scale=log title="Size" title_ja="サイズ"
-- chart:  points x=start_s y=dur_ns color=call y_scale=log title="Duration" title_ja="所要時間"
-- tags:   offsets, time, size, files
WITH places AS (
    SELECT ts_ns, task_id, 0 AS side, dur_ns, transferred_bytes, offset_bytes, call, path, offset_uncertain
    FROM calls
    WHERE offset_bytes IS NOT NULL AND class IN ('read', 'write', 'copy', 'seek')
    UNION ALL
    SELECT ts_ns, task_id, 1 AS side, dur_ns, transferred_bytes, to_offset_bytes AS offset_bytes, call, to_path AS path, offset_uncertain
    FROM calls
    WHERE to_offset_bytes IS NOT NULL
)
SELECT
    round((p.ts_ns - r.started_ns) / 1e9, 9) AS start_s,
    p.dur_ns,
    p.transferred_bytes AS size,
    p.offset_bytes,
    p.call,
    p.path,
    p.offset_uncertain AS uncertain
FROM places AS p
CROSS JOIN recording AS r
ORDER BY p.ts_ns, p.task_id, p.side
