use std::{io, num::TryFromIntError, path::PathBuf};

use parquet::errors::ParquetError;
use sysdock_table::codes;

/// Why a map cannot be made.
#[derive(Debug)]
pub enum MapError {
    /// A file of the recording cannot be read.
    Io(PathBuf, io::Error),
    /// A file of the recording differs from recording.json, or from what a table must be.
    Damaged(PathBuf, Damage),
    /// The recording has no such table: it is not a scan of a disk.
    NoTable(PathBuf, &'static str),
    /// The recording contains nothing with this path.
    NotFound(String),
    /// There is nothing to draw: the device has no size.
    Empty(PathBuf),
}

/// How a file of a recording differs from what it must be.
#[derive(Debug)]
pub enum Damage {
    /// recording.json is not understood.
    Json(serde_json::Error),
    /// recording.json has this version of the format, and not the one that is read.
    Version {
        found: u32,
        read: u32,
    },
    /// The path of a part leads out of the recording.
    Outside,
    /// A part is no plain file of this length [B].
    NoFile(u64),
    /// The content of a part has another hash.
    Hash,
    /// A footer refers to what is not in the file.
    Footer,
    /// The Parquet library panicked.
    Panic,
    Parquet(ParquetError),
    /// The number of rows is negative.
    Rows(TryFromIntError),
    /// The columns of a table differ in length.
    Lengths,
    /// A table lacks all of these columns.
    NoColumn(String),
    /// A column holds lists.
    Lists(String),
    /// A column holds neither integers nor texts.
    NoValues(String),
    NoIntegers(String),
    NoTexts(String),
}

codes!(MapError { Io: "io", Damaged: "damaged", NoTable: "no-table", NotFound: "not-found", Empty: "empty" });

impl From<ParquetError> for Damage {
    fn from(error: ParquetError) -> Self {
        Damage::Parquet(error)
    }
}
