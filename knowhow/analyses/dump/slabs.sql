-- Slab caches of a crashed kernel
-- Kernel objects (slab) by the memory that they use, largest first.
-- needs:  dump_slabs
-- question: slab-top Caches of objects of the kernel
-- reads:  memory
-- column: name VARCHAR             Name of the cache, as in /proc/slabinfo.
-- column: objects BIGINT           Objects, used and free.
-- column: object_bytes BIGINT      Size of an object [B].
-- column: slabs BIGINT             Memory areas that contain them.
-- column: bytes BIGINT             Size of these areas [B].
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
