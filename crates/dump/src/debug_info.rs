//! Source lines and inlined functions from debug information (DWARF): a `vmlinux` of the same
//! build.

use std::path::{Path, PathBuf};

use sysdock_symbols::{Symbol, elf, symbols};

use crate::{
    error::{DumpError, NotReadable, io_error},
    kernel::Kernel,
};

/// Debug information of a kernel.
#[derive(Debug)]
pub(crate) struct DebugInfo {
    path: PathBuf,
    /// Offset of the running kernel from its link address (KASLR).
    shift: u64,
}

/// The source location of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// File and line of the innermost function.
    pub(crate) place: Option<String>,
    /// Functions that were inlined into the one that has a symbol, from the innermost on.
    pub(crate) inlined: Vec<String>,
}

impl Kernel {
    /// Take source lines from this file. It must be of the same build, unless `any_build`.
    ///
    /// # Errors
    /// [`DumpError`]: the file cannot be read, or is of another build.
    pub fn use_debug_info(&mut self, path: &Path, any_build: bool) -> Result<(), DumpError> {
        let no_elf = || DumpError::NotReadable(path.into(), NotReadable::NoElf);
        let map = elf::map(path).map_err(io_error(path))?.ok_or_else(no_elf)?;
        let (found, wanted) = (elf::build_id(&map), self.description().build_id.clone());
        if !any_build && (found.is_none() || found != wanted) {
            return Err(DumpError::OtherBuild { path: path.into(), found, wanted });
        }
        let shift = self.info.hexadecimal("KERNELOFFSET").unwrap_or(0);
        self.debug_info = Some(DebugInfo { path: path.into(), shift });
        Ok(())
    }
}

impl DebugInfo {
    /// The lines for these addresses of the kernel's own code.
    pub(crate) fn lines(&self, addresses: &[u64]) -> Vec<Line> {
        let linked: Vec<u64> = addresses.iter().map(|address| address.wrapping_sub(self.shift)).collect();
        symbols(&self.path, &linked, |name| name.into()).into_iter().map(line).collect()
    }
}

/// The line of functions, the innermost first.
fn line(mut functions: Vec<Symbol>) -> Line {
    let place = functions.first().and_then(|innermost| innermost.source.clone());
    functions.pop();
    Line { place, inlined: functions.into_iter().filter_map(|inlined| inlined.function).collect() }
}
