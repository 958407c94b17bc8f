//! ORC: how to find the caller's frame for each address of the kernel's code
//! (Documentation/arch/x86/orc-unwinder.rst).
//!
//! Two tables of the kernel: the addresses, as offsets relative to their own location, and an entry
//! of 6 bytes for each: offsets from the registers by which the stack and base pointer are found,
//! then a word with the registers and the kind. Source: `arch/x86/include/asm/orc_types.h`; the
//! kinds were renumbered in 6.4, when the bit `end` was removed.

use crate::{
    error::Fault,
    format::{u16_at, u32_at},
    kernel::Kernel,
};

const ENTRY_BYTES: usize = 6;

/// The base from which a value is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Unknown,
    Sp,
    Bp,
    /// The value is in memory at the stack pointer.
    AtSp,
    AtBp,
    /// Another register, which is not tracked here.
    Other,
    /// For the base pointer: it is relative to the caller's stack pointer.
    Caller,
}

/// What is at the end of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The return address.
    Call,
    /// All registers, saved by an interrupt.
    Registers,
    /// Only the registers that the processor saves at an interrupt.
    SomeRegisters,
    /// Nothing calls this function.
    End,
    Unknown,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) sp: (Base, i64),
    pub(crate) bp: (Base, i64),
    pub(crate) kind: Kind,
}

/// Entries of the kernel, or of one of its modules.
pub(crate) struct Table {
    /// First address of the code of each entry. Sorted, as the kernel does at start.
    starts: Vec<u64>,
    entries: Vec<u8>,
}

impl Table {
    /// Read `count` entries at `entries`, whose offsets are at `place`.
    pub(crate) fn read(kernel: &Kernel, place: u64, entries: u64, count: u64) -> Result<Table, Fault> {
        let offsets = kernel.memory.bytes(place, count * 4)?;
        let entries = kernel.memory.bytes(entries, count * ENTRY_BYTES as u64)?;
        let start = |(number, four): (usize, &[u8])| {
            let offset = u32_at(four, 0).cast_signed();
            place.wrapping_add(4 * number as u64).wrapping_add_signed(i64::from(offset))
        };
        let starts: Vec<u64> = offsets.chunks_exact(4).enumerate().map(start).collect();
        if starts.is_sorted() { Ok(Table { starts, entries }) } else { Err(Fault::Damaged) }
    }

    fn entry(&self, ip: u64) -> Option<&[u8]> {
        let place = self.starts.partition_point(|start| *start <= ip).checked_sub(1)?;
        self.entries.get(place * ENTRY_BYTES..(place + 1) * ENTRY_BYTES)
    }
}

/// The tables of a kernel.
pub(crate) struct Orc<'k> {
    kernel: &'k Kernel,
    table: Table,
    /// Whether the kinds are those of before 6.4.
    has_end: bool,
}

impl Orc<'_> {
    pub(crate) fn read(kernel: &Kernel) -> Result<Orc<'_>, Fault> {
        let range = |name: &str| -> Result<(u64, u64), Fault> {
            let (start, end) = (kernel.symbol(&format!("__start_{name}"))?, kernel.symbol(&format!("__stop_{name}"))?);
            Ok((start, end.wrapping_sub(start)))
        };
        let ((place, bytes), (entries, entry_bytes)) = (range("orc_unwind_ip")?, range("orc_unwind")?);
        let count = bytes / 4;
        if count.checked_mul(ENTRY_BYTES as u64) != Some(entry_bytes) {
            return Err(Fault::Damaged);
        }
        let table = Table::read(kernel, place, entries, count)?;
        Ok(Orc { kernel, table, has_end: kernel.types.field("orc_entry", "end").is_some() })
    }

    pub(crate) fn entry(&self, ip: u64) -> Option<Entry> {
        let table = if self.kernel.image.contains(&ip) { &self.table } else { self.kernel.code_at(ip)?.orc.as_ref()? };
        let bytes = table.entry(ip)?;
        let short = |at: usize| u16_at(bytes, at).cast_signed();
        let word = short(4).cast_unsigned();
        let base = |register: u16| match register {
            0 => Base::Unknown,
            1 => Base::Caller,
            4 => Base::Bp,
            5 => Base::Sp,
            8 => Base::AtBp,
            9 => Base::AtSp,
            _ => Base::Other,
        };
        let kind = if self.has_end {
            match (word >> 10 & 1, word >> 8 & 3) {
                (1, _) => Kind::End,
                (_, 0) => Kind::Call,
                (_, 1) => Kind::Registers,
                (_, 2) => Kind::SomeRegisters,
                _ => Kind::Unknown,
            }
        } else {
            match word >> 8 & 7 {
                1 => Kind::End,
                2 => Kind::Call,
                3 => Kind::Registers,
                4 => Kind::SomeRegisters,
                _ => Kind::Unknown,
            }
        };
        let (sp, bp) = (base(word & 15), base(word >> 4 & 15));
        Some(Entry { sp: (sp, i64::from(short(0))), bp: (bp, i64::from(short(2))), kind })
    }
}
