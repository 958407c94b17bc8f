//! ORC: for each address of the kernel's code, how to find the caller's frame (Documentation/arch/x86/orc-unwinder.rst).
//!
//! Two tables of the kernel: the addresses, as offsets to where they stand, and an entry of 6 bytes for each: offsets from the registers that the
//! stack and the base pointer are found by, then a word with the registers and the kind. Source: `arch/x86/include/asm/orc_types.h`; the kinds were
//! renumbered in 6.4, when the bit `end` went.

use crate::{error::Fault, kernel::Kernel};

const ENTRY_BYTES: usize = 6;

/// What a value is found from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Unknown,
    Sp,
    Bp,
    /// The value is what lies there.
    AtSp,
    AtBp,
    /// Another register, which is not kept here.
    Other,
    /// Of the base pointer: it lies at the caller's stack pointer.
    Caller,
}

/// What lies at the end of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The address to return to.
    Call,
    /// All registers, as an interrupt left them.
    Registers,
    /// Only those that an interrupt saves by itself.
    SomeRegisters,
    /// Nothing calls this.
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
    /// Where code begins that an entry is of. Sorted, as the kernel does when it starts.
    starts: Vec<u64>,
    entries: Vec<u8>,
}

impl Table {
    /// So many entries, whose offsets lie at `place` and which lie at `entries`.
    pub(crate) fn read(kernel: &Kernel, place: u64, entries: u64, count: u64) -> Result<Table, Fault> {
        let offsets = kernel.memory.bytes(place, count * 4)?;
        let entries = kernel.memory.bytes(entries, count * ENTRY_BYTES as u64)?;
        let start = |(number, four): (usize, &[u8])| {
            let offset = i32::from_le_bytes(*four.first_chunk().expect("4 bytes"));
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
        let short = |at: usize| i16::from_le_bytes([bytes[at], bytes[at + 1]]);
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
