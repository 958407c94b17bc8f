//! Pages with data of users: the memory of processes and the content of files. They are read only
//! on request.

use std::{cell::RefCell, collections::hash_map::Entry};

use rustc_hash::FxHashMap;
use sysdock_symbols::btf::Field;

use crate::{error::Fault, format::PAGE, kernel::Kernel};

/// How a page is marked as a slab with objects of the kernel: its `mapping` means something else
/// then.
enum SlabMark {
    /// A bit of its flags, until 6.9.
    Flag(Field, u64),
    /// Its type, or the upper byte of it.
    Type(Field, u64),
}

/// Offsets in `struct page`, and a cache of answers. The `struct page` of all pages are in one
/// array.
pub(crate) struct UserPages {
    array: u64,
    size: u64,
    mapping: Field,
    head: Field,
    uses: Field,
    slab: SlabMark,
    known: RefCell<FxHashMap<u64, bool>>,
}

impl UserPages {
    pub(crate) fn of(kernel: &Kernel) -> Result<UserPages, Fault> {
        let number = |name: &str| kernel.info.number(name).map(i64::cast_unsigned);
        let slab = match (number("PG_slab"), number("PAGE_SLAB_MAPCOUNT_VALUE")) {
            (_, Some(value)) => SlabMark::Type(kernel.field("page", "page_type")?, value & 0xffff_ffff),
            (Some(bit), None) => SlabMark::Flag(kernel.any_field("page", &["flags.f", "flags"])?, 1 << (bit & 63)),
            (None, None) => return Err(Fault::NoType),
        };
        Ok(UserPages {
            array: kernel.memory.u64(kernel.symbol("vmemmap_base")?)?,
            size: kernel.types.size_of("page").ok_or(Fault::NoType)?,
            mapping: kernel.field("page", "mapping")?,
            head: kernel.field("page", "compound_head")?,
            uses: kernel.field("page", "_refcount.counter")?,
            slab,
            known: RefCell::default(),
        })
    }

    /// Whether a physical address is in a page of users. A page of which nothing is known counts as
    /// one.
    pub(crate) fn has(&self, kernel: &Kernel, physical: u64) -> bool {
        match self.known.borrow_mut().entry(physical / PAGE) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => *place.insert(self.find(kernel, physical / PAGE).unwrap_or(true)),
        }
    }

    fn find(&self, kernel: &Kernel, page: u64) -> Result<bool, Fault> {
        let own = self.array.wrapping_add(page.wrapping_mul(self.size));
        // In a compound page the first page has the facts; the others point to it.
        let head = kernel.number(own, self.head)?;
        let page = if head & 1 == 1 { head - 1 } else { own };
        let is_slab = match &self.slab {
            SlabMark::Flag(flags, mask) => kernel.number(page, *flags)? & mask != 0,
            SlabMark::Type(kind, value) if value & 0xff_ffff == 0 => kernel.number(page, *kind)? >> 24 == value >> 24,
            SlabMark::Type(kind, value) => kernel.number(page, *kind)? == *value,
        };
        // A free page still has its old content.
        Ok(!is_slab && (kernel.number(page, self.mapping)? != 0 || kernel.number(page, self.uses)? == 0))
    }
}
