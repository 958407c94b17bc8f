//! Use of memory: the counters of the kernel, and its caches of objects (SLUB).

use crate::{error::Fault, format::PAGE, kernel::Kernel};

/// Number of objects in a slab, and its order, share a word (mm/slub.c, `oo_make`).
const OBJECTS_BITS: u64 = 16;
/// Limit for the number of memory nodes.
const MOST_NODES: usize = 1024;

/// A use of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// `total`, `free`, or the kernel's name of the counter.
    pub name: String,
    pub bytes: u64,
}

/// A cache of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slab {
    /// Name as in /proc/slabinfo.
    pub name: String,
    /// Size of an object [B].
    pub object_bytes: u64,
    /// Number of objects that have room.
    pub objects: u64,
    /// Number of slabs.
    pub slabs: u64,
    /// Size of all slabs [B].
    pub bytes: u64,
    /// Why a part is missing.
    pub fault: Option<Fault>,
}

impl Kernel {
    /// The kernel's counters of pages.
    ///
    /// # Errors
    /// A [`Fault`]: they cannot be read.
    pub fn memory_use(&self) -> Result<Vec<MemoryUse>, Fault> {
        let mut found = Vec::new();
        let total = self.memory.u64(self.symbol("_totalram_pages")?)?;
        found.push(MemoryUse { name: "total".into(), bytes: total.saturating_mul(PAGE) });
        for (symbol, items) in [("vm_zone_stat", "zone_stat_item"), ("vm_node_stat", "node_stat_item")] {
            let counters = self.symbol(symbol)?;
            for (name, value) in self.types.enumerators(items) {
                let Some(unit) = unit_of(&name) else { continue };
                let count = self.memory.u64(counters.wrapping_add(u64::from(value) * 8))?.cast_signed().max(0).cast_unsigned();
                let name = if name == "NR_FREE_PAGES" { "free".into() } else { name };
                found.push(MemoryUse { name, bytes: count.saturating_mul(unit) });
            }
        }
        Ok(found)
    }

    /// The caches of objects.
    ///
    /// # Errors
    /// A [`Fault`]: there is no list of them, or none of this kind.
    pub fn slabs(&self) -> Result<(Vec<Slab>, Option<Fault>), Fault> {
        let list = self.field("kmem_cache", "list")?.offset;
        let walk = self.list(self.symbol("slab_caches")?, list);
        let slabs = walk.entries.iter().map(|cache| self.slab(*cache)).collect::<Result<_, _>>()?;
        Ok((slabs, walk.fault))
    }

    fn slab(&self, cache: u64) -> Result<Slab, Fault> {
        let field = |name: &str| self.field("kmem_cache", name);
        let (name, size, order, nodes) = (field("name")?, field("size")?, field("oo.x")?, field("node")?);
        let (slabs, objects) = (self.field("kmem_cache_node", "nr_slabs")?, self.field("kmem_cache_node", "total_objects")?);
        let mut slab = Slab::default();
        let read = (|| {
            slab.name = self.string(self.number(cache, name)?)?;
            slab.object_bytes = self.number(cache, size)?;
            let order = self.number(cache, order)? >> OBJECTS_BITS;
            for node in 0..(nodes.size / 8).min(MOST_NODES) {
                let node = self.memory.u64(cache.wrapping_add(nodes.offset + 8 * node as u64))?;
                if node == 0 {
                    break;
                }
                slab.slabs = slab.slabs.saturating_add(self.number(node, slabs)?);
                slab.objects = slab.objects.saturating_add(self.number(node, objects)?);
            }
            slab.bytes = slab.slabs.saturating_mul(PAGE << order.min(16));
            Ok(())
        })();
        slab.fault = read.err();
        Ok(slab)
    }
}

/// Unit of a counter [B]; `None`: it counts events, or what others count as well.
fn unit_of(name: &str) -> Option<u64> {
    match name {
        "NR_FREE_PAGES"
        | "NR_MLOCK"
        | "NR_BOUNCE"
        | "NR_ZSPAGES"
        | "NR_ANON_MAPPED"
        | "NR_FILE_MAPPED"
        | "NR_FILE_PAGES"
        | "NR_FILE_DIRTY"
        | "NR_WRITEBACK"
        | "NR_SHMEM"
        | "NR_SLAB_RECLAIMABLE_B"
        | "NR_SLAB_UNRECLAIMABLE_B"
        | "NR_KERNEL_MISC_RECLAIMABLE"
        | "NR_PAGETABLE"
        | "NR_SECONDARY_PAGETABLE"
        | "NR_SWAPCACHE" => Some(PAGE),
        "NR_KERNEL_STACK_KB" => Some(1024),
        _ => None,
    }
}
