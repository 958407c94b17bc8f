-- Mapped files
-- Files that were mapped into memory: how often, by how many processes, how much, and whether they are writable.
-- Reads and writes through a mapping make no system call, so no other analysis shows them.
-- needs:  mappings
-- column: path VARCHAR              File that was mapped; empty if the log does not name it.
-- column: mappings BIGINT           How often it, or a part of it, was mapped.
-- column: processes BIGINT          Processes that mapped it.
-- column: bytes BIGINT              Bytes mapped, all mappings together [B].
-- column: max_bytes BIGINT          Largest mapping [B].
-- column: shared BIGINT             Shared mappings: writes to them reach the file.
-- column: writable BIGINT           Mappings that the process may write to.
-- column: shared_writable BIGINT    Mappings that are both: the file may be changed without a system call.
-- chart:  bars x=path y=bytes title="Bytes mapped" title_ja="マップしたバイト数"
-- chart:  bars x=path y=mappings title="Mappings" title_ja="マッピングの数"
-- tags:   files, bytes, processes
SELECT
    path,
    count(*) AS mappings,
    count(DISTINCT pid) AS processes,
    CAST(sum(length_bytes) AS BIGINT) AS bytes,
    max(length_bytes) AS max_bytes,
    count(*) FILTER (WHERE shared) AS shared,
    count(*) FILTER (WHERE protection LIKE '%PROT_WRITE%') AS writable,
    count(*) FILTER (WHERE shared AND protection LIKE '%PROT_WRITE%') AS shared_writable
FROM mappings
GROUP BY path
ORDER BY bytes DESC, mappings DESC, path
