-- Metadata far from data
-- Files whose indirect blocks, extent trees or attributes are far from their data: each needs a request of its own when the file is read.
-- needs:  file_systems, layout, extents, file_fragments, device_cost
-- param:  near_bytes BIGINT = 131072 > 0    What lies within this distance of the data comes with it [B].
-- param:  min_share DOUBLE = 0.1            Minimum number of such requests for each request for data.
-- param:  min_requests BIGINT = 100 > 0     Minimum number of them.
-- column: subject VARCHAR       What lies apart: attributes, indirect blocks or extent tree.
-- column: status VARCHAR        finding, ok or unknown.
-- column: value DOUBLE          Requests for it, for each request for data.
-- column: limit_value DOUBLE    Threshold: reported from this value on.
-- column: cost_ns BIGINT        Time of these requests when all files are read once, from the disk [ns].
-- column: gain_ns BIGINT        The same [ns].
-- column: certainty VARCHAR     medium where the cost of a request was measured, else low.
-- column: variant VARCHAR       attributes, pointers or tree; of unknown: trees (shared by all files) or method.
-- column: far BIGINT            Metadata blocks away from the data of their files.
-- column: files BIGINT          Files that they belong to.
-- column: requests BIGINT       Requests that the data of all files takes: one for each fragment, and one for each MiB.
-- column: method VARCHAR        How the file system was read.
-- column: own BIGINT            Metadata blocks of files, near and far.
-- says: finding.attributes en  {far:attribute block} {far?is|are} more than {near_bytes} away from the data of {files:file}. Reading all files once takes {requests:request} for data, plus these: {cost_ns}.
-- says: finding.attributes ja  属性を持つブロック {far} 個が、{files} 個のファイルのデータから {near_bytes} より離れています。全ファイルを一度読むと、データへの要求 {requests} 回のほかにこれらが要り、{cost_ns} かかります。
-- says: finding.pointers en  {far:indirect block} {far?is|are} more than {near_bytes} away from the data of {files:file}. Reading all files once takes {requests:request} for data, plus these: {cost_ns}.
-- says: finding.pointers ja  間接ブロック {far} 個が、{files} 個のファイルのデータから {near_bytes} より離れています。全ファイルを一度読むと、データへの要求 {requests} 回のほかにこれらが要り、{cost_ns} かかります。
-- says: finding.tree en  {far:extent tree node} {far?is|are} more than {near_bytes} away from the data of {files:file}. Reading all files once takes {requests:request} for data, plus these: {cost_ns}.
-- says: finding.tree ja  エクステント木の節 {far} 個が、{files} 個のファイルのデータから {near_bytes} より離れています。全ファイルを一度読むと、データへの要求 {requests} 回のほかにこれらが要り、{cost_ns} かかります。
-- says: ok en       Checked {own:metadata block} of files: {far} {far?is|are} more than {near_bytes} away from the data, which takes {requests:request}.
-- says: ok ja       ファイルのメタデータ {own} 個のうち、データから {near_bytes} より離れているのは {far} 個です。データへの要求は {requests} 回です。
-- says: unknown.trees en  This file system keeps the metadata of all files in shared trees: no block belongs to one file.
-- says: unknown.trees ja  このファイルシステムのメタデータは共通の木にあり、どのブロックも 1 つのファイルのものではありません。
-- says: unknown.method en  The method {method} cannot locate the metadata of files.
-- says: unknown.method ja  方法 {method} では、ファイルのメタデータの位置がわかりません。
-- says: unknown en  No file system was read.
-- says: unknown ja  ファイルシステムは読まれていません。
-- tags:   disk, metadata, time
WITH own AS (
    SELECT l.part, l.inode, l.device, l.physical_bytes AS first, l.physical_bytes + l.length_bytes AS last
    FROM layout AS l
    JOIN file_fragments AS p ON p.inode = l.inode
    WHERE l.part IN ('extent tree', 'indirect blocks', 'attributes') AND p.kind = 'file' AND p.extents > 0
), owners AS (
    SELECT DISTINCT inode FROM own
), places AS (
    SELECT part, inode, device, first, last FROM own
    UNION ALL
    SELECT '' AS part, e.inode, e.device, e.physical_bytes AS first, e.end_bytes AS last
    FROM extents AS e
    JOIN owners AS o ON o.inode = e.inode
    WHERE e.physical_bytes IS NOT NULL
), neighbours AS (
    SELECT part, inode, first, last,
        max(CASE WHEN part = '' THEN last END) OVER (PARTITION BY inode, device ORDER BY first) AS data_before,
        min(CASE WHEN part = '' THEN first END) OVER (PARTITION BY inode, device ORDER BY first DESC) AS data_behind
    FROM places
), apart AS (
    SELECT part, inode, least(coalesce(first - data_before, data_behind - last), coalesce(data_behind - last, first - data_before)) > $near_bytes AS is_far
    FROM neighbours
    WHERE part <> '' AND (data_before IS NOT NULL OR data_behind IS NOT NULL)
), summed AS (
    SELECT part, count(*) AS own, count(*) FILTER (WHERE is_far) AS far, count(DISTINCT CASE WHEN is_far THEN inode END) AS files
    FROM apart
    GROUP BY part
), needed AS (
    SELECT CAST(coalesce(sum(greatest(pieces, 1) + floor(1e0 * allocated_bytes / 1048576)), 0) AS BIGINT) AS requests
    FROM file_fragments
    WHERE kind = 'file' AND extents > 0 AND allocated_bytes > 0
), found AS (
    SELECT s.part, s.far, s.files, n.requests
    FROM summed AS s
    CROSS JOIN needed AS n
    WHERE s.far >= $min_requests AND s.far >= $min_share * n.requests
), state AS (
    SELECT max(method) AS method, coalesce((SELECT CAST(sum(own) AS BIGINT) FROM summed), 0) AS own,
        coalesce((SELECT CAST(sum(far) AS BIGINT) FROM summed), 0) AS far
    FROM file_systems
)
SELECT
    f.part AS subject,
    CASE WHEN f.part IS NOT NULL THEN 'finding' WHEN s.method IN ('raw', 'fsmap') THEN 'ok' ELSE 'unknown' END AS status,
    CASE WHEN n.requests > 0 AND s.method IN ('raw', 'fsmap') THEN round(1e0 * coalesce(f.far, s.far) / n.requests, 4) END AS value,
    CAST($min_share AS DOUBLE) AS limit_value,
    f.far * c.request_ns AS cost_ns,
    f.far * c.request_ns AS gain_ns,
    CASE WHEN f.part IS NULL THEN NULL WHEN c.measured THEN 'medium' ELSE 'low' END AS certainty,
    CASE WHEN f.part = 'attributes' THEN 'attributes' WHEN f.part = 'indirect blocks' THEN 'pointers' WHEN f.part IS NOT NULL THEN 'tree'
        WHEN s.method IN ('raw', 'fsmap') THEN NULL WHEN s.method = 'tree' THEN 'trees' WHEN s.method IS NOT NULL THEN 'method' END AS variant,
    coalesce(f.far, s.far) AS far,
    f.files,
    n.requests,
    s.method,
    s.own
FROM state AS s
CROSS JOIN needed AS n
CROSS JOIN device_cost AS c
LEFT JOIN found AS f ON s.method IN ('raw', 'fsmap')
