-- More data transferred than the files hold
-- Files that were read or written more than their size, where the size is known.
-- needs:  calls, file_sizes, paths, recording
-- param:  times_over DOUBLE = 1.5         Read or written more than this many times the size of the file, and
-- param:  least_excess BIGINT = 1048576   by at least this much more, is more than the file needs [B].
-- param:  enough_known DOUBLE = 0.95      Sizes that are known for less of the volume say nothing about the rest.
-- param:  only_named BOOLEAN = false      Only files count that the user named as those that the job has to transfer.
-- param:  here VARCHAR = NULL             The machine on which the sizes were checked.
-- column: subject VARCHAR         The file.
-- column: status VARCHAR          finding, ok or unknown.
-- column: value DOUBLE            What was read, or written if that is more [B].
-- column: limit_value DOUBLE      Size of the file [B].
-- column: cost_ns BIGINT          Not known: how long it took depends on where the data came from [ns].
-- column: gain_ns BIGINT          Not known [ns].
-- column: certainty VARCHAR       medium.
-- column: file VARCHAR            The file.
-- column: variant VARCHAR         read or write; empty, elsewhere or not_recorded where nothing can be said.
-- column: direction VARCHAR       read or write, whichever is more.
-- column: files BIGINT            Files that were read or written.
-- column: read_bytes BIGINT       What was read of them [B].
-- column: written_bytes BIGINT    What was written to them [B].
-- column: known BIGINT            Those whose size is known.
-- column: known_bytes BIGINT      What was read of them and written to them [B].
-- column: sizes_bytes BIGINT      Their sizes together [B].
-- column: gone BIGINT             Those that are not there, or were changed since.
-- column: missing BIGINT          Files that were named and are not in the recording.
-- column: over_count BIGINT       Files that were read or written more than their size.
-- column: host VARCHAR            The machine on which it was recorded.
-- says: finding.read en   {value} were read from this file, which is {limit_value} long.
-- says: finding.read ja   {limit_value} のこのファイルから {value} 読まれています。
-- says: finding.write en  {value} were written to this file, which is {limit_value} long.
-- says: finding.write ja  {limit_value} のこのファイルに {value} 書かれています。
-- says: ok en       Checked {known:file}: none was read or written more than its size.
-- says: ok ja       {known} 個のファイルに、サイズより多く読み書きされたものはありません。
-- says: unknown en  File sizes are known for only {known_bytes} of the transferred data. Name the files that the job has to read and write, on the machine that holds them: --files PATH.
-- says: unknown ja  読み書きのうち {known_bytes} しかファイルサイズがわかりません。ジョブが読み書きするはずのファイルを、それがあるマシンで --files PATH により与えてください。
-- says: unknown.not_recorded en  {missing:named file} {missing?is|are} not in the recording and cannot be judged. Name the files that the job has to read and write, on the machine that holds them: --files PATH.
-- says: unknown.not_recorded ja  指定されたファイルのうち {missing} 個は記録になく、判定できません。ジョブが読み書きするはずのファイルを、それがあるマシンで --files PATH により与えてください。
-- says: unknown.elsewhere en     This was recorded on another machine, {host}, so file sizes on this one do not apply. Name the files that the job has to read and write, on the machine that holds them: --files PATH.
-- says: unknown.elsewhere ja     別のマシン {host} での記録なので、ここでのファイルサイズとは比べられません。ジョブが読み書きするはずのファイルを、それがあるマシンで --files PATH により与えてください。
-- says: unknown.empty en  The recording contains no file I/O. Transfers through mapped memory are not in the log; see `sysdock show REC processes/mappings`.
-- says: unknown.empty ja  記録にファイルの読み書きがありません。マップされたメモリ経由の入出力は記録に現れません。`sysdock show REC processes/mappings` で確認してください。
-- evidence: io/files --file {file}
-- tags:   bytes, files
WITH moved AS (
    -- A copy reads one file and writes another.
    SELECT path_id, transferred_bytes AS read_bytes, 0 AS written_bytes FROM calls WHERE coalesce(class, '') IN ('read', 'copy')
    UNION ALL
    SELECT path_id, 0, transferred_bytes FROM calls WHERE class = 'write'
    UNION ALL
    SELECT to_path_id, 0, transferred_bytes FROM calls WHERE class = 'copy'
), used AS (
    SELECT p.path, sum(m.read_bytes) AS read_bytes, sum(m.written_bytes) AS written_bytes
    FROM moved AS m
    JOIN paths AS p ON p.path_id = m.path_id
    WHERE p.kind = 'file' AND m.read_bytes + m.written_bytes > 0
    GROUP BY p.path
), sized AS (
    SELECT u.path, u.read_bytes, u.written_bytes, greatest(u.read_bytes, u.written_bytes) AS most_bytes, f.size_bytes,
        f.path IS NOT NULL AND f.size_bytes IS NULL AS gone
    FROM used AS u
    LEFT JOIN file_sizes AS f ON f.path = u.path
    WHERE NOT $only_named OR f.named
), over_size AS (
    SELECT path, most_bytes, size_bytes, CASE WHEN read_bytes >= written_bytes THEN 'read' ELSE 'write' END AS direction
    FROM sized
    WHERE most_bytes - size_bytes >= $least_excess AND most_bytes > $times_over * size_bytes
), whole AS (
    SELECT count(*) AS files, coalesce(sum(read_bytes), 0) AS read_bytes, coalesce(sum(written_bytes), 0) AS written_bytes,
        count(size_bytes) AS known, coalesce(sum(CASE WHEN size_bytes IS NOT NULL THEN read_bytes + written_bytes END), 0) AS known_bytes,
        coalesce(sum(size_bytes), 0) AS sizes_bytes, count(CASE WHEN gone THEN 1 END) AS gone
    FROM sized
), state AS (
    SELECT w.*, r.host, (SELECT count(*) FROM over_size) AS over_count,
        (SELECT count(*) FROM file_sizes AS f LEFT JOIN used AS u ON u.path = f.path WHERE f.named AND u.path IS NULL) AS missing,
        NOT $only_named AND $here IS NOT NULL AND r.host <> $here AS elsewhere
    FROM whole AS w
    CROSS JOIN recording AS r
), judged AS (
    SELECT *, CASE WHEN read_bytes + written_bytes = 0 THEN 'empty' WHEN elsewhere THEN 'elsewhere' WHEN over_count > 0 THEN 'over'
        WHEN missing > 0 THEN 'not_recorded' WHEN known_bytes < $enough_known * (read_bytes + written_bytes) THEN 'few' ELSE 'ok' END AS found
    FROM state
)
SELECT
    o.path AS subject,
    CASE j.found WHEN 'over' THEN 'finding' WHEN 'ok' THEN 'ok' ELSE 'unknown' END AS status,
    CAST(o.most_bytes AS DOUBLE) AS value,
    CAST(o.size_bytes AS DOUBLE) AS limit_value,
    CAST(NULL AS BIGINT) AS cost_ns,
    CAST(NULL AS BIGINT) AS gain_ns,
    CASE WHEN j.found = 'over' THEN 'medium' END AS certainty,
    o.path AS file,
    CASE WHEN j.found IN ('empty', 'elsewhere', 'not_recorded') THEN j.found ELSE o.direction END AS variant,
    o.direction,
    j.files,
    CAST(j.read_bytes AS BIGINT) AS read_bytes,
    CAST(j.written_bytes AS BIGINT) AS written_bytes,
    j.known,
    CAST(j.known_bytes AS BIGINT) AS known_bytes,
    CAST(j.sizes_bytes AS BIGINT) AS sizes_bytes,
    j.gone,
    j.missing,
    j.over_count,
    j.host
FROM judged AS j
LEFT JOIN over_size AS o ON j.found = 'over'
ORDER BY o.most_bytes - o.size_bytes DESC, o.path
