//! ELF cores: of kdump (`/proc/vmcore`), and of qemu, whose program headers do not follow the ELF
//! header.

use std::{path::Path, sync::Arc};

use sysdock_table::facts::dump as facts;

use super::{
    About, Physical,
    flattened::Bytes,
    segments::{Segment, Segments},
    take_notes, u16_at, u32_at, u64_at,
};
use crate::error::{Damage, DumpError, Fault, NoDump, NotReadable, Section};

const HEADER_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;
/// ELFCLASS64 and ELFDATA2LSB, in `e_ident`.
const WIDE_AND_LITTLE_ENDIAN: [u8; 2] = [2, 1];
const CORE: u16 = 4;
const X86_64: u16 = 62;
const LOAD: u32 = 1;
const NOTE: u32 = 4;
/// `e_phnum` of a file with more segments: the number is in the first section header.
const MANY: u16 = 0xffff;

#[derive(Clone, Debug)]
struct Elf {
    bytes: Arc<Bytes>,
    segments: Segments,
}

pub(super) fn open(bytes: Bytes, path: &Path) -> Result<(Box<dyn Physical>, About), DumpError> {
    let cut = |section| DumpError::Damaged(path.into(), Damage::Cut(section));
    let header = bytes.range(0, HEADER_BYTES as u64).ok_or_else(|| cut(Section::ElfHeader))?;
    let short = |at: usize| u16_at(&header, at);
    if header.get(4..6) != Some(&WIDE_AND_LITTLE_ENDIAN) || short(18) != X86_64 {
        return Err(DumpError::NotReadable(path.into(), NotReadable::ElfMachine));
    }
    if short(16) != CORE {
        return Err(DumpError::NoDump(path.into(), NoDump::ElfProgram));
    }
    let place = u64_at(&header, 32);
    let mut count = u64::from(short(56));
    if count == u64::from(MANY) {
        let section = bytes.range(u64_at(&header, 40), 64).ok_or_else(|| cut(Section::SegmentCount))?;
        count = u64::from(u32_at(&section, 44));
    }
    let table = bytes.range(place, count * SEGMENT_BYTES as u64).ok_or_else(|| cut(Section::Segments))?;
    let format = match (bytes.is_kcore(), bytes.is_flattened()) {
        (true, _) => "kcore",
        (_, true) => "ELF, flattened",
        _ => "ELF",
    };
    let mut about = About { format, ..About::default() };
    if bytes.is_kcore() {
        about.remarks.push(facts::kernel_ran());
    }
    let mut segments = Vec::new();
    for entry in table.chunks_exact(SEGMENT_BYTES) {
        let (kind, offset, physical, length) = (u32_at(entry, 0), u64_at(entry, 8), u64_at(entry, 24), u64_at(entry, 32));
        match kind {
            NOTE => match bytes.range(offset, length) {
                Some(content) => take_notes(&content, &mut about),
                None => about.remarks.push(facts::notes_cut()),
            },
            // In kcore, a range without a physical address: it is found through the page tables.
            LOAD if physical == u64::MAX => {}
            LOAD => segments.push(Segment { start: physical, length, offset }),
            _ => {}
        }
    }
    let segments = checked(segments, bytes.end(), &mut about);
    if segments.is_empty() {
        return Err(DumpError::NoDump(path.into(), NoDump::NoMemory));
    }
    Ok((Box::new(Elf { bytes: Arc::new(bytes), segments }), about))
}

/// The segments, cut to the part that the file contains.
fn checked(mut segments: Vec<Segment>, file_end: u64, about: &mut About) -> Segments {
    for segment in &mut segments {
        let there = file_end.saturating_sub(segment.offset);
        if segment.length > there {
            about.remarks.push(facts::memory_cut(format!("{:#x}", segment.start), there, segment.length));
            segment.length = there;
        }
    }
    let (found, twice) = Segments::of(segments);
    // kdump and kcore list the code of the kernel a second time, at its other address.
    let twice = twice.iter().filter(|segment| found.place(segment.start, segment.length).is_none());
    about.remarks.extend(twice.map(|segment| facts::memory_twice(format!("{:#x}", segment.start))));
    found
}

impl Physical for Elf {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), Fault> {
        let place = self.segments.place(address, out.len() as u64).ok_or(Fault::NotInDump)?;
        if self.bytes.read(place, out) { Ok(()) } else { Err(Fault::NotInDump) }
    }

    fn pages(&self) -> u64 {
        self.segments.pages()
    }

    fn next_page(&self, address: u64) -> Option<u64> {
        self.segments.next_page(address)
    }

    fn twin(&self) -> Option<Box<dyn Physical>> {
        Some(Box::new(self.clone()))
    }
}
