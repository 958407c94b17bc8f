//! Programs and libraries of a guest, for finding by its code which ones an ended process ran.
//!
//! Guests are booted with `norandmaps`: a program is at the addresses that its file states or, if
//! it is position-independent, at those after a base that is always the same. A library may be at
//! any page: if code occurs at one place of one library only, its base is known.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use rustc_hash::FxHashMap;
use sysdock_itrace_file::Block;
use sysdock_symbols::{ElfImage, elf::PAGE};

use super::base_name;

/// Base of position-independent programs without randomization (ELF_ET_DYN_BASE).
const BASES: [u64; 2] = [0, 0x5555_5555_4000];
/// Less code than this occurs in many files [B].
const FEWEST_BYTES: usize = 8;
/// More files than a service has.
const MOST_FILES: usize = 10_000;

/// Files are read when the first program is searched for.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    root: Option<PathBuf>,
    /// Names of processes: programs may have the same code.
    names: FxHashMap<i32, String>,
    files: Option<Vec<(String, ElfImage)>>,
    libraries: Vec<(String, ElfImage)>,
    /// The program of each process, as far as found.
    of_process: FxHashMap<i32, usize>,
    /// Libraries of each process with their bases, as far as found.
    bases: FxHashMap<i32, Vec<(usize, u64)>>,
}

impl Programs {
    /// `names`: names of processes in the kernel.
    pub(crate) fn below(root: Option<PathBuf>, names: FxHashMap<i32, String>) -> Programs {
        Programs { root, names, ..Programs::default() }
    }

    /// The path, in the guest, of the program or library with this code, and its address in the
    /// file.
    pub(crate) fn find(&mut self, block: &Block, tgid: i32) -> Option<(String, u64)> {
        self.program(block, tgid).or_else(|| self.library(block, tgid))
    }

    fn program(&mut self, block: &Block, tgid: i32) -> Option<(String, u64)> {
        let root = self.root.as_ref()?;
        if self.files.is_none() {
            let (files, libraries) = files_of(root);
            (self.files, self.libraries) = (Some(files), libraries);
        }
        let files = self.files.as_ref()?;
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
        let name = self.names.get(&tgid).map_or("", String::as_str);
        // The kernel keeps the first bytes of a name.
        let is_named = |(path, _): &(String, ElfImage)| !name.is_empty() && base_name(path).starts_with(name);
        let numbered = || files.iter().enumerate();
        let (number, found) = numbered()
            .filter(|(_, file)| is_named(file))
            .chain(numbered().filter(|(_, file)| !is_named(file)))
            .find_map(|(number, file)| Some((number, place(file)?)))?;
        self.of_process.insert(tgid, number);
        Some(found)
    }

    fn library(&mut self, block: &Block, tgid: i32) -> Option<(String, u64)> {
        let bases = self.bases.entry(tgid).or_default();
        let known = bases.iter().find_map(|&(number, base)| {
            let (path, elf) = &self.libraries[number];
            let address = block.address.checked_sub(base)?;
            elf.has_at(address, &block.code).then(|| (path.clone(), address))
        });
        if known.is_some() || block.code.len() < FEWEST_BYTES {
            return known;
        }
        let mut places = self.libraries.iter().enumerate().flat_map(|(number, (_, elf))| {
            elf.places_of(block.address % PAGE, &block.code).map(move |address| (number, address))
        });
        let (number, address) = places.next()?;
        if places.next().is_some() {
            return None;
        }
        bases.push((number, block.address.checked_sub(address)?));
        Some((self.libraries[number].0.clone(), address))
    }
}

type Files = Vec<(String, ElfImage)>;

/// All executable ELF files, and all libraries, by their paths in the guest.
fn files_of(root: &Path) -> (Files, Files) {
    let (mut programs, mut libraries) = (Files::new(), Files::new());
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
                return (programs, libraries);
            }
            let is_library = entry.file_name().to_str().is_some_and(|name| name.contains(".so"));
            let may_run = about.permissions().mode() & 0o111 != 0;
            let name = path.strip_prefix(root).ok().and_then(Path::to_str).map(|name| format!("/{name}"));
            if let (true, Some(name)) = (about.is_file() && (is_library || may_run), name)
                && let Some(elf) = ElfImage::without_functions(&path)
            {
                if is_library { &mut libraries } else { &mut programs }.push((name, elf));
            }
        }
    }
    // Folders list their files in any order.
    for files in [&mut programs, &mut libraries] {
        files.sort_by(|one, other| one.0.cmp(&other.0));
    }
    (programs, libraries)
}

#[cfg(test)]
mod tests {
    use sysdock_symbols::elf::{Binary, open_regular};

    use super::*;

    /// The first code of this program, which is unique, and its address.
    fn entry_of(path: &Path) -> (u64, Vec<u8>) {
        let binary = Binary::read(&open_regular(path).unwrap()).unwrap();
        let within = binary.segments.0.iter().find(|segment| segment.address + segment.bytes > binary.entry).unwrap();
        let start = (binary.entry - within.address + within.offset) as usize;
        (binary.entry, fs::read(path).unwrap()[start..start + 32].to_vec())
    }

    #[test]
    fn code_of_a_process_that_ended_is_found_in_programs_and_libraries() {
        let root = tempfile::tempdir().unwrap();
        let here = std::env::current_exe().unwrap();
        fs::create_dir(root.path().join("lib")).unwrap();
        for name in ["one", "two", "lib/some.so.1"] {
            fs::copy(&here, root.path().join(name)).unwrap();
        }
        let (address, code) = entry_of(&here);
        let block =
            |base: u64, length: usize| Block { address: base + address, code: code[..length].into(), lengths: Box::default() };
        let names = FxHashMap::from_iter([(7, "two".to_owned())]);
        let mut programs = Programs::below(Some(root.path().to_owned()), names);
        let mut find = |base, length, tgid| programs.find(&block(base, length), tgid);
        assert_eq!(find(BASES[1], 32, 7), Some(("/two".to_owned(), address)));
        assert_eq!(find(BASES[1], 32, 8), Some(("/one".to_owned(), address)));
        let base = 0x7fff_f7a0_0000;
        assert_eq!(find(base, 4, 9), None);
        let found = Some(("/lib/some.so.1".to_owned(), address));
        assert_eq!(find(base, 32, 9), found);
        // Once the base of a library is known, few bytes are enough; another process may have it
        // elsewhere.
        assert_eq!(find(base, 4, 9), found);
        assert_eq!(find(base, 4, 10), None);
    }
}
