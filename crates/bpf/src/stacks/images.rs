//! Locations of code in the address space of a process. `families/stacks/layouts.h` reports how
//! each image was made. The mapped files may still exist; a file that is not the one that was
//! mapped is not read.

use std::{
    fs::File,
    ops::Range,
    os::{
        fd::AsRawFd,
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
    rc::Rc,
};

use rustc_hash::FxHashMap;
use sysdock_symbols::elf::{self, Binary};

use crate::{
    conversion::places::Places,
    events::MappedEvent,
    stacks::{
        events::ProgramMapped,
        jitted::{self, Jitted},
        vdso,
    },
};

/// Limits for images, and for mappings of one. More are forged.
const MOST_IMAGES: usize = 1 << 22;
const MOST_MAPPINGS: usize = 4096;
/// Limit for files that are read.
const MOST_OBJECTS: usize = 16_384;

/// How an image was made.
#[derive(Clone, Copy, Debug)]
enum Origin {
    Mapped(MappedEvent),
    Program(ProgramMapped),
}

/// All images that were reported.
#[derive(Debug, Default)]
pub(crate) struct Images(FxHashMap<u64, Origin>);

impl Images {
    pub(crate) fn mapped(&mut self, event: MappedEvent) {
        self.add_origin(event.image, Origin::Mapped(event));
    }

    pub(crate) fn program(&mut self, event: ProgramMapped) {
        self.add_origin(event.image, Origin::Program(event));
    }

    fn add_origin(&mut self, image: u64, origin: Origin) {
        if self.0.len() < MOST_IMAGES {
            self.0.insert(image, origin);
        }
    }

    /// The mappings of an image, the last one first.
    fn origins(&self, image: u64) -> impl Iterator<Item = Origin> {
        let mut next = image;
        let origins = std::iter::from_fn(move || {
            let origin = *self.0.get(&next)?;
            next = if let Origin::Mapped(mapped) = origin { mapped.parent } else { 0 };
            Some(origin)
        });
        origins.take(MOST_MAPPINGS)
    }
}

/// A file with mapped code.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) path: PathBuf,
    /// `None`: the file does not exist any more, was changed since, or is not a binary.
    pub(crate) binary: Option<Binary>,
    /// What the binary is read from, if it has no path.
    memory: Option<File>,
    /// Functions that a process generated, in place of a file.
    pub(crate) jitted: Option<Jitted>,
}

impl Object {
    /// Path from which its symbols can be read.
    pub(crate) fn readable_path(&self) -> PathBuf {
        self.memory.as_ref().map_or_else(|| self.path.clone(), |file| format!("/proc/self/fd/{}", file.as_raw_fd()).into())
    }
}

/// A range of an image.
#[derive(Clone, Debug)]
pub(crate) struct Area {
    pub(crate) range: Range<u64>,
    /// Difference between an address and that in the file: the one that a binary states, else the
    /// offset.
    pub(crate) bias: u64,
    /// Index in [`Objects::all`].
    pub(crate) object: u32,
}

/// All files with mapped code.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    pub(crate) all: Vec<Rc<Object>>,
    by_path: FxHashMap<PathBuf, u32>,
    /// By id of the file; `None`: its path was not reported.
    by_file: FxHashMap<u64, Option<u32>>,
    kernel: Option<u32>,
    vdso: Option<u32>,
    /// By process; `None`: it has not written a list of functions.
    jitted: FxHashMap<u32, Option<u32>>,
}

/// Name of the kernel, which has no file here.
const KERNEL: &str = "[kernel]";

impl Objects {
    /// The kernel, and modules loaded into it.
    pub(crate) fn kernel(&mut self) -> u32 {
        *self.kernel.get_or_insert_with(|| {
            self.all.push(Rc::new(Object { path: KERNEL.into(), binary: None, memory: None, jitted: None }));
            (self.all.len() - 1) as u32
        })
    }

    /// The code that the kernel adds to each process.
    fn vdso(&mut self, places: &Places) -> u32 {
        *self.vdso.get_or_insert_with(|| {
            // After a reboot it may be different.
            let memory = if places.is_this_boot { vdso::file() } else { None };
            let binary = memory.as_ref().and_then(Binary::read);
            self.all.push(Rc::new(Object { path: vdso::NAME.into(), binary, memory, jitted: None }));
            (self.all.len() - 1) as u32
        })
    }

    /// The generated functions of a process, if there is one at this address.
    pub(crate) fn jitted(&mut self, pid: u32, address: u64) -> Option<u32> {
        let all = &mut self.all;
        let object = *self.jitted.entry(pid).or_insert_with(|| {
            let jitted = Some(Jitted::of_process(pid).filter(|_| all.len() < MOST_OBJECTS)?);
            all.push(Rc::new(Object { path: jitted::path(pid).into(), binary: None, memory: None, jitted }));
            Some((all.len() - 1) as u32)
        });
        object.filter(|object| self.all[*object as usize].jitted.as_ref().is_some_and(|jitted| jitted.holds(address)))
    }

    pub(crate) fn is_kernel(&self, object: u32) -> bool {
        self.kernel == Some(object)
    }

    /// The areas of an image, by address. `epoch_ns` converts times of events to those of files.
    pub(crate) fn areas(&mut self, image: u64, places: &Places, epoch_ns: &impl Fn(u64) -> i64) -> Vec<Area> {
        let mut areas: Vec<Area> = Vec::new();
        for origin in places.images.origins(image) {
            let found = match origin {
                Origin::Mapped(mapped) => self.mapped(&mapped, places, epoch_ns(mapped.at_ns)).into_iter().collect(),
                Origin::Program(program) => self.program(&program, places, epoch_ns(program.at_ns)),
            };
            // A later mapping hides an earlier one.
            let free = |area: &Area| {
                areas.iter().all(|other| area.range.end <= other.range.start || area.range.start >= other.range.end)
            };
            let found: Vec<Area> = found.into_iter().filter(|area| area.range.start < area.range.end && free(area)).collect();
            areas.extend(found);
        }
        areas.sort_by_key(|area| area.range.start);
        areas
    }

    fn mapped(&mut self, mapped: &MappedEvent, places: &Places, at_ns: i64) -> Option<Area> {
        let object = self.of_file(mapped.file, places, at_ns)?;
        let end = mapped.start.checked_add(mapped.length)?;
        let whole = || {
            let binary = self.all[object as usize].binary.as_ref()?;
            let bias = mapped.start.wrapping_sub(binary.segments.address_of(mapped.offset)?);
            Some(area_of(binary, bias, object))
        };
        let plain = || Area { range: mapped.start..end, bias: mapped.start.wrapping_sub(mapped.offset), object };
        Some(whole().unwrap_or_else(plain))
    }

    fn program(&mut self, program: &ProgramMapped, places: &Places, at_ns: i64) -> Vec<Area> {
        let Some(object) = self.of_file(program.file, places, at_ns) else { return Vec::new() };
        let mut areas = Vec::new();
        let mut loader_path = None;
        if let Some(binary) = &self.all[object as usize].binary {
            areas.push(area_of(binary, program.entry.wrapping_sub(binary.entry), object));
            loader_path.clone_from(&binary.loader);
        } else if let Some(end) = program.code_start.checked_add(program.code_bytes) {
            areas.push(Area { range: program.code_start..end, bias: program.code_start, object });
        }
        if let Some(path) = loader_path.filter(|_| program.loader != 0)
            && let Some(object) = self.loader(&path, at_ns)
            && let Some(binary) = &self.all[object as usize].binary
        {
            areas.push(area_of(binary, program.loader.wrapping_sub(binary.segments.range().start), object));
        }
        let vdso = self.vdso(places);
        if let Some(binary) = self.all[vdso as usize].binary.as_ref().filter(|_| program.vdso != 0) {
            areas.push(area_of(binary, program.vdso.wrapping_sub(binary.segments.range().start), vdso));
        }
        areas
    }

    fn of_file(&mut self, file: u64, places: &Places, at_ns: i64) -> Option<u32> {
        if file == vdso::FILE {
            return Some(self.vdso(places));
        }
        if let Some(known) = self.by_file.get(&file) {
            return *known;
        }
        let path = places.path(file).filter(|path| path.starts_with(b"/"));
        let object = path.map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(path)));
        let object = object.and_then(|path| self.of_path(&path, places.file(file), at_ns));
        self.by_file.insert(file, object);
        object
    }

    /// The loader that a program names, perhaps through a link.
    fn loader(&mut self, path: &Path, at_ns: i64) -> Option<u32> {
        self.of_path(&path.canonicalize().ok()?, None, at_ns)
    }

    /// `known`: inode and size of the mapped file.
    fn of_path(&mut self, path: &Path, known: Option<(u64, u64)>, at_ns: i64) -> Option<u32> {
        if let Some(object) = self.by_path.get(path) {
            return Some(*object);
        }
        if self.all.len() >= MOST_OBJECTS {
            return None;
        }
        let number = self.all.len() as u32;
        self.all.push(Rc::new(Object { path: path.into(), binary: binary(path, known, at_ns), memory: None, jitted: None }));
        self.by_path.insert(path.into(), number);
        Some(number)
    }
}

fn area_of(binary: &Binary, bias: u64, object: u32) -> Area {
    let Range { start, end } = binary.segments.range();
    let (start, end) = (start.wrapping_add(bias), end.wrapping_add(bias));
    // Inconsistent numbers make an empty area.
    Area { range: start..end.max(start), bias, object }
}

/// The binary at a path, if it is the file that was mapped at this time.
fn binary(path: &Path, known: Option<(u64, u64)>, at_ns: i64) -> Option<Binary> {
    let file = elf::open_regular(path).ok()?;
    let found = file.metadata().ok()?;
    let same = known.is_none_or(|known| known == (found.ino(), found.size()));
    let changed_ns = found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec());
    (same && changed_ns <= at_ns).then(|| Binary::read(&file)).flatten()
}
