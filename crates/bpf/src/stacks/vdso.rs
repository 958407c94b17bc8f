//! The code that the kernel adds to each process, for calls such as `clock_gettime` (vdso(7)). It
//! is in no file, but is the same in all processes until reboot: so it can be copied from this
//! process.

use std::{
    fs::{self, File},
    io::Write,
};

use rustix::fs::{MemfdFlags, memfd_create};

/// Its name in /proc/PID/maps and in stacks.
pub(crate) const NAME: &str = "[vdso]";
/// Id of mappings of it, in place of a file id.
pub(crate) const FILE: u64 = u64::MAX;
/// Entry of the auxiliary vector with its address: `AT_SYSINFO_EHDR`.
pub(crate) const AUXILIARY: u64 = 33;
/// Upper bound for its size [B].
const LONGEST: usize = 1 << 20;

/// A copy of it in a memory file; `None`: this process has none.
pub(crate) fn file() -> Option<File> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let (range, _) = maps.lines().find(|line| line.ends_with(NAME))?.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    let (start, end) = (address(start)?, address(end)?);
    let length = end.checked_sub(start).filter(|length| *length <= LONGEST)?;
    // SAFETY: the kernel mapped these pages readable, and they stay as long as the process.
    let bytes = unsafe { std::slice::from_raw_parts(start as *const u8, length) };
    let mut file = File::from(memfd_create("vdso", MemfdFlags::CLOEXEC).ok()?);
    file.write_all(bytes).ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use sysdock_symbols::{demangle, elf::Binary, symbols};

    #[test]
    fn its_functions_have_names() {
        let file = file().unwrap();
        let binary = Binary::read(&file).unwrap();
        assert!(binary.eh_frame.is_some());
        let text = binary.text.unwrap();
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let addresses: Vec<u64> = (text.start..text.end).step_by(16).collect();
        let found = symbols(path.as_ref(), &addresses, demangle);
        let mut names = found.iter().flatten().filter_map(|symbol| symbol.function.as_deref());
        assert!(names.any(|name| name.ends_with("clock_gettime")));
    }
}
