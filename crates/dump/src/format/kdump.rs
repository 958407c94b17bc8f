//! Dumps of makedumpfile (`KDUMP   `, versions 1 to 6): pages that are compressed separately, with
//! zlib, LZO, snappy or zstd.
//!
//! Blocks: header, sub-header, a bitmap of the existing pages, one of those in the file; then a
//! descriptor of 24 bytes for each of the latter, in order, and the pages. Source: `diskdump_mod.h`
//! and `diskdump.h` of makedumpfile 1.7 and crash 8.

use std::{
    cell::RefCell,
    io,
    ops::Range,
    path::Path,
    sync::{Arc, Mutex},
};

use rustc_hash::FxHashMap;

use sysdock_table::facts::dump as facts;

use super::{About, Physical, flattened::Bytes, take_notes, u32_at, u64_at};
use crate::error::{Damage, DumpError, Fault, NotReadable, Section};

const PAGE: usize = super::PAGE as usize;
const HEADER_BYTES: u64 = 464;
/// Fifth of the six names of 65 bytes in `struct new_utsname`.
const MACHINE: Range<usize> = 272..337;
const SUB_HEADER_BYTES: u64 = 104;
const DESCRIPTOR_BYTES: usize = 24;
/// Number of decompressed pages that each thread caches: 16 MiB.
const KEPT_PAGES: usize = 4096;
/// Number of pages that threads share: one finds tasks, and others read them soon after.
const LEFT_PAGES: usize = 4096;

const ZLIB: u32 = 1;
const LZO: u32 = 2;
const SNAPPY: u32 = 4;
const ZSTD: u32 = 0x20;

struct Kdump {
    file: Arc<File>,
    state: RefCell<State>,
}

/// State that all reading threads share.
struct File {
    bytes: Bytes,
    /// A bit for each page in the file.
    bitmap: Vec<u64>,
    /// Number of set bits before each word.
    before: Vec<u32>,
    /// Offset of the descriptors.
    descriptors: u64,
    /// Pages that threads have left for each other.
    left: Mutex<Kept>,
}

/// A decompressed page.
type Content = Arc<[u8; PAGE]>;

/// A cache of pages.
#[derive(Default)]
struct Kept {
    slots: FxHashMap<u64, usize>,
    pages: Vec<(u64, Content)>,
    /// Index of the page that is replaced next.
    hand: usize,
}

/// State of one thread.
struct State {
    kept: Kept,
    zlib: flate2::Decompress,
    zstd: zstd::bulk::Decompressor<'static>,
}

pub(super) fn open(bytes: Bytes, path: &Path) -> Result<(Box<dyn Physical>, About), DumpError> {
    let damaged = |damage| DumpError::Damaged(path.into(), damage);
    let header = bytes.range(0, HEADER_BYTES).ok_or_else(|| damaged(Damage::Cut(Section::Header)))?;
    let number = |at: usize| u32_at(&header, at);
    let (version, block, sub_blocks, bitmap_blocks) = (number(8), number(428), number(432), number(436));
    if block as usize != PAGE {
        return Err(damaged(Damage::BlockBytes(block)));
    }
    let block = PAGE as u64;
    let machine = header.get(MACHINE).and_then(|name| name.split(|byte| *byte == 0).next()).unwrap_or_default();
    // In dumps that qemu wrote it is empty.
    if !matches!(machine, b"" | b"x86_64") {
        let machine = String::from_utf8_lossy(machine).into_owned();
        return Err(DumpError::NotReadable(path.into(), NotReadable::Machine(machine)));
    }
    let mut about = About { format: if bytes.is_flattened() { "kdump, flattened" } else { "kdump" }, ..About::default() };
    read_sub_header(&bytes, block, version, &mut about);
    let half = u64::from(bitmap_blocks) * block / 2;
    let start = block * (1 + u64::from(sub_blocks));
    let bitmap = bytes.range(start + half, half).ok_or_else(|| damaged(Damage::Cut(Section::Bitmap)))?;
    if bitmap.is_empty() {
        return Err(damaged(Damage::EmptyBitmap));
    }
    let bitmap: Vec<u64> = bitmap.chunks_exact(8).map(|word| u64_at(word, 0)).collect();
    let mut sum = 0_u32;
    let mut before = Vec::with_capacity(bitmap.len());
    for word in &bitmap {
        before.push(sum);
        sum += word.count_ones();
    }
    let descriptors = start + 2 * half;
    let wanted = descriptors.saturating_add(u64::from(sum) * DESCRIPTOR_BYTES as u64);
    if wanted > bytes.end() {
        about.remarks.push(facts::pages_after_end(sum));
    }
    if bytes.is_cut {
        about.remarks.push(facts::flattened_without_end());
    }
    let state = State::new().map_err(|error| DumpError::Io(path.into(), error))?;
    let file = Arc::new(File { bytes, bitmap, before, descriptors, left: Mutex::default() });
    Ok((Box::new(Kdump { file, state: RefCell::new(state) }), about))
}

/// Read VMCOREINFO, and the registers of processors.
fn read_sub_header(bytes: &Bytes, at: u64, version: u32, about: &mut About) {
    let Some(header) = bytes.range(at, SUB_HEADER_BYTES) else {
        about.remarks.push(facts::second_header_cut());
        return;
    };
    if version >= 1 {
        about.level = Some(u32_at(&header, 8).cast_signed());
    }
    let range = |place: usize| bytes.range(u64_at(&header, place), u64_at(&header, place + 8)).filter(|found| !found.is_empty());
    if version >= 4 {
        match range(48) {
            Some(notes) => take_notes(&notes, about),
            None if u64_at(&header, 56) > 0 => about.remarks.push(facts::processor_notes_unread()),
            None => {}
        }
    }
    if version >= 3 && about.vmcoreinfo.is_none() {
        about.vmcoreinfo = range(32);
    }
}

impl File {
    /// Index of a page among those in the file.
    fn place_of(&self, page: u64) -> Option<u64> {
        let word = usize::try_from(page / 64).ok()?;
        let (bits, before) = (*self.bitmap.get(word)?, self.before.get(word)?);
        let bit = page % 64;
        (bits >> bit & 1 == 1).then(|| u64::from(*before) + u64::from((bits & ((1 << bit) - 1)).count_ones()))
    }

    fn read_page(&self, page: u64, state: &mut State, out: &mut [u8; PAGE]) -> Result<(), Fault> {
        let place = self.place_of(page).ok_or(Fault::NotInDump)?;
        let mut descriptor = [0; DESCRIPTOR_BYTES];
        if !self.bytes.read(self.descriptors + place * DESCRIPTOR_BYTES as u64, &mut descriptor) {
            return Err(Fault::NotInDump);
        }
        let (offset, size, flags) = (u64_at(&descriptor, 0), u32_at(&descriptor, 8) as usize, u32_at(&descriptor, 12));
        if size > 2 * PAGE {
            return Err(Fault::Damaged);
        }
        if let Some(packed) = self.bytes.slice(offset, size) {
            return unpack(packed, flags, state, out).ok_or(Fault::Damaged);
        }
        let packed = self.bytes.range(offset, size as u64).ok_or(Fault::NotInDump)?;
        unpack(&packed, flags, state, out).ok_or(Fault::Damaged)
    }
}

/// Decompress a page; `None`: the data is no page.
fn unpack(packed: &[u8], flags: u32, state: &mut State, out: &mut [u8; PAGE]) -> Option<()> {
    match flags & (ZLIB | LZO | SNAPPY | ZSTD) {
        0 => out.copy_from_slice(packed.get(..PAGE)?),
        ZLIB => {
            state.zlib.reset(true);
            let status = state.zlib.decompress(packed, out, flate2::FlushDecompress::Finish).ok()?;
            (status == flate2::Status::StreamEnd && state.zlib.total_out() == PAGE as u64).then_some(())?;
        }
        LZO => (super::lzo::unpack(packed, out)? == PAGE).then_some(())?,
        SNAPPY => (snap::raw::Decoder::new().decompress(packed, out).ok()? == PAGE).then_some(())?,
        ZSTD => (state.zstd.decompress_to_buffer(packed, &mut out[..]).ok()? == PAGE).then_some(())?,
        _ => return None,
    }
    Some(())
}

impl Physical for Kdump {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), Fault> {
        let (page, inside) = (address / PAGE as u64, (address % PAGE as u64) as usize);
        let state = &mut *self.state.borrow_mut();
        let slot = match state.kept.slots.get(&page) {
            Some(slot) => *slot,
            None => {
                let content = self.page(page, state)?;
                state.kept.keep(page, content, KEPT_PAGES)
            }
        };
        let content = state.kept.pages.get(slot).and_then(|(_, content)| content.get(inside..inside + out.len()));
        out.copy_from_slice(content.ok_or(Fault::NotInDump)?);
        Ok(())
    }

    fn pages(&self) -> u64 {
        self.file.bitmap.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    fn next_page(&self, address: u64) -> Option<u64> {
        let first = address.div_ceil(PAGE as u64);
        let start = usize::try_from(first / 64).ok()?;
        self.file.bitmap.iter().enumerate().skip(start).find_map(|(word, bits)| {
            let bits = if word == start { bits >> (first % 64) << (first % 64) } else { *bits };
            (bits != 0).then(|| (word as u64 * 64 + u64::from(bits.trailing_zeros())) * PAGE as u64)
        })
    }

    fn twin(&self) -> Option<Box<dyn Physical>> {
        let state = RefCell::new(State::new().ok()?);
        Some(Box::new(Kdump { file: Arc::clone(&self.file), state }))
    }
}

impl Kdump {
    /// A page that this thread has not cached: from another thread, or from the file.
    fn page(&self, page: u64, state: &mut State) -> Result<Content, Fault> {
        let is_alone = Arc::strong_count(&self.file) == 1;
        let left = || self.file.left.lock().ok().filter(|_| !is_alone);
        if let Some(content) = left().and_then(|left| left.content(page)) {
            return Ok(content);
        }
        let mut content = Arc::new([0; PAGE]);
        self.file.read_page(page, state, Arc::get_mut(&mut content).ok_or(Fault::Damaged)?)?;
        if let Some(mut left) = left() {
            left.keep(page, Arc::clone(&content), LEFT_PAGES);
        }
        Ok(content)
    }
}

impl State {
    fn new() -> io::Result<State> {
        Ok(State { kept: Kept::default(), zlib: flate2::Decompress::new(true), zstd: zstd::bulk::Decompressor::new()? })
    }
}

impl Kept {
    /// A page that is cached.
    fn content(&self, page: u64) -> Option<Content> {
        self.slots.get(&page).and_then(|slot| self.pages.get(*slot)).map(|(_, content)| Arc::clone(content))
    }

    /// Cache a page, in place of an old one if there are `most`. Returns the index of its slot.
    fn keep(&mut self, page: u64, content: Content, most: usize) -> usize {
        let slot = if self.pages.len() < most {
            self.pages.push((page, content));
            self.pages.len() - 1
        } else {
            let slot = self.hand;
            self.hand = (self.hand + 1) % most;
            if let Some(kept) = self.pages.get_mut(slot) {
                self.slots.remove(&kept.0);
                *kept = (page, content);
            }
            slot
        };
        self.slots.insert(page, slot);
        slot
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Pages 1, 64 and 130 of a dump, each with a pattern of its own.
    const PAGES: [u64; 3] = [1, 64, 130];

    fn page(number: u64) -> Vec<u8> {
        (0..PAGE).map(|at| ((at as u64 * number) >> 3) as u8).collect()
    }

    fn packed(flag: u32, page: &[u8]) -> Vec<u8> {
        match flag {
            ZLIB => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(page).expect("memory");
                encoder.finish().expect("memory")
            }
            ZSTD => zstd::bulk::compress(page, 3).expect("memory"),
            SNAPPY => snap::raw::Encoder::new().compress_vec(page).expect("memory"),
            _ => page.to_vec(),
        }
    }

    /// A dump in the layout of `writeout_dump_header` and others of makedumpfile.
    fn dump(flag: u32) -> Vec<u8> {
        let mut file = vec![0; 4 * PAGE];
        file[..8].copy_from_slice(b"KDUMP   ");
        let mut put = |at: usize, value: u32| file[at..at + 4].copy_from_slice(&value.to_le_bytes());
        put(8, 6);
        put(428, PAGE as u32);
        put(432, 1);
        put(436, 2);
        put(PAGE + 8, 31);
        for number in PAGES {
            file[3 * PAGE + number as usize / 8] |= 1 << (number % 8);
        }
        let contents: Vec<Vec<u8>> = PAGES.iter().map(|number| packed(flag, &page(*number))).collect();
        let mut offset = 4 * PAGE + contents.len() * DESCRIPTOR_BYTES;
        for content in &contents {
            file.extend((offset as u64).to_le_bytes());
            file.extend((content.len() as u32).to_le_bytes());
            file.extend(flag.to_le_bytes());
            file.extend(0_u64.to_le_bytes());
            offset += content.len();
        }
        file.extend(contents.concat());
        file
    }

    fn opened(content: &[u8]) -> Result<(Box<dyn Physical>, About), DumpError> {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(content).expect("room");
        super::super::open_file(file.path())
    }

    #[test]
    fn pages_of_each_compression_are_read_and_others_are_not_there() {
        for flag in [0, ZLIB, SNAPPY, ZSTD] {
            let (memory, about) = opened(&dump(flag)).expect("a dump");
            assert_eq!((about.format, about.level, memory.pages()), ("kdump", Some(31), 3));
            for number in PAGES {
                let mut part = [0; 100];
                memory.read(number * PAGE as u64 + 50, &mut part).expect("it is there");
                assert_eq!(part, page(number)[50..150], "{flag}");
            }
            assert_eq!(memory.read(2 * PAGE as u64, &mut [0; 8]), Err(Fault::NotInDump));
            assert_eq!(memory.next_page(2 * PAGE as u64), Some(64 * PAGE as u64));
            assert_eq!(memory.next_page(131 * PAGE as u64), None);
        }
    }

    #[test]
    fn each_byte_may_be_any_other() {
        for flag in [ZLIB, SNAPPY, ZSTD] {
            let whole = dump(flag);
            for at in (0..whole.len()).step_by(37) {
                let mut bad = whole.clone();
                bad[at] ^= 0xa5;
                let Ok((memory, _)) = opened(&bad) else { continue };
                for number in 0..200 {
                    let _ = memory.read(number * PAGE as u64, &mut [0; 8]);
                }
            }
        }
    }

    #[test]
    fn flattened_pieces_are_put_where_they_belong_and_later_ones_win() {
        let whole = dump(ZLIB);
        let mut flat = b"makedumpfile\0\0\0\0".to_vec();
        flat.resize(4096, 0);
        let mut add = |offset: usize, content: &[u8]| {
            flat.extend((offset as i64).to_be_bytes());
            flat.extend((content.len() as i64).to_be_bytes());
            flat.extend(content);
        };
        add(1000, &whole[1000..]);
        add(0, &[0xff; 3000]);
        add(0, &whole[..2000]);
        add(1500, &whole[1500..3000]);
        flat.extend([0xff; 16]);
        let (memory, about) = opened(&flat).expect("a dump");
        assert_eq!((about.format, memory.pages(), about.remarks.len()), ("kdump, flattened", 3, 0));
        let mut part = [0; 100];
        memory.read(130 * PAGE as u64, &mut part).expect("it is there");
        assert_eq!(part, page(130)[..100]);
        let (_, about) = opened(&flat[..flat.len() - 16]).expect("a dump");
        assert_eq!(about.remarks, [facts::flattened_without_end()]);
    }
}
