//! Source lines and inlined functions from debug information (DWARF): a `vmlinux` of the same
//! build.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use blazesym::symbolize::{
    CodeInfo, Input, Sym, Symbolized, Symbolizer,
    source::{Elf, Source},
};
use memmap2::Mmap;

use crate::{
    error::{DumpError, io_error},
    format::{notes, u32_at, u64_at},
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
        let file = File::open(path).map_err(io_error(path))?;
        // SAFETY: the map is only read, as bytes. If the file is truncated meanwhile, the kernel
        // ends this process, which does nothing else.
        let map = unsafe { Mmap::map(&file) }.map_err(io_error(path))?;
        if !map.starts_with(b"\x7fELF") {
            return Err(DumpError::NotReadable(path.into(), "no ELF file, as debug information is".into()));
        }
        let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let (found, wanted) = (build_id(&map).map(digits), self.description().build_id.clone());
        if !any_build && (found.is_none() || found != wanted) {
            let named = |id: Option<String>| id.unwrap_or_else(|| "unknown".into());
            return Err(DumpError::OtherBuild(path.into(), named(found), named(wanted)));
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
        let symbolizer = Symbolizer::builder().enable_auto_reload(false).build();
        let source = Source::Elf(Elf::new(&self.path));
        let found = symbolizer.symbolize(&source, Input::VirtOffset(&linked)).unwrap_or_default();
        let mut lines: Vec<Line> = found.iter().map(line).collect();
        lines.resize(addresses.len(), Line::default());
        lines
    }
}

/// The build id of a 64-bit ELF file: the only note of this kind, among several (elf(5)).
fn build_id(file: &[u8]) -> Option<&[u8]> {
    const SECTION_BYTES: usize = 64;
    const NOTES: u32 = 7;
    const BUILD_ID: u32 = 3;
    let place = usize::try_from(u64_at(file, 40)).ok()?;
    let count = u32_at(file, 60) & 0xffff;
    let section = |number: usize| file.get(place.checked_add(number * SECTION_BYTES)?..);
    (0..count as usize).filter_map(section).filter(|section| u32_at(section, 4) == NOTES).find_map(|section| {
        let (start, length) = (usize::try_from(u64_at(section, 24)).ok()?, usize::try_from(u64_at(section, 32)).ok()?);
        let found = notes(file.get(start..start.checked_add(length)?)?);
        found.into_iter().find(|(name, kind, _)| *name == b"GNU" && *kind == BUILD_ID).map(|(_, _, id)| id)
    })
}

fn line(found: &Symbolized<'_>) -> Line {
    let Symbolized::Sym(Sym { code_info, inlined, .. }) = found else { return Line::default() };
    let innermost = match inlined.last() {
        Some(function) => function.code_info.as_ref(),
        None => code_info.as_deref(),
    };
    let inlined = inlined.iter().rev().map(|function| function.name.to_string()).collect();
    Line { place: innermost.map(place), inlined }
}

fn place(info: &CodeInfo<'_>) -> String {
    let path = info.to_path();
    match info.line {
        Some(line) => format!("{}:{line}", path.display()),
        None => path.display().to_string(),
    }
}
