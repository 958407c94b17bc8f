//! The event file of an instruction trace (`trace.sdit`): every block that was executed, and every access to memory, in order.
//!
//! A file is the magic `SDIT` and a version (u32), then sections. Each has a head of 24 bytes, little-endian: kind (u32), CRC-32C of the
//! payload as it lies in the file (u32), its length (u64), its length without compression (u64). Payloads:
//!
//! | kind | payload |
//! |---|---|
//! | 1 header | JSON: what was known when recording began |
//! | 2 blocks | zstd: entries of the dictionary in order of their numbers, as in [`dictionary`] |
//! | 3 events | the numbers of [`Indexed`] but its offset, lengths of the streams, then the streams of `coding.rs`, each zstd |
//! | 4 facts | zstd, JSON: what is known afterwards; the last one counts |
//! | 5 index | JSON: where each section of events lies ([`Indexed`]); written when recording ends |
//!
//! Each section of events can be decoded without those before it, but for the dictionary. A file whose writer was killed has no index and perhaps
//! half a section: what is whole can be read, and [`Reader::is_complete`] shows it.

mod coding;
pub mod dictionary;
mod model;
mod reader;
pub mod ring;
mod word;
mod writer;

pub use dictionary::Block;
pub use reader::Reader;
pub use word::{Access, Event, Note};
pub use writer::{Summary, Writer};

/// The first eight bytes: magic and version.
pub const MAGIC: [u8; 8] = *b"SDIT\x01\0\0\0";
/// Words in a section, at most.
pub const SECTION_EVENTS: u64 = 1 << 22;

pub(crate) const HEADER: u32 = 1;
pub(crate) const BLOCKS: u32 = 2;
pub(crate) const EVENTS: u32 = 3;
pub(crate) const FACTS: u32 = 4;
pub(crate) const INDEX: u32 = 5;

/// What is written in the header and among the facts.
pub type Facts = serde_json::Map<String, serde_json::Value>;

/// Bytes that no writer wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage;

/// Why a file cannot be read.
#[derive(Debug)]
pub enum FileError {
    /// The operating system reported it.
    Io(std::io::Error),
    /// It does not begin as event files do.
    NoEventFile,
    /// It is of a version that this reader does not know.
    Version(u32),
    /// A section is not as it was written: where it begins.
    Damaged(u64),
}

impl From<std::io::Error> for FileError {
    fn from(error: std::io::Error) -> FileError {
        FileError::Io(error)
    }
}

/// A section of events, as the index has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Indexed {
    /// Where its head lies.
    pub offset: u64,
    /// Number of its first event.
    pub first_event: u64,
    /// How many events it has.
    pub events: u64,
    /// How many instructions were executed before it, and how many in it, as entered: a block that was left early counts as a whole.
    pub first_step: u64,
    /// See `first_step`.
    pub steps: u64,
    /// How many entries of the dictionary it refers to.
    pub blocks: u32,
}
