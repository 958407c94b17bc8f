//! Translates addresses of the kernel: page tables of x86-64 with four or five levels.

use std::cell::Cell;

use sysdock_table::Cancel;

use crate::{
    error::Fault,
    format::{PAGE, Physical},
    vmcoreinfo::VmCoreInfo,
};

const PRESENT: u64 = 1;
const LARGE: u64 = 1 << 7;
/// Bits of the physical address in an entry; those above are of protection keys and encryption.
const FRAME: u64 = 0x000f_ffff_ffff_f000;
/// Address at which the kernel's image is mapped (Documentation/arch/x86/x86_64/mm.rst).
const IMAGE: u64 = 0xffff_ffff_8000_0000;
const TRANSLATIONS: usize = 4096;
/// Largest physical memory with four levels [B].
const DIRECT_MAP_BYTES: u64 = 1 << 46;

/// Memory of the kernel.
pub(crate) struct Memory {
    pub(crate) physical: Box<dyn Physical>,
    /// Physical address of the kernel's page table.
    table: u64,
    levels: u32,
    /// Bits that mark encrypted pages.
    encrypted: u64,
    /// Address at which all physical memory is mapped, once it is known.
    direct_map: Option<u64>,
    /// Once cancelled, nothing can be read: whatever is in progress ends.
    cancel: Cancel,
    /// Cache of translations: page number and physical address.
    known: Vec<Cell<(u64, u64)>>,
}

impl Memory {
    /// `None`: the address of the page table is unknown.
    pub(crate) fn new(physical: Box<dyn Physical>, info: &VmCoreInfo) -> Option<Memory> {
        let table = info.symbol("init_top_pgt").or_else(|| info.symbol("swapper_pg_dir"))?;
        let base = info.number("phys_base")?;
        let table = table.checked_sub(IMAGE)?.checked_add_signed(base)?;
        let levels = if info.number("pgtable_l5_enabled") == Some(1) { 5 } else { 4 };
        let encrypted = info.number("sme_mask").unwrap_or(0).cast_unsigned();
        let known = vec![Cell::new((u64::MAX, 0)); TRANSLATIONS];
        Some(Memory { physical, table, levels, encrypted, direct_map: None, cancel: Cancel::default(), known })
    }

    /// Set the address at which all physical memory is mapped (`page_offset_base`): most reads are
    /// there, and need no page table then. It is used only if the page table agrees.
    pub(crate) fn set_direct_map(&mut self, start: u64) {
        let agrees = self.walk(start.wrapping_add(self.table)) == Ok(self.table);
        self.direct_map = Some(start).filter(|_| agrees);
    }

    /// The same memory for another thread, with a cache of its own. `None`: only one thread can
    /// read it.
    pub(crate) fn twin(&self) -> Option<Memory> {
        let (physical, known) = (self.physical.twin()?, vec![Cell::new((u64::MAX, 0)); TRANSLATIONS]);
        Some(Memory { physical, cancel: self.cancel.clone(), known, ..*self })
    }

    /// Refuse all reading once this is requested.
    pub(crate) fn set_cancel(&mut self, cancel: &Cancel) {
        self.cancel = cancel.clone();
    }

    /// Whether reading was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.requested()
    }

    /// Fill `out` from this address of the kernel on.
    pub(crate) fn read(&self, address: u64, out: &mut [u8]) -> Result<(), Fault> {
        if self.is_cancelled() {
            return Err(Fault::Interrupted);
        }
        let (mut address, mut rest) = (address, out);
        while !rest.is_empty() {
            let here = rest.len().min((PAGE - address % PAGE) as usize);
            let (now, later) = rest.split_at_mut(here);
            self.physical.read(self.translate(address)?, now)?;
            rest = later;
            address = address.wrapping_add(here as u64);
        }
        Ok(())
    }

    pub(crate) fn u64(&self, address: u64) -> Result<u64, Fault> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(crate) fn u32(&self, address: u64) -> Result<u32, Fault> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// A number of 1 to 8 bytes.
    pub(crate) fn number(&self, address: u64, size: usize) -> Result<u64, Fault> {
        let mut bytes = [0; 8];
        self.read(address, bytes.get_mut(..size).ok_or(Fault::NoType)?)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Bytes from this address on; at most 64 MiB, so that a wrong length does no harm.
    pub(crate) fn bytes(&self, address: u64, length: u64) -> Result<Vec<u8>, Fault> {
        let length = usize::try_from(length).ok().filter(|length| *length <= 64 << 20).ok_or(Fault::TooLong)?;
        let mut out = vec![0; length];
        self.read(address, &mut out)?;
        Ok(out)
    }

    /// The physical address for one of the kernel.
    pub(crate) fn physical_of(&self, address: u64) -> Result<u64, Fault> {
        self.translate(address)
    }

    /// The address in the direct map for a physical address, if that map is known.
    pub(crate) fn mapped(&self, physical: u64) -> Option<u64> {
        self.direct_map.map(|start| start.wrapping_add(physical))
    }

    fn translate(&self, address: u64) -> Result<u64, Fault> {
        if let Some(physical) = self.direct_map.and_then(|start| address.checked_sub(start)).filter(|far| *far < DIRECT_MAP_BYTES)
        {
            return Ok(physical);
        }
        let page = address / PAGE;
        #[expect(clippy::indexing_slicing, reason = "the remainder is less than the length")]
        let known = &self.known[(page as usize ^ (page >> 12) as usize) % TRANSLATIONS];
        let (known_page, frame) = known.get();
        if known_page == page {
            return Ok(frame | (address % PAGE));
        }
        let found = self.walk(address)?;
        known.set((page, found & !(PAGE - 1)));
        Ok(found)
    }

    fn walk(&self, address: u64) -> Result<u64, Fault> {
        let width = 12 + 9 * self.levels;
        // An address must be the sign extension of its lower bits.
        let shift = 64 - width;
        if address.cast_signed() << shift >> shift != address.cast_signed() {
            return Err(Fault::NotMapped);
        }
        let mut table = self.table;
        for level in (0..self.levels).rev() {
            let shift = 12 + 9 * level;
            let mut bytes = [0; 8];
            self.physical.read(table + (address >> shift & 511) * 8, &mut bytes)?;
            let entry = u64::from_le_bytes(bytes) & !self.encrypted;
            if entry & PRESENT == 0 {
                return Err(Fault::NotMapped);
            }
            if level == 0 || (level <= 2 && entry & LARGE != 0) {
                let inside = (1 << shift) - 1;
                return Ok(entry & FRAME & !inside | address & inside);
            }
            table = entry & FRAME;
        }
        Err(Fault::NotMapped)
    }
}
