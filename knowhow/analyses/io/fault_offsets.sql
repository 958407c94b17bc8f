-- Page faults over time
-- One row per page fault on a mapped file: when, how long, and at which offset. Straight rising lines are sequential access, clouds random access.
-- needs:  file_faults, recording
-- column: start_s DOUBLE         Start of the fault, since the start of the recording [s].
-- column: dur_ns BIGINT          How long it took [ns].
-- column: offset_bytes BIGINT    Offset in the file where the page begins [B].
-- column: access VARCHAR         The access: read, write or execute.
-- column: fault VARCHAR          major: it waited for the page to be read; minor: the page was in the page cache.
-- column: path VARCHAR           The file.
-- chart:  points x=start_s y=offset_bytes color=fault title="Offset" title_ja="オフセット"
-- chart:  points x=start_s y=dur_ns color=fault y_scale=log title="Duration" title_ja="所要時間"
-- tags:   offsets, time, files
SELECT
    round((f.ts_ns - r.started_ns) / 1e9, 9) AS start_s,
    f.dur_ns,
    f.offset_bytes,
    f.access,
    CASE WHEN f.major THEN 'major' ELSE 'minor' END AS fault,
    f.path
FROM file_faults AS f
CROSS JOIN recording AS r
ORDER BY f.ts_ns, f.task_id, f.offset_bytes
