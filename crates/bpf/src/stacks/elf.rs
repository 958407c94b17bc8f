//! The parts of a binary file (ELF for 64 bits, little-endian) that unwinding and addresses need:
//! segments, and tables of frames.
//!
//! The file may contain anything: if a part does not fit, the file is not a binary.

use std::{
    fs::File,
    io,
    ops::Range,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;
const SHT_NOBITS: u32 = 8;
const SHF_COMPRESSED: u64 = 0x800;
/// Size of a section header.
const SECTION_BYTES: u16 = 64;
/// Largest ratio of uncompressed to compressed size. Debug information expands about ten times.
const MOST_TIMES: u64 = 200;
/// Limits for headers that are read, and for the size of a table of frames.
const MOST_HEADERS: u16 = 4096;
const LONGEST_TABLE: u64 = 256 << 20;
const LONGEST_PATH: u64 = 4096;

/// A range of the file that is mapped as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) address: u64,
    pub(crate) bytes_in_memory: u64,
}

/// A section with the addresses that it states.
pub(crate) type Section = (Range<u64>, Arc<[u8]>);

/// A binary. Addresses are those that the file itself states.
#[derive(Debug, Default)]
pub(crate) struct Binary {
    pub(crate) entry: u64,
    pub(crate) segments: Vec<Segment>,
    /// Path of the loader.
    pub(crate) loader: Option<PathBuf>,
    pub(crate) text: Option<Range<u64>>,
    pub(crate) eh_frame: Option<Section>,
    pub(crate) eh_frame_hdr: Option<Section>,
    pub(crate) got: Option<Range<u64>>,
    /// Whether it was compiled by Go, whose functions keep frame pointers.
    pub(crate) is_go: bool,
    /// Addresses to which signal handlers return.
    pub(crate) trampolines: Vec<u64>,
}

/// Open a file for reading, if it is a regular one: opening a pipe would wait.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

impl Binary {
    /// Parse a file. `None`: it is not a binary.
    pub(crate) fn read(file: &File) -> Option<Binary> {
        let header = Bytes::read(file, 0, 64)?;
        if header.0[..7] != *b"\x7fELF\x02\x01\x01" {
            return None;
        }
        let mut binary = Binary { entry: header.u64(24), ..Binary::default() };
        binary.read_segments(file, &header)?;
        // A file may have no sections: then it has no tables either.
        if let Some(sections) = section_headers(file, &header)? {
            if sections.iter().any(|section| unpacks_to_too_much(file, section)) {
                return None;
            }
            let _ = binary.read_sections(file, &header, &sections);
        }
        Some(binary)
    }

    fn read_segments(&mut self, file: &File, header: &Bytes) -> Option<()> {
        let (start, size, number) = (header.u64(32), header.u16(54), header.u16(56));
        for entry in headers(file, start, size, number, 56)? {
            let (offset, address, bytes) = (entry.u64(8), entry.u64(16), entry.u64(32));
            match entry.u32(0) {
                PT_LOAD => {
                    let bytes_in_memory = entry.u64(40);
                    address.checked_add(bytes_in_memory)?;
                    self.segments.push(Segment { offset, bytes, address, bytes_in_memory });
                }
                PT_INTERP => {
                    let path = Bytes::read(file, offset, bytes.min(LONGEST_PATH))?.0;
                    let text = path.split(|byte| *byte == 0).next().unwrap_or_default();
                    self.loader = Some(PathBuf::from(String::from_utf8_lossy(text).into_owned()));
                }
                _ => {}
            }
        }
        Some(())
    }

    fn read_sections(&mut self, file: &File, header: &Bytes, sections: &[Bytes]) -> Option<()> {
        let names = sections.get(usize::from(header.u16(62)))?;
        let names = Bytes::read(file, names.u64(24), names.u64(32).min(1 << 20))?.0;
        for section in sections {
            let name = names.get(section.u32(0) as usize..)?.split(|byte| *byte == 0).next()?;
            let (address, length) = (section.u64(16), section.u64(32));
            let range = address..address.checked_add(length)?;
            let data = || -> Option<Section> {
                let there = section.u32(4) != SHT_NOBITS && length <= LONGEST_TABLE;
                let bytes = there.then(|| Bytes::read(file, section.u64(24), length)).flatten()?;
                Some((range.clone(), bytes.0.into()))
            };
            match name {
                b".text" => {
                    self.trampolines = data().map_or(Vec::new(), |(_, code)| trampolines(range.start, &code));
                    self.text = Some(range);
                }
                b".got" => self.got = Some(range),
                // The table of functions of Go.
                b".gopclntab" | b".data.rel.ro.gopclntab" => self.is_go = true,
                b".eh_frame" => self.eh_frame = data(),
                b".eh_frame_hdr" => self.eh_frame_hdr = data(),
                _ => {}
            }
        }
        Some(())
    }

    /// The address of an offset in the file.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
        // Mappings begin at pages, segments may begin after.
        let covers = |segment: &&Segment| {
            let from = segment.offset / PAGE * PAGE;
            offset >= from && offset < segment.offset.saturating_add(segment.bytes)
        };
        let segment = self.segments.iter().find(covers)?;
        Some(segment.address.wrapping_add(offset).wrapping_sub(segment.offset))
    }

    /// The range of all addresses.
    pub(crate) fn range(&self) -> Range<u64> {
        let start = self.segments.iter().map(|segment| segment.address).min().unwrap_or(0);
        let end = self.segments.iter().map(|segment| segment.address + segment.bytes_in_memory).max().unwrap_or(0);
        start..end
    }
}

/// Addresses of the code that ends a signal handler, which is the same in every C library: `mov
/// $15, %rax; syscall` (rt_sigreturn).
fn trampolines(start: u64, code: &[u8]) -> Vec<u64> {
    const MOST: usize = 16;
    let found = memchr::memmem::find_iter(code, b"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05");
    found.take(MOST).map(|at| start.wrapping_add(at as u64)).collect()
}

/// The headers of the sections. `Some(None)`: the file has none. `None`: they have an unusual form,
/// which the symbol library might interpret in another way, so that no check here would apply to
/// it.
fn section_headers(file: &File, header: &Bytes) -> Option<Option<Vec<Bytes>>> {
    let (start, size, number) = (header.u64(40), header.u16(58), header.u16(60));
    let is_usual = if number == 0 { start == 0 } else { size == SECTION_BYTES && number <= MOST_HEADERS };
    is_usual.then(|| headers(file, start, size, number, SECTION_BYTES))
}

/// Whether a compressed section states an impossible length: the symbol library allocates as much
/// as it states.
fn unpacks_to_too_much(file: &File, section: &Bytes) -> bool {
    let (flags, at, length) = (section.u64(8), section.u64(24), section.u64(32));
    let header = (flags & SHF_COMPRESSED != 0).then(|| Bytes::read(file, at, 24)).flatten();
    header.is_some_and(|header| header.u64(8) > length.saturating_mul(MOST_TIMES))
}

/// The headers of segments or sections, each of at least `least` bytes.
fn headers(file: &File, start: u64, size: u16, number: u16, least: u16) -> Option<Vec<Bytes>> {
    if size < least || number > MOST_HEADERS {
        return None;
    }
    let all = Bytes::read(file, start, u64::from(size) * u64::from(number))?.0;
    Some(all.chunks_exact(usize::from(size)).map(|header| Bytes(header.to_vec())).collect())
}

/// Bytes of a file. Fields must be within the length that was requested.
struct Bytes(Vec<u8>);

impl Bytes {
    fn read(file: &File, at: u64, length: u64) -> Option<Bytes> {
        // Not more than the file has: the buffer is allocated before it is read.
        if at.checked_add(length)? > file.metadata().ok()?.len() {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        file.read_exact_at(&mut bytes, at).ok()?;
        Some(Bytes(bytes))
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.0[at..at + 2].try_into().expect("two bytes"))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Option<Binary> {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(bytes, 0).unwrap();
        Binary::read(&file)
    }

    #[test]
    fn this_program_is_read() {
        let path = std::env::current_exe().unwrap();
        let binary = Binary::read(&open_regular(&path).unwrap()).unwrap();
        assert!(binary.loader.unwrap().exists());
        assert!(binary.segments.iter().any(|segment| segment.address <= binary.entry));
        let (range, data) = binary.eh_frame.unwrap();
        assert_eq!(range.end - range.start, data.len() as u64);
        assert!(binary.eh_frame_hdr.is_some() && binary.text.unwrap().contains(&binary.entry));
    }

    #[test]
    fn a_section_that_says_it_unpacks_to_more_than_memory_makes_it_no_binary() {
        let mut bytes = std::fs::read("/proc/self/exe").unwrap();
        assert!(of(&bytes).is_some());
        let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        // The first section after the null section.
        let header = word(&bytes, 40) + 64;
        let content = word(&bytes, header + 24);
        bytes[header + 9] |= 0x8;
        bytes[content + 8..content + 16].copy_from_slice(&(1_u64 << 50).to_le_bytes());
        assert!(of(&bytes).is_none());
    }

    #[test]
    fn whatever_a_file_holds_is_no_reason_to_panic() {
        let whole = std::fs::read("/proc/self/exe").unwrap();
        let mut random = crate::testing::Random(5);
        for _ in 0..3000 {
            let mut bytes = whole[..4096.min(whole.len())].to_vec();
            for _ in 0..1 + random.below(6) {
                let at = random.below(600) as usize;
                bytes[at] = random.below(256) as u8;
            }
            if let Some(binary) = of(&bytes) {
                let _ = (binary.range(), binary.address_of(random.below(1 << 50)));
            }
        }
        for length in [0, 3, 63, 64, 65, 120] {
            of(&whole[..length]);
        }
        assert!(open_regular(Path::new("/dev/null")).is_err());
    }
}
