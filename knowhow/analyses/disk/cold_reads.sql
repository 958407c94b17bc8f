-- Fragments against cold reads in order
-- Of an experiment: what files in pieces cost a program that reads them in order, beside files in one piece that were read in turns with them.
-- needs:  experiment_cases, experiment_results
-- column: file_system VARCHAR          The file system.
-- column: mode VARCHAR                 How the files were broken.
-- column: piece_bytes BIGINT           Size of the pieces that were made [B].
-- column: state VARCHAR                before or after defragmenting.
-- column: subject VARCHAR              broken, or whole: the control, files in one piece in the same file system.
-- column: fragments BIGINT             Pieces, by a scan.
-- column: predicted_requests BIGINT    Requests of a read of all of them, by that scan: the fewest that it may take.
-- column: most_requests BIGINT         The same, if the kernel's memory lies in single pages.
-- column: requests BIGINT              Requests that the device completed; the median of the rounds.
-- column: deviation_percent DOUBLE     How much more (or less) was predicted than counted; NULL where the two predictions differ [%].
-- column: dur_ns BIGINT                Time of a read of all of them; the median [ns].
-- column: mb_per_s DOUBLE              Megabytes of content in a second of that time [MB/s].
-- column: times_control DOUBLE         That time, as a multiple of that of the control.
-- column: rounds BIGINT                Rounds that were measured.
-- chart:  bars x=file_system y=dur_ns color=piece_bytes title="Time by file system and size of pieces" title_ja="ファイルシステムと断片の大きさごとの時間"
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
ranked AS (
    SELECT
        case_id, state, subject, measure, value,
        row_number() OVER (PARTITION BY case_id, state, subject, measure ORDER BY value) AS place,
        count(*) OVER (PARTITION BY case_id, state, subject, measure) AS n
    FROM experiment_results
),
medians AS (
    SELECT
        case_id, state, subject,
        CAST(avg(CASE WHEN measure = 'fragments' THEN value END) AS BIGINT) AS fragments,
        CAST(avg(CASE WHEN measure = 'predicted_requests' THEN value END) AS BIGINT) AS predicted_requests,
        CAST(avg(CASE WHEN measure = 'most_requests' THEN value END) AS BIGINT) AS most_requests,
        avg(CASE WHEN measure = 'requests' THEN value END) AS requests,
        avg(CASE WHEN measure = 'dur_ns' THEN value END) AS dur_ns,
        avg(CASE WHEN measure = 'content_bytes' THEN value END) AS content_bytes,
        max(CASE WHEN measure = 'requests' THEN n END) AS rounds
    FROM ranked
    WHERE place IN ((n + 1) // 2, n // 2 + 1)
    GROUP BY case_id, state, subject
)
SELECT
    c.file_system, c.mode, c.piece_bytes, m.state, m.subject, m.fragments, m.predicted_requests,
    m.most_requests,
    CAST(m.requests AS BIGINT) AS requests,
    CASE WHEN m.predicted_requests = m.most_requests
        THEN round(1e2 * (m.predicted_requests - m.requests) / m.requests, 2) + 0 END AS deviation_percent,
    CAST(m.dur_ns AS BIGINT) AS dur_ns,
    round(1e3 * m.content_bytes / m.dur_ns, 1) AS mb_per_s,
    round(m.dur_ns / w.dur_ns, 2) AS times_control,
    CAST(m.rounds AS BIGINT) AS rounds
FROM medians AS m
JOIN cases AS c ON c.case_id = m.case_id
LEFT JOIN medians AS w ON w.case_id = m.case_id AND w.state = m.state AND w.subject = 'whole'
WHERE m.requests IS NOT NULL
ORDER BY m.case_id, m.state DESC, m.subject
