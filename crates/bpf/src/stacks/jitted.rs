//! Functions that a program generated at run time (Node.js, Java, LuaJIT and others), from the file
//! that it writes for perf: /tmp/perf-PID.map, with a line for each function: start and length in
//! hexadecimal digits, and a name (tools/perf/Documentation/jit-interface.txt).
//!
//! Every user can write to the folder, and a file left there by another user may be for a number
//! that a process got later. So the file must belong to the user of the process, or to one whom the
//! recorder works for.

use std::{
    fs::{self, File, Metadata},
    io::{Read, Result},
    ops::Range,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
};

use rustix::process::geteuid;
use sysdock_symbols::Symbol;

/// Limit for reading a file [B].
const MOST_BYTES: u64 = 64 << 20;
/// Limit for the functions of a process: each takes 32 B in addition to the file.
const MOST_FUNCTIONS: usize = 1 << 20;
/// Discarded code may still be listed, before the line of the code that replaced it: the number of
/// earlier lines that are tried.
const MOST_OVERLAPPING: usize = 16;

/// The generated functions of a process, by address, and the text that contains their names.
#[derive(Debug, Default)]
pub(crate) struct Jitted {
    functions: Vec<Function>,
    text: String,
}

#[derive(Debug)]
struct Function {
    start: u64,
    length: u64,
    /// Place of the name in the text.
    name: Range<usize>,
}

/// Path of the file that a process writes.
pub(crate) fn path(pid: u32) -> String {
    format!("/tmp/perf-{pid}.map")
}

impl Jitted {
    /// `None`: the process wrote no file.
    pub(crate) fn of_process(pid: u32) -> Option<Self> {
        let text = read(pid).ok()?;
        let text = String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let jitted = Jitted::parse(text);
        (!jitted.functions.is_empty()).then_some(jitted)
    }

    fn parse(text: String) -> Self {
        let mut functions: Vec<_> = text.lines().filter_map(|line| function(&text, line)).take(MOST_FUNCTIONS).collect();
        // If two begin at the same address, the one that was written later is valid.
        functions.reverse();
        functions.sort_by_key(|function| function.start);
        functions.dedup_by_key(|function| function.start);
        Jitted { functions, text }
    }

    fn at(&self, address: u64) -> Option<&Function> {
        let after = self.functions.partition_point(|function| function.start <= address);
        let mut before = self.functions[..after].iter().rev().take(MOST_OVERLAPPING);
        before.find(|function| address - function.start < function.length)
    }

    /// Whether there is a function at this address.
    pub(crate) fn holds(&self, address: u64) -> bool {
        self.at(address).is_some()
    }

    /// The function at this address.
    pub(crate) fn symbol(&self, address: u64) -> Option<Symbol> {
        let function = self.at(address)?;
        let offset = i64::try_from(address - function.start).ok();
        let name = sysdock_table::readable(self.text[function.name.clone()].as_bytes()).into_owned();
        Some(Symbol { function: Some(name), offset, ..Symbol::default() })
    }
}

/// Links are not followed.
fn read(pid: u32) -> Result<Vec<u8>> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path(pid))?;
    let found = file.metadata()?;
    let mut text = Vec::new();
    if found.is_file() && is_trusted(&found, pid) {
        file.take(MOST_BYTES).read_to_end(&mut text)?;
    }
    Ok(text)
}

/// Whether a file belongs to the user of this process; of one that has ended, to the recorder's
/// user, to the one who called sudo, or to root.
fn is_trusted(file: &Metadata, pid: u32) -> bool {
    let of_process = fs::metadata(format!("/proc/{pid}")).ok().map(|process| process.uid());
    match of_process {
        Some(user) => file.uid() == user,
        None => file.uid() == 0 || file.uid() == geteuid().as_raw() || Some(file.uid()) == sysdock_table::sudo_caller(),
    }
}

/// A function, whose line is a part of this text.
fn function(text: &str, line: &str) -> Option<Function> {
    let (start, rest) = line.split_once(' ')?;
    let (length, name) = rest.split_once(' ')?;
    let number = |digits: &str| u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok();
    let name = name.trim_end();
    let place = name.as_ptr().addr() - text.as_ptr().addr();
    Some(Function { start: number(start)?, length: number(length)?, name: place..place + name.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_later_holds() {
        let jitted = Jitted::parse(
            "1000 100 LazyCompile:~old file.js:1\n0x2000 10 other\ngarbage\n1000 40 LazyCompile:*new file.js:2\n1020 8 stub\n"
                .into(),
        );
        let at = |address| jitted.symbol(address).map(|symbol| (symbol.function.unwrap(), symbol.offset.unwrap()));
        assert_eq!(at(0x1004), Some(("LazyCompile:*new file.js:2".into(), 4)));
        assert_eq!(at(0x1020), Some(("stub".into(), 0)));
        assert_eq!(at(0x1030), Some(("LazyCompile:*new file.js:2".into(), 0x30)));
        assert_eq!((at(0x1040), at(0x200f).is_some(), at(0x2010)), (None, true, None));
    }

    #[test]
    fn short_lines_do_not_take_many_times_their_size() {
        let jitted = Jitted::parse("0 1 a\n".repeat(3 * MOST_FUNCTIONS / 2));
        assert_eq!(jitted.functions.len(), 1);
        let jitted = Jitted::parse((0..3 * MOST_FUNCTIONS / 2).map(|start| format!("{start:x} 1 a\n")).collect());
        assert_eq!(jitted.functions.len(), MOST_FUNCTIONS);
        assert_eq!(size_of::<Function>(), 32);
    }

    #[test]
    fn the_file_of_another_user_is_not_used() {
        if !geteuid().is_root() {
            return; // only root can give a file to somebody else
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = File::create(folder.path().join("perf.map")).expect("a file");
        let trusted = |pid| is_trusted(&file.metadata().expect("it is open"), pid);
        assert!(trusted(std::process::id()) && trusted(u32::MAX));
        std::os::unix::fs::fchown(&file, Some(65534), Some(65534)).expect("given away");
        assert!(!trusted(std::process::id()) && !trusted(u32::MAX));
    }
}
