//! Sources of memory: files of several formats, or a running guest; and the location of each page
//! in them.

mod elf;
mod flattened;
mod guest;
mod kdump;
mod lzo;
mod segments;

use std::path::{Path, PathBuf};

use sysdock_table::Fact;

use crate::error::{DumpError, Fault, NoDump};
use flattened::Bytes;
pub use guest::Guest;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use guest::ask as ask_monitor;

/// What a file states about itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    /// Name of the format in messages.
    pub(crate) format: &'static str,
    /// VMCOREINFO, if the file has it.
    pub(crate) vmcoreinfo: Option<Vec<u8>>,
    /// Registers of processors in the file.
    pub(crate) registers: Vec<Registers>,
    /// The pages that makedumpfile left out (its option `-d`).
    pub(crate) level: Option<i32>,
    /// Problems of the file that did not prevent reading it.
    pub(crate) remarks: Vec<Fact>,
}

/// Registers of a processor when the dump was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registers {
    pub(crate) ip: u64,
    pub(crate) sp: u64,
    pub(crate) bp: u64,
    /// All registers, in the order of `elf_prstatus`: those of `pt_regs` first.
    pub(crate) all: [u64; 27],
}

/// Size of a page [B].
pub(crate) const PAGE: u64 = 4096;

/// Physical memory.
pub(crate) trait Physical: Send {
    /// Fill `out` from this address on; it must be within one page.
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), Fault>;

    /// Number of pages in the dump.
    fn pages(&self) -> u64;

    /// The address of the next page in the dump, from this address on.
    fn next_page(&self, address: u64) -> Option<u64>;

    /// The same memory for another thread; `None`: only one thread can read it.
    fn twin(&self) -> Option<Box<dyn Physical>> {
        None
    }
}

/// Source of memory.
#[derive(Debug)]
pub enum Source {
    File(PathBuf),
    /// A running guest.
    Guest(Box<Guest>),
}

impl Source {
    /// The source that a word of the command line names: a file, or `qmp:SOCKET`. A file is not
    /// opened yet; a guest is asked for the location of its memory.
    ///
    /// # Errors
    /// See [`Guest::connect`].
    pub fn named(word: &Path) -> Result<Source, DumpError> {
        match word.to_str().and_then(|word| word.strip_prefix("qmp:")) {
            Some(socket) => Guest::connect(Path::new(socket)).map(|guest| Source::Guest(Box::new(guest))),
            None => Ok(Source::File(word.into())),
        }
    }

    /// The file, or the socket of the guest.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Source::File(path) => path,
            Source::Guest(guest) => guest.socket(),
        }
    }
}

/// Open a source.
pub(crate) fn open(source: Source) -> Result<(Box<dyn Physical>, About), DumpError> {
    match source {
        Source::File(path) => open_file(&path),
        Source::Guest(guest) => Ok(guest.into_memory()),
    }
}

/// Open a file of any known format.
fn open_file(path: &Path) -> Result<(Box<dyn Physical>, About), DumpError> {
    let bytes = Bytes::open(path)?;
    let mut magic = [0; 8];
    if !bytes.read(0, &mut magic) {
        return Err(DumpError::NoDump(path.into(), NoDump::TooShort));
    }
    match &magic {
        [0x7f, b'E', b'L', b'F', ..] => elf::open(bytes, path),
        b"KDUMP   " | b"DISKDUMP" => kdump::open(bytes, path),
        _ => Err(DumpError::NoDump(path.into(), NoDump::UnknownFormat)),
    }
}

/// A number at an offset of a header; 0 beyond its end.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes_at(bytes, at))
}

/// A number at an offset of a header; 0 beyond its end.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes_at(bytes, at))
}

/// A number at an offset of a header; 0 beyond its end.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes_at(bytes, at))
}

fn bytes_at<const COUNT: usize>(bytes: &[u8], at: usize) -> [u8; COUNT] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; COUNT])
}

/// A note of an ELF file: name, type, content.
type Note<'b> = (&'b [u8], u32, &'b [u8]);

/// The notes in a segment; ends at the first that does not fit.
fn notes(mut bytes: &[u8]) -> Vec<Note<'_>> {
    let mut found = Vec::new();
    let padded = |length: u32| (length as usize).next_multiple_of(4);
    while bytes.len() >= 12 {
        let (name_length, length, kind) = (u32_at(bytes, 0), u32_at(bytes, 4), u32_at(bytes, 8));
        let (name_end, end) = (12 + padded(name_length), 12 + padded(name_length) + padded(length));
        let (Some(name), Some(content)) =
            (bytes.get(12..12 + name_length as usize), bytes.get(name_end..name_end + length as usize))
        else {
            break;
        };
        found.push((name.strip_suffix(b"\0").unwrap_or(name), kind, content));
        bytes = bytes.get(end..).unwrap_or_default();
    }
    found
}

/// Process the notes of a dump.
pub(crate) fn take_notes(bytes: &[u8], about: &mut About) {
    const PRSTATUS: u32 = 1;
    // Offset of `pr_reg` in `struct elf_prstatus` on x86-64, which contains `bp`, `ip` and `sp`
    // (arch/x86/include/asm/user_64.h).
    const REGISTERS: usize = 112;
    for (name, kind, content) in notes(bytes) {
        match name {
            b"CORE" if kind == PRSTATUS => {
                let register = |number: usize| u64_at(content, REGISTERS + 8 * number);
                let all = std::array::from_fn(register);
                about.registers.push(Registers { ip: register(16), sp: register(19), bp: register(4), all });
            }
            b"VMCOREINFO" => about.vmcoreinfo = Some(content.to_vec()),
            _ => {}
        }
    }
}
