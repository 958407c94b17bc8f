//! Files of programs and libraries (ELF, elf(5)): their segments, sections and build ids.
//!
//! A file may contain anything. [`Binary`] reads one that may change or end at any time, within
//! limits; what maps a file ([`map`]) is for those that nobody else writes.

use std::{
    fs::File,
    io,
    ops::Range,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use memmap2::Mmap;
use object::{
    LittleEndian as Little, Object, ObjectSection, ReadCache,
    elf::{FileHeader64, PF_X, PT_INTERP, PT_LOAD, SHT_NOBITS, SectionHeader64},
    read::elf::{CompressionHeader, FileHeader, ProgramHeader, SectionHeader},
};

/// Size of a page [B].
pub const PAGE: u64 = 4096;
/// Largest ratio of uncompressed to compressed size. Debug information expands about ten times.
const MOST_TIMES: u64 = 200;
/// Limits for headers that are read, and for the size of a table of frames.
const MOST_HEADERS: u16 = 4096;
const LONGEST_TABLE: u64 = 256 << 20;
const LONGEST_PATH: u64 = 4096;

/// Open a file for reading, if it is a regular one: opening a pipe would wait.
///
/// # Errors
/// It cannot be opened, or is no regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Map a file for reading. `None`: it does not begin as ELF.
///
/// # Errors
/// It cannot be opened or mapped.
pub fn map(path: &Path) -> io::Result<Option<Mmap>> {
    let file = File::open(path)?;
    // SAFETY: the map is only read, as bytes. If the file is truncated meanwhile, the kernel ends
    // this process.
    let map = unsafe { Mmap::map(&file) }?;
    Ok(map.starts_with(b"\x7fELF").then_some(map))
}

/// The build id of a file, in hexadecimal digits. `None`: it has none, or is no ELF file.
#[must_use]
pub fn build_id(file: &[u8]) -> Option<String> {
    let file = object::File::parse(file).ok()?;
    build_id_of(&file)
}

pub(crate) fn build_id_of(file: &object::File<'_>) -> Option<String> {
    Some(file.build_id().ok()??.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The content of a section, as it is in the file. `None`: there is none, or this is no ELF file.
#[must_use]
pub fn section<'f>(file: &'f [u8], name: &str) -> Option<&'f [u8]> {
    object::File::parse(file).ok()?.section_by_name(name)?.data().ok()
}

/// A range of a file that is mapped as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub offset: u64,
    /// Length in the file [B].
    pub bytes: u64,
    pub address: u64,
    pub bytes_in_memory: u64,
    pub is_code: bool,
}

/// The segments of a file, as it lists them. Addresses are those that the file itself states.
#[derive(Clone, Debug, Default)]
pub struct Segments(pub Vec<Segment>);

impl Segments {
    /// The address of code at an offset in the file. `None`: it is mapped nowhere.
    ///
    /// Mappings begin at pages, segments may begin after. lld and mold put the end of one segment
    /// and the beginning of the next into the same page of the file, at different addresses: code
    /// is in the one that is code, and a mapping that begins there is of the one that begins there.
    #[must_use]
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let from = |segment: &Segment| segment.offset / PAGE * PAGE;
        let covers = |segment: &&Segment| offset >= from(segment) && offset < segment.offset.saturating_add(segment.bytes);
        let segment = self.0.iter().filter(covers).max_by_key(|segment| (segment.is_code, from(segment) == offset))?;
        Some(segment.address.wrapping_add(offset).wrapping_sub(segment.offset))
    }

    /// The range of all addresses.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        let start = self.0.iter().map(|segment| segment.address).min().unwrap_or(0);
        let end = self.0.iter().map(|segment| segment.address.saturating_add(segment.bytes_in_memory)).max().unwrap_or(0);
        start..end
    }
}

/// A section with the addresses that it states.
pub type Section = (Range<u64>, Arc<[u8]>);

/// What unwinding and addresses need of a binary for 64 bits, little-endian. Addresses are those
/// that the file itself states.
#[derive(Debug, Default)]
pub struct Binary {
    pub entry: u64,
    pub segments: Segments,
    /// Path of the loader.
    pub loader: Option<PathBuf>,
    pub text: Option<Range<u64>>,
    pub eh_frame: Option<Section>,
    pub eh_frame_hdr: Option<Section>,
    pub got: Option<Range<u64>>,
    /// Whether it was compiled by Go, whose functions keep frame pointers.
    pub is_go: bool,
    /// Addresses to which signal handlers return.
    pub trampolines: Vec<u64>,
}

type Header = FileHeader64<Little>;
type SectionHeaders<'f> = &'f [SectionHeader64<Little>];
/// The headers of a file. Contents are not read through it: it keeps all that was read.
type Headers<'f> = ReadCache<&'f File>;

impl Binary {
    /// Parse a file. `None`: it is not a binary.
    #[must_use]
    pub fn read(file: &File) -> Option<Binary> {
        let headers = Headers::new(file);
        let header = Header::parse(&headers).ok().filter(|header| header.is_little_endian() && is_usual(header))?;
        let mut binary = Binary { entry: header.e_entry(Little), ..Binary::default() };
        binary.read_segments(file, header, &headers)?;
        // A file may have no sections: then it has no tables either.
        let sections = header.section_headers(Little, &headers).unwrap_or_default();
        if sections.iter().any(|section| unpacks_to_too_much(&headers, section)) {
            return None;
        }
        let _ = binary.read_sections(file, header, &headers, sections);
        Some(binary)
    }

    fn read_segments(&mut self, file: &File, header: &Header, headers: &Headers<'_>) -> Option<()> {
        for entry in header.program_headers(Little, headers).ok()? {
            let (offset, address, bytes) = (entry.p_offset(Little), entry.p_vaddr(Little), entry.p_filesz(Little));
            match entry.p_type(Little) {
                PT_LOAD => {
                    let bytes_in_memory = entry.p_memsz(Little);
                    address.checked_add(bytes_in_memory)?;
                    let is_code = entry.p_flags(Little) & PF_X != 0;
                    self.segments.0.push(Segment { offset, bytes, address, bytes_in_memory, is_code });
                }
                PT_INTERP => {
                    let path = read_at(file, offset, bytes.min(LONGEST_PATH))?;
                    let text = path.split(|byte| *byte == 0).next().unwrap_or_default();
                    self.loader = Some(PathBuf::from(String::from_utf8_lossy(text).into_owned()));
                }
                _ => {}
            }
        }
        (!self.segments.0.is_empty()).then_some(())
    }

    fn read_sections(&mut self, file: &File, header: &Header, headers: &Headers<'_>, sections: SectionHeaders<'_>) -> Option<()> {
        let names = header.section_strings(Little, headers, sections).ok()?;
        for section in sections {
            let (address, length) = (section.sh_addr(Little), section.sh_size(Little));
            let range = address..address.checked_add(length)?;
            let data = || -> Option<Section> {
                let there = section.sh_type(Little) != SHT_NOBITS && length <= LONGEST_TABLE;
                let bytes = there.then(|| read_at(file, section.sh_offset(Little), length)).flatten()?;
                Some((range.clone(), bytes.into()))
            };
            match section.name(Little, names).ok()? {
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
}

/// Whether the numbers of headers are within limits, and those of sections in the usual form. The
/// symbol library might interpret another form in another way, so that no check here would apply to
/// it.
fn is_usual(header: &Header) -> bool {
    let (start, size, number) = (header.e_shoff(Little), header.e_shentsize(Little), header.e_shnum(Little));
    let has_sections = start != 0 && usize::from(size) == size_of::<SectionHeader64<Little>>() && number <= MOST_HEADERS;
    (if number == 0 { start == 0 } else { has_sections }) && header.e_phnum(Little) <= MOST_HEADERS
}

/// Whether a compressed section states an impossible length, or none: the symbol library allocates
/// as much as it states.
fn unpacks_to_too_much(headers: &Headers<'_>, section: &SectionHeader64<Little>) -> bool {
    match section.compression(Little, headers) {
        Ok(Some((header, ..))) => header.ch_size(Little) > section.sh_size(Little).saturating_mul(MOST_TIMES),
        Ok(None) => false,
        Err(_) => true,
    }
}

/// Addresses of the code that ends a signal handler, which is the same in every C library: `mov
/// $15, %rax; syscall` (rt_sigreturn).
fn trampolines(start: u64, code: &[u8]) -> Vec<u64> {
    const MOST: usize = 16;
    let found = memchr::memmem::find_iter(code, b"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05");
    found.take(MOST).map(|at| start.wrapping_add(at as u64)).collect()
}

fn read_at(file: &File, at: u64, length: u64) -> Option<Vec<u8>> {
    // Not more than the file has: the buffer is allocated before it is read.
    if at.checked_add(length)? > file.metadata().ok()?.len() {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Option<Binary> {
        // Each thread runs one test at a time.
        let name = format!("sysdock-elf-{}-{:?}", std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        let file = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        Binary::read(&file)
    }

    #[test]
    fn code_that_shares_a_page_of_the_file_has_its_own_address() {
        let segment = |offset, bytes, address, is_code| Segment { offset, bytes, address, bytes_in_memory: bytes, is_code };
        let file = [segment(0, 0x1234, 0, false), segment(0x1240, 0x500, 0x2240, true), segment(0x1740, 0x100, 0x3740, false)];
        let segments = Segments(file.into());
        let address = |offset| segments.address_of(offset);
        assert_eq!(
            [address(0x1000), address(0x1300), address(0x100), address(0x1750)].map(Option::unwrap),
            [0x2000, 0x2300, 0x100, 0x3750]
        );
        assert_eq!(address(0x9000), None);
    }

    #[test]
    fn this_program_is_read() {
        let path = std::env::current_exe().unwrap();
        let binary = Binary::read(&open_regular(&path).unwrap()).unwrap();
        assert!(binary.loader.unwrap().exists());
        assert!(binary.segments.0.iter().any(|segment| segment.address <= binary.entry));
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
        let mut state = 5_u64;
        // Knuth's MMIX generator: its high bits are random enough.
        let mut below = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % limit
        };
        for _ in 0..3000 {
            let mut bytes = whole[..4096.min(whole.len())].to_vec();
            for _ in 0..1 + below(6) {
                let at = below(600);
                bytes[at] = below(256) as u8;
            }
            if let Some(binary) = of(&bytes) {
                let _ = (binary.segments.range(), binary.segments.address_of((below(1 << 30) << 20) as u64));
            }
        }
        for length in [0, 3, 63, 64, 65, 120] {
            of(&whole[..length]);
        }
        assert!(open_regular(Path::new("/dev/null")).is_err());
    }
}
