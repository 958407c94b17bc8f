//! Errors of `sysdock-dump` as text.

use std::io;

use sysdock_dump::{Damage, DumpError, NoDump, NotReadable, Section, Unanswered};

use super::Message;

impl From<DumpError> for Message {
    fn from(error: DumpError) -> Self {
        match error {
            DumpError::Table(error) => error.into(),
            DumpError::Io(path, error) => {
                let fact = format!("{}: {error}", path.display());
                match error.kind() {
                    io::ErrorKind::NotFound => Message::new(fact, "kdump writes dumps below /var/crash"),
                    io::ErrorKind::PermissionDenied => Message::new(fact, "run as root: a dump contains the memory of all users"),
                    _ => Message::bare(fact),
                }
            }
            DumpError::NoDump(path, what) => Message::new(
                format!("{}: {}", path.display(), no_dump(what)),
                "give what kdump, makedumpfile or `dump-guest-memory` of qemu wrote; of a program that crashed, see `coredumpctl`",
            ),
            DumpError::Damaged(path, damage) => Message::new(
                format!("{}: {}", path.display(), damaged(damage)),
                "is the file complete? compare its size with that on the machine that wrote it",
            ),
            DumpError::NotReadable(path, why) => Message::bare(format!("{}: {}", path.display(), not_readable(&why))),
            DumpError::OtherBuild { path, found, wanted } => {
                let [found, wanted] = [found, wanted].map(|build| build.unwrap_or_else(|| "unknown".into()));
                Message::new(
                    format!("{}: debug information of build {found}, but the dump is of build {wanted}", path.display()),
                    "install the debug information of that very kernel; --force uses this one, whose lines may be wrong",
                )
            }
        }
    }
}

fn no_dump(what: NoDump) -> &'static str {
    match what {
        NoDump::NoRegularFile => "not a regular file",
        NoDump::TooShort => "shorter than the header of any dump",
        NoDump::UnknownFormat => "neither an ELF core nor a dump of makedumpfile",
        NoDump::ElfProgram => "an ELF program or library, no core",
        NoDump::NoMemory => "an ELF core without memory",
        NoDump::NoVmCoreInfo => "no kernel has left its VMCOREINFO in it",
        NoDump::NoMonitor => "no monitor of qemu (QMP) answers there",
        NoDump::NoGuestMemory => "the monitor names no memory of a guest",
    }
}

fn damaged(damage: Damage) -> String {
    match damage {
        Damage::BlockBytes(bytes) => format!("its blocks have {bytes} bytes; x86-64 has pages of 4096"),
        Damage::EmptyBitmap => "its bitmap of pages is empty".into(),
        Damage::Cut(section) => {
            let section = match section {
                Section::Header => "the header",
                Section::Bitmap => "the bitmap of its pages",
                Section::ElfHeader => "the ELF header",
                Section::SegmentCount => "the number of segments",
                Section::Segments => "the table of segments",
            };
            format!("{section} is cut off")
        }
    }
}

fn not_readable(why: &NotReadable) -> String {
    match why {
        NotReadable::Machine(name) => format!("a dump of a machine {name:?}; only x86_64 is read"),
        NotReadable::ElfMachine => "an ELF file of another machine than x86-64".into(),
        NotReadable::NoPageTable => "VMCOREINFO lacks the address of the kernel's page table".into(),
        NotReadable::NoElf => "no ELF file, as debug information is".into(),
        NotReadable::MonitorBusy => "the monitor does not answer: it serves one client at a time".into(),
        NotReadable::MonitorRefuses(answer) => format!("the monitor refuses: {answer}"),
    }
}

/// The sentence about a question, which `sysdock.dump` reads from a pipe.
pub(crate) fn unanswered(error: Unanswered) -> String {
    match error {
        Unanswered::NoSymbol(name) => format!("no symbol {name:?}"),
        Unanswered::NoStructure(name) => format!("no structure {name:?}"),
        Unanswered::NoMember(member, structure) => format!("no member {member:?} in {structure:?}"),
        Unanswered::NoMemberOfType { type_name, member } => format!("{type_name:?} has no member {member:?}"),
        Unanswered::MemberOfPointer { type_name, member } => format!("{type_name:?} is a pointer: follow it by ->{member}"),
        Unanswered::NoPointer(type_name) => format!("{type_name:?} is not a pointer"),
        Unanswered::NoArray(type_name) => format!("{type_name:?} is not an array"),
        Unanswered::NoElementNumber(text) => format!("[{text}] is not an element number"),
        Unanswered::Unclosed(path) => format!("[ without ] in {path:?}"),
        Unanswered::NoPath { path, rest } => format!("cannot be understood from {rest:?} on: {path:?}"),
        Unanswered::NoPart(name) => format!("no part {name:?}"),
        Unanswered::TooMuch { bytes, most } => format!("{bytes} bytes are more than can be read at once ({most})"),
        Unanswered::NothingToSearch => "the bytes to search for are none".into(),
        Unanswered::Fault(fault) => fault.name().into(),
        Unanswered::Table(error) => Message::from(error).text(),
    }
}
