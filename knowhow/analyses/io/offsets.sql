-- Offsets over time
-- One row per read, write or seek whose place in the file is known: when, how long, how much, where.
-- Straight rising lines are sequential access, clouds are random access, a line that starts anew is a file read again.
-- needs:  calls, recording
-- column: start_s DOUBLE         Start of the call, since the start of the recording [s].
-- column: dur_ns BIGINT          Time in the call [ns].
-- column: size BIGINT            Bytes it moved; empty for seeks and failed calls [B].
-- column: offset_bytes BIGINT    Where in the file it began; for a seek, where it ended [B].
-- column: call VARCHAR           Name of the system call.
-- column: path VARCHAR           File worked on.
-- chart:  points x=start_s y=offset_bytes color=call title="Offset" title_ja="オフセット"
-- chart:  points x=start_s y=size color=call y_scale=log title="Size" title_ja="サイズ"
-- chart:  points x=start_s y=dur_ns color=call y_scale=log title="Duration" title_ja="所要時間"
-- tags:   offsets, time, size, files
SELECT
    round((c.ts_ns - r.started_ns) / 1e9, 9) AS start_s,
    c.dur_ns,
    c.moved_bytes AS size,
    c.offset_bytes,
    c.call,
    c.path
FROM calls AS c
CROSS JOIN recording AS r
WHERE c.offset_bytes IS NOT NULL AND c.class IN ('read', 'write', 'copy', 'seek')
ORDER BY c.ts_ns, c.tid
