-- Slab caches of a crashed kernel
-- Kernel objects (slab) by the memory that they use, largest first.
-- needs:  dump_slabs
-- column: name VARCHAR             Name of the cache, as in /proc/slabinfo.
-- column: objects BIGINT           Objects that have room, in use or not.
-- column: object_bytes BIGINT      What an object takes [B].
-- column: slabs BIGINT             Pieces of memory that hold them.
-- column: bytes BIGINT             What these take [B].
-- column: status VARCHAR           ok, or why a part is missing.
-- sums:   objects, slabs, bytes
-- match:  name
-- chart:  bars x=name y=bytes title="Memory by cache" title_ja="キャッシュごとのメモリ"
-- tags:   size
SELECT
    s.name,
    s.objects,
    s.object_bytes,
    s.slabs,
    s.bytes,
    s.status
FROM dump_slabs AS s
ORDER BY s.bytes DESC, s.name
