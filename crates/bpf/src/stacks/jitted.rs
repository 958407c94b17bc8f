//! Functions that a program generated at run time (Node.js, Java, LuaJIT and others), from the file
//! that it writes for perf: /tmp/perf-PID.map, with a line for each function: start and length in
//! hexadecimal digits, and a name (tools/perf/Documentation/jit-interface.txt).

use std::{
    fs::File,
    io::{Read, Result},
    os::unix::fs::OpenOptionsExt,
};

use sysdock_symbols::Symbol;

/// Limit for reading a file [B].
const MOST_BYTES: u64 = 256 << 20;
/// Discarded code may still be listed, before the line of the code that replaced it: the number of
/// earlier lines that are tried.
const MOST_OVERLAPPING: usize = 16;

/// The generated functions of a process: start, end and name.
#[derive(Debug, Default)]
pub(crate) struct Jitted(Vec<(u64, u64, String)>);

/// Path of the file that a process writes.
pub(crate) fn path(pid: u32) -> String {
    format!("/tmp/perf-{pid}.map")
}

impl Jitted {
    /// `None`: the process wrote no file.
    pub(crate) fn of_process(pid: u32) -> Option<Self> {
        let text = read(&path(pid)).ok()?;
        let functions = Jitted::parse(&String::from_utf8_lossy(&text));
        (!functions.0.is_empty()).then_some(functions)
    }

    fn parse(text: &str) -> Self {
        let mut functions: Vec<_> = text.lines().filter_map(function).collect();
        // If two begin at the same address, the one that was written later is valid.
        functions.reverse();
        functions.sort_by_key(|(start, ..)| *start);
        functions.dedup_by_key(|(start, ..)| *start);
        Jitted(functions)
    }

    fn at(&self, address: u64) -> Option<&(u64, u64, String)> {
        let after = self.0.partition_point(|(start, ..)| *start <= address);
        self.0[..after].iter().rev().take(MOST_OVERLAPPING).find(|(start, length, _)| address - start < *length)
    }

    /// Whether there is a function at this address.
    pub(crate) fn holds(&self, address: u64) -> bool {
        self.at(address).is_some()
    }

    /// The function at this address.
    pub(crate) fn symbol(&self, address: u64) -> Option<Symbol> {
        let (start, _, name) = self.at(address)?;
        let offset = i64::try_from(address - start).ok();
        Some(Symbol { function: Some(sysdock_table::readable(name.as_bytes()).into_owned()), offset, ..Symbol::default() })
    }
}

/// Every user can write to the folder, so links are not followed.
fn read(path: &str) -> Result<Vec<u8>> {
    let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let mut text = Vec::new();
    if file.metadata()?.is_file() {
        file.take(MOST_BYTES).read_to_end(&mut text)?;
    }
    Ok(text)
}

fn function(line: &str) -> Option<(u64, u64, String)> {
    let (start, rest) = line.split_once(' ')?;
    let (length, name) = rest.split_once(' ')?;
    let number = |digits: &str| u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok();
    Some((number(start)?, number(length)?, name.trim_end().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_later_holds() {
        let jitted = Jitted::parse(
            "1000 100 LazyCompile:~old file.js:1\n0x2000 10 other\ngarbage\n1000 40 LazyCompile:*new file.js:2\n1020 8 stub\n",
        );
        let at = |address| jitted.symbol(address).map(|symbol| (symbol.function.unwrap(), symbol.offset.unwrap()));
        assert_eq!(at(0x1004), Some(("LazyCompile:*new file.js:2".into(), 4)));
        assert_eq!(at(0x1020), Some(("stub".into(), 0)));
        assert_eq!(at(0x1030), Some(("LazyCompile:*new file.js:2".into(), 0x30)));
        assert_eq!((at(0x1040), at(0x200f).is_some(), at(0x2010)), (None, true, None));
    }
}
