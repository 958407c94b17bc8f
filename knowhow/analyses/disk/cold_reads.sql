-- Fragmentation and cold sequential reads
-- From an experiment: what fragmented files cost a program that reads them sequentially, compared with contiguous files read in the same blocks.
-- needs:  experiment_cases, experiment_runs, experiment_metrics, experiment_facts
-- column: file_system VARCHAR          The file system.
-- column: mode VARCHAR                 How the files were fragmented.
-- column: piece_bytes BIGINT           Size of the created fragments [B].
-- column: files VARCHAR                whole (the control, contiguous files), broken, or defragmented.
-- column: fragments BIGINT             Fragments, according to a scan.
-- column: predicted_requests BIGINT    Requests needed to read all of them, predicted from that scan (minimum).
-- column: most_requests BIGINT         The same, if the kernel's memory consists of single pages.
-- column: requests BIGINT              Requests that the device completed; median of the runs.
-- column: deviation_percent DOUBLE     How far the prediction exceeds the count (or falls below it); NULL if the two predictions differ [%].
-- column: dur_ns BIGINT                Time to read all of them; median [ns].
-- column: mb_per_s DOUBLE              Megabytes of content per second of that time [MB/s].
-- column: times_control DOUBLE         That time, as a multiple of that of the control.
-- column: runs BIGINT                  Runs that count.
-- heads_ja:  files=ファイルの状態
-- chart:  bars x=file_system y=dur_ns color=piece_bytes title="Time by file system and fragment size" title_ja="ファイルシステムと断片のサイズごとの時間"
-- tags:   disk, time
WITH cases AS (
    SELECT
        case_id,
        max(CASE WHEN parameter = 'file_system' THEN value END) AS file_system,
        max(CASE WHEN parameter = 'mode' THEN value END) AS mode,
        CAST(max(CASE WHEN parameter = 'piece_bytes' THEN value END) AS BIGINT) AS piece_bytes
    FROM experiment_cases
    GROUP BY case_id
),
facts AS (
    SELECT
        case_id, subject,
        CAST(max(CASE WHEN name = 'fragments' THEN value END) AS BIGINT) AS fragments,
        CAST(max(CASE WHEN name = 'predicted_requests' THEN value END) AS BIGINT) AS predicted_requests,
        CAST(max(CASE WHEN name = 'most_requests' THEN value END) AS BIGINT) AS most_requests,
        max(CASE WHEN name = 'content_bytes' THEN value END) AS content_bytes
    FROM experiment_facts
    GROUP BY case_id, subject
),
ranked AS (
    SELECT
        r.case_id, r.scenario, m.metric, m.value,
        row_number() OVER (PARTITION BY r.case_id, r.scenario, m.metric ORDER BY m.value) AS place,
        count(*) OVER (PARTITION BY r.case_id, r.scenario, m.metric) AS n
    FROM experiment_runs AS r
    JOIN experiment_metrics AS m ON m.run_id = r.run_id
    WHERE r.kind = 'measured' AND NOT r.rejected AND r.scenario <> 'A/A' AND m.metric IN ('device_reads', 'elapsed_s')
),
medians AS (
    SELECT
        case_id, scenario,
        avg(CASE WHEN metric = 'device_reads' THEN value END) AS requests,
        avg(CASE WHEN metric = 'elapsed_s' THEN value END) AS elapsed_s,
        max(n) AS runs
    FROM ranked
    WHERE place IN ((n + 1) // 2, n // 2 + 1)
    GROUP BY case_id, scenario
)
SELECT
    c.file_system, c.mode, c.piece_bytes, m.scenario AS files, f.fragments, f.predicted_requests, f.most_requests,
    CAST(m.requests AS BIGINT) AS requests,
    CASE WHEN f.predicted_requests = f.most_requests
        THEN round(1e2 * (f.predicted_requests - m.requests) / m.requests, 2) + 0 END AS deviation_percent,
    CAST(1e9 * m.elapsed_s AS BIGINT) AS dur_ns,
    round(1e-6 * f.content_bytes / m.elapsed_s, 1) AS mb_per_s,
    round(m.elapsed_s / w.elapsed_s, 2) AS times_control,
    CAST(m.runs AS BIGINT) AS runs
FROM medians AS m
JOIN cases AS c ON c.case_id = m.case_id
LEFT JOIN facts AS f ON f.case_id = m.case_id AND f.subject = m.scenario
LEFT JOIN medians AS w ON w.case_id = m.case_id AND w.scenario = 'whole'
WHERE m.requests IS NOT NULL
ORDER BY m.case_id, m.scenario DESC
