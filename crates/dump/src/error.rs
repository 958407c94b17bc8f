use std::{
    io,
    path::{Path, PathBuf},
};

use sysdock_table::{TableError, codes};

/// Why a dump cannot be read at all.
#[derive(Debug)]
pub enum DumpError {
    /// The file cannot be read.
    Io(PathBuf, io::Error),
    /// The file contains no memory of a kernel.
    NoDump(PathBuf, NoDump),
    /// The file begins like a dump, but its headers contradict each other or the file.
    Damaged(PathBuf, Damage),
    /// A dump of an unsupported machine or kernel, or debug information in no known format.
    NotReadable(PathBuf, NotReadable),
    /// Debug information of another build than the kernel's.
    OtherBuild {
        path: PathBuf,
        /// Build of the debug information.
        found: Option<String>,
        /// Build of the kernel in the dump.
        wanted: Option<String>,
    },
    /// The recording cannot be written.
    Table(TableError),
}

/// What a file or socket is instead of a dump.
#[derive(Clone, Copy, Debug)]
pub enum NoDump {
    NoRegularFile,
    /// Shorter than the header of any dump.
    TooShort,
    UnknownFormat,
    /// An ELF program or library.
    ElfProgram,
    /// An ELF core without segments of memory.
    NoMemory,
    /// No kernel has left its VMCOREINFO in it.
    NoVmCoreInfo,
    /// No monitor of qemu answers at the socket.
    NoMonitor,
    /// The monitor names no memory of a guest.
    NoGuestMemory,
}

/// The part of a dump that is damaged.
#[derive(Clone, Copy, Debug)]
pub enum Damage {
    /// This part is cut off.
    Cut(Section),
    /// The size of its blocks [B] is none of a page.
    BlockBytes(u32),
    /// Its bitmap contains no page.
    EmptyBitmap,
}

/// A part of the headers of a dump.
#[derive(Clone, Copy, Debug)]
pub enum Section {
    Header,
    Bitmap,
    ElfHeader,
    SegmentCount,
    Segments,
}

/// Why a dump, a guest or debug information is not supported.
#[derive(Clone, Debug)]
pub enum NotReadable {
    /// A dump of this machine.
    Machine(String),
    /// An ELF file of another machine than x86-64.
    ElfMachine,
    /// VMCOREINFO lacks the address of the kernel's page table.
    NoPageTable,
    /// Debug information that is no ELF file.
    NoElf,
    /// The monitor of qemu serves another client.
    MonitorBusy,
    /// The monitor of qemu refuses a command: what it answers, as JSON.
    MonitorRefuses(String),
}

codes!(DumpError {
    Io: "io",
    NoDump: "no-dump",
    Damaged: "damaged",
    NotReadable: "not-readable",
    OtherBuild: "other-build",
    Table: "table",
});

impl From<TableError> for DumpError {
    fn from(error: TableError) -> Self {
        DumpError::Table(error)
    }
}

/// Why there is no answer to a question.
#[derive(Debug)]
pub enum Unanswered {
    NoSymbol(String),
    NoStructure(String),
    /// No member of this path in this structure.
    NoMember(String, String),
    /// A type on the way has no such member.
    NoMemberOfType {
        type_name: String,
        member: String,
    },
    /// The member is one of what a pointer points to.
    MemberOfPointer {
        type_name: String,
        member: String,
    },
    /// This type is no pointer, and cannot be followed.
    NoPointer(String),
    /// This type is no array.
    NoArray(String),
    /// In brackets, and no number.
    NoElementNumber(String),
    /// A path with a bracket that is not closed.
    Unclosed(String),
    /// A path that is not understood from here on.
    NoPath {
        path: String,
        rest: String,
    },
    /// No part of a recording has this name.
    NoPart(String),
    /// More bytes than one answer has.
    TooMuch {
        bytes: u64,
        most: u64,
    },
    /// The bytes to search for are none.
    NothingToSearch,
    /// The start of a walk cannot be read.
    Fault(Fault),
    /// Rows cannot be written.
    Table(TableError),
}

/// Why an address of the kernel cannot be read. A fault never ends a walk: it becomes the status of
/// a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// No page table maps it.
    NotMapped,
    /// The page was left out of the dump, or there is no memory at this address.
    NotInDump,
    /// The page is in the dump, but cannot be decompressed.
    Damaged,
    /// A list returned to an earlier entry.
    Cycle,
    /// A list is longer than any plausible one.
    TooLong,
    /// This kernel does not have the type or member, or not under this name.
    NoType,
    /// The page contains data of users, which were not requested.
    OfUser,
    /// Reading was cancelled.
    Interrupted,
}

impl Fault {
    /// The value of columns `status`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Fault::NotMapped => "not mapped",
            Fault::NotInDump => "not in the dump",
            Fault::Damaged => "damaged page",
            Fault::Cycle => "cycle",
            Fault::TooLong => "too long",
            Fault::NoType => "unknown layout",
            Fault::OfUser => "user memory",
            Fault::Interrupted => "interrupted",
        }
    }
}

/// Makes errors of a file.
pub(crate) fn io_error(path: &Path) -> impl Fn(io::Error) -> DumpError {
    move |error| DumpError::Io(path.into(), error)
}
