//! The event file of an instruction trace (`trace.sdit`): every executed block, and every access to
//! memory, in order.
//!
//! A file is the magic `SDIT` and a version (u32), then sections. Each has a header of 24 bytes,
//! little-endian: kind (u32), CRC-32C of the payload as stored (u32), its length (u64), its
//! uncompressed length (u64). Payloads:
//!
//! | kind | payload |
//! |---|---|
//! | 1 header | JSON: what was known when recording began |
//! | 2 blocks | zstd: entries of the dictionary in order of their numbers, as in [`dictionary`] |
//! | 3 events | the numbers of [`Indexed`] except its offset, lengths of the streams, then the streams of `coding.rs`, each zstd |
//! | 4 facts | zstd, JSON: what is known afterwards; the last one counts |
//! | 5 index | JSON: the location of each section of events ([`Indexed`]); written when recording ends |
//!
//! Each section of events can be decoded without the earlier ones, except for the dictionary. A
//! file whose writer was killed has no index and perhaps half a section: whole sections can be
//! read, and [`Reader::is_complete`] tells that it is not complete.

// Whatever comes from a file, a device or a traced program is an error, not a panic. Exceptions state their reason.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing))]

#[expect(
    clippy::indexing_slicing,
    reason = "numbers of units, slots and streams are assigned here; what a file states is checked"
)]
mod coding;
pub mod dictionary;
#[expect(
    clippy::indexing_slicing,
    reason = "numbers of units, slots and streams are assigned here; what a file states is checked"
)]
mod model;
mod reader;
#[expect(clippy::indexing_slicing, reason = "a remainder is less than the length")]
pub mod ring;
mod word;
mod writer;

pub use dictionary::Block;
pub use reader::Reader;
pub use word::{Access, Event, Note};
pub use writer::{Summary, Writer};

/// The first eight bytes: magic and version.
pub const MAGIC: [u8; 8] = *b"SDIT\x01\0\0\0";
/// Number of words after which a section ends.
pub const SECTION_EVENTS: u64 = 1 << 22;

pub(crate) const HEADER: u32 = 1;
pub(crate) const BLOCKS: u32 = 2;
pub(crate) const EVENTS: u32 = 3;
pub(crate) const FACTS: u32 = 4;
pub(crate) const INDEX: u32 = 5;

/// Content of the header, and of the facts.
pub type Facts = serde_json::Map<String, serde_json::Value>;

/// The bytes are not those of any writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage;

/// Why a file cannot be read.
#[derive(Debug)]
pub enum FileError {
    /// The operating system reported an error.
    Io(std::io::Error),
    /// It does not begin like an event file.
    NoEventFile,
    /// It has a version that this reader does not know.
    Version(u32),
    /// A section is damaged: its offset.
    Damaged(u64),
}

impl From<std::io::Error> for FileError {
    fn from(error: std::io::Error) -> FileError {
        FileError::Io(error)
    }
}

/// A section of events, as in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Indexed {
    /// Offset of its header.
    pub offset: u64,
    /// Number of its first event.
    pub first_event: u64,
    /// Number of its events.
    pub events: u64,
    /// Number of instructions that were executed before it. A block that was left early counts as a
    /// whole.
    pub first_step: u64,
    /// Number of instructions in it, counted the same way.
    pub steps: u64,
    /// Number of entries of the dictionary that it refers to.
    pub blocks: u32,
}
