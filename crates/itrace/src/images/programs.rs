//! Programs of a guest, to find by its code which one a process ran that nobody could ask any more.
//!
//! Guests are booted with `norandmaps`: a program lies at the addresses that its file states, or, where it is independent of its position, at those
//! behind a base that is always the same.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use rustc_hash::FxHashMap;
use sysdock_itrace_file::Block;

use super::ElfImage;

/// Where the kernel puts programs that are independent of their position, without randomization (ELF_ET_DYN_BASE).
const BASES: [u64; 2] = [0, 0x5555_5555_4000];
/// Less code is found in many files.
const FEWEST_BYTES: usize = 8;
/// More files than a service has.
const MOST_FILES: usize = 10_000;

/// They are read when the first one is looked for.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    root: Option<PathBuf>,
    files: Option<Vec<(String, ElfImage)>>,
    /// Which one a process runs, as far as it was found.
    of_process: FxHashMap<i32, usize>,
}

impl Programs {
    pub(crate) fn below(root: Option<PathBuf>) -> Programs {
        Programs { root, ..Programs::default() }
    }

    /// The path, in the guest, of the program that has this code, and where by the addresses of its file.
    pub(crate) fn find(&mut self, block: &Block, tgid: i32) -> Option<(String, u64)> {
        let root = self.root.as_ref()?;
        let files = self.files.get_or_insert_with(|| programs_of(root));
        let place = |(path, elf): &(String, ElfImage)| {
            let addresses = BASES.iter().filter_map(|base| block.address.checked_sub(*base));
            let found = addresses.into_iter().find(|&address| elf.has_at(address, &block.code))?;
            Some((path.clone(), found))
        };
        if let Some(found) = self.of_process.get(&tgid).and_then(|&number| place(&files[number])) {
            return Some(found);
        }
        if block.code.len() < FEWEST_BYTES {
            return None;
        }
        let (number, found) = files.iter().enumerate().find_map(|(number, file)| Some((number, place(file)?)))?;
        self.of_process.insert(tgid, number);
        Some(found)
    }
}

/// All ELF files that may be executed, by their paths in the guest.
fn programs_of(root: &Path) -> Vec<(String, ElfImage)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            let path = entry.path();
            if about.is_dir() {
                folders.push(path);
                continue;
            }
            seen += 1;
            if seen > MOST_FILES {
                return found;
            }
            let may_run = about.is_file() && about.permissions().mode() & 0o111 != 0;
            let name = path.strip_prefix(root).ok().and_then(Path::to_str).map(|name| format!("/{name}"));
            if let (true, Some(name)) = (may_run, name)
                && let Some(elf) = ElfImage::without_functions(&path)
            {
                found.push((name, elf));
            }
        }
    }
    // Folders list their files in any order.
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}
