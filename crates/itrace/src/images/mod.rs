//! The images of processes: files of programs and libraries, the kernel and its modules, and their
//! functions.

mod kallsyms;
mod programs;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use rustc_hash::FxHashMap;
use sysdock_itrace_file::Block;
use sysdock_symbols::ElfImage;

use crate::{Mapping, Places, TraceFacts};

/// Part of the system that code belongs to: the values in tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    /// A program.
    User,
    /// A shared library, the loader, or the vDSO.
    Library,
    /// The kernel, with its modules.
    Kernel,
}

impl Mode {
    fn of_word(word: &str) -> Mode {
        match word {
            "kernel" => Mode::Kernel,
            "library" => Mode::Library,
            _ => Mode::User,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::User => "user",
            Mode::Library => "library",
            Mode::Kernel => "kernel",
        }
    }
}

/// A file with code, or memory without one.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) path: String,
    pub(crate) mode: Mode,
    pub(crate) build_id: Option<String>,
    /// Source of the names of its functions.
    pub(crate) symbols: String,
    elf: Option<ElfImage>,
}

/// The role of a function in calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    /// Entry of the kernel by a system call.
    SystemCall,
    /// Entry of the kernel by an interrupt.
    Interrupt,
    /// Entry of the kernel by a fault.
    Exception,
    /// Replaces a return (mitigations).
    ReturnThunk,
    /// Replaces an indirect jump (mitigations).
    IndirectThunk,
}

/// A function.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) image: u32,
    pub(crate) name: String,
    /// Its first address in its image.
    pub(crate) start: u64,
    pub(crate) role: Role,
}

/// All images and functions of which code was executed.
#[derive(Debug)]
pub(crate) struct Images {
    pub(crate) images: Vec<Image>,
    pub(crate) functions: Vec<Function>,
    by_path: FxHashMap<String, u32>,
    by_start: FxHashMap<(u32, u64), u32>,
    by_name: FxHashMap<(u32, String), u32>,
    kernel: kallsyms::Kallsyms,
    root: Option<PathBuf>,
    /// Mappings with code, by process, the latest last.
    mappings: FxHashMap<i32, Vec<Mapping>>,
    programs: programs::Programs,
    /// Functions that were determined before, by process and block.
    known: FxHashMap<(i32, u32), u32>,
    /// Image and address of user blocks, by process and block.
    addresses: FxHashMap<(i32, u32), (u32, u64)>,
}

impl Images {
    /// `folder`: where the files named in `facts` are.
    pub(crate) fn new(facts: &TraceFacts, folder: &Path) -> Images {
        let kernel = facts.kallsyms.as_ref().map(|path| kallsyms::Kallsyms::read(&folder.join(path))).unwrap_or_default();
        let mut mappings: FxHashMap<i32, Vec<Mapping>> = FxHashMap::default();
        let of_tasks = facts.tasks.iter().filter_map(|task| {
            let text = std::fs::read_to_string(folder.join(task.maps.as_ref()?)).ok()?;
            Some(Mapping::parse(&text, task.tgid, 0))
        });
        for mapping in of_tasks.flatten().chain(facts.mappings.iter().cloned()) {
            mappings.entry(mapping.tgid).or_default().push(mapping);
        }
        let names = facts.tasks.iter().map(|task| (task.tgid, task.comm.clone())).collect();
        let mut images = Images {
            images: Vec::new(),
            functions: Vec::new(),
            by_path: FxHashMap::default(),
            by_start: FxHashMap::default(),
            by_name: FxHashMap::default(),
            kernel,
            root: facts.root.as_ref().map(|root| folder.join(root)),
            mappings,
            programs: programs::Programs::below(facts.root.as_ref().map(|root| folder.join(root)), names),
            known: FxHashMap::default(),
            addresses: FxHashMap::default(),
        };
        images.learn(facts.places.as_ref());
        images
    }

    fn learn(&mut self, places: Option<&Places>) {
        let Some(places) = places else { return };
        self.images.extend(places.images.iter().map(|(path, mode, build_id, symbols)| Image {
            path: path.clone(),
            mode: Mode::of_word(mode),
            build_id: build_id.clone(),
            symbols: symbols.clone(),
            elf: None,
        }));
        // The file may be damaged: each function must belong to an existing image, and each block
        // to an existing function.
        let whole = places.functions.iter().filter(|(image, ..)| (*image as usize) < places.images.len());
        self.functions.extend(whole.map(|(image, name, start)| Function {
            image: *image,
            name: name.clone(),
            start: *start,
            role: role_of(name, self.images[*image as usize].mode),
        }));
        let count = self.functions.len();
        let blocks = places.blocks.iter().flat_map(|(tgid, blocks)| blocks.iter().map(move |each| (*tgid, *each)));
        self.known.extend(
            blocks
                .filter(|(_, (_, function))| (*function as usize) < count)
                .map(|(tgid, (block, function))| ((tgid, block), function)),
        );
    }

    /// The functions of blocks as facts; `blocks`: by process, the function of each block.
    pub(crate) fn places(&self, blocks: BTreeMap<i32, Vec<(u32, u32)>>) -> Places {
        let image =
            |image: &Image| (image.path.clone(), image.mode.name().to_owned(), image.build_id.clone(), image.symbols.clone());
        Places {
            images: self.images.iter().map(image).collect(),
            functions: self.functions.iter().map(|each| (each.image, each.name.clone(), each.start)).collect(),
            blocks,
        }
    }

    /// The function of a block of code with this number. `tgid`: the process, for user code;
    /// `event`: the time.
    pub(crate) fn function_of(&mut self, number: u32, block: &Block, tgid: i32, event: u64) -> u32 {
        if let Some(&known) = self.known.get(&(tgid, number)) {
            return known;
        }
        if block.address >> 63 == 1 {
            return self.kernel_function(block.address);
        }
        let own = self.mappings.get(&tgid).into_iter().flatten();
        let others = self.mappings.iter().filter(|(process, _)| **process != tgid).flat_map(|(_, each)| each);
        let covers = |mapping: &&Mapping| mapping.start <= block.address && block.address < mapping.end;
        // The latest mapping that was known then; else the first that was known later (a library
        // that was mapped while it ran).
        let mut candidates: Vec<Mapping> = own.filter(covers).cloned().collect();
        candidates.sort_by_key(|mapping| (mapping.from_event > event, mapping.from_event.abs_diff(event)));
        let own_count = candidates.len();
        candidates.extend(others.filter(covers).cloned());
        let mut unverified = None;
        for (index, mapping) in candidates.iter().enumerate() {
            let image = self.image(&mapping.path);
            let Some(elf) = &self.images[image as usize].elf else {
                if index < own_count && unverified.is_none() {
                    unverified = Some((image, block.address));
                }
                continue;
            };
            let offset = (block.address - mapping.start).wrapping_add(mapping.offset);
            if elf.has(offset, &block.code) {
                let Some(address) = elf.address_of(offset) else { continue };
                self.addresses.insert((tgid, number), (image, address));
                return self.user_function(image, address);
            }
            if index < own_count && unverified.is_none() {
                unverified = Some((image, elf.address_of(offset).unwrap_or(offset)));
            }
        }
        // A process that had ended before its mappings could be read.
        if own_count == 0
            && let Some((path, address)) = self.programs.find(block, tgid)
        {
            let image = self.image(&path);
            self.addresses.insert((tgid, number), (image, address));
            return self.user_function(image, address);
        }
        let (image, address) = unverified.unwrap_or_else(|| (self.image("[unknown]"), block.address));
        self.user_function(image, address)
    }

    /// The source line of an instruction, given by its offset in a block of a process.
    pub(crate) fn line(&self, tgid: i32, number: u32, offset: u64) -> Option<(&str, u32)> {
        let (image, address) = self.addresses.get(&(tgid, number))?;
        self.images[*image as usize].elf.as_ref()?.line(address + offset)
    }

    fn user_function(&mut self, image: u32, address: u64) -> u32 {
        let found = self.images[image as usize].elf.as_ref().map(|elf| elf.function(address));
        let (start, name) = match found {
            Some((start, Some(name))) => (start, name.to_owned()),
            Some((start, None)) => (start, format!("{}+{start:#x}", base_name(&self.images[image as usize].path))),
            // Memory without a file: one function for each page.
            None => (address & !0xfff, format!("{}+{:#x}", base_name(&self.images[image as usize].path), address & !0xfff)),
        };
        self.intern(image, start, name, Role::Plain)
    }

    fn kernel_function(&mut self, address: u64) -> u32 {
        let (start, name, module) = match self.kernel.find(address) {
            Some((start, name, module)) => (start, name.to_owned(), module.map(str::to_owned)),
            None => (address & !0xfff, format!("kernel+{:#x}", address & !0xfff), None),
        };
        let path = module.map_or_else(|| "[kernel]".to_owned(), |module| format!("[{module}]"));
        let image = self.image(&path);
        let role = role_of(&name, Mode::Kernel);
        // The compiler moves rarely executed code out of its function.
        let whole = name.split(".cold").next().unwrap_or(&name).to_owned();
        self.intern(image, start, whole, role)
    }

    fn intern(&mut self, image: u32, start: u64, name: String, role: Role) -> u32 {
        if let Some(&known) = self.by_start.get(&(image, start)) {
            return known;
        }
        let key = (image, name.clone());
        let next = self.functions.len() as u32;
        let number = *self.by_name.entry(key).or_insert(next);
        if number == next {
            self.functions.push(Function { image, name, start, role });
        }
        self.by_start.insert((image, start), number);
        number
    }

    fn image(&mut self, path: &str) -> u32 {
        if let Some(&known) = self.by_path.get(path) {
            return known;
        }
        let is_kernel = path.starts_with('[') && !["[vdso]", "[vsyscall]", "[stack]", "[heap]", "[unknown]"].contains(&path);
        let elf = (!is_kernel && path.starts_with('/'))
            .then(|| ElfImage::open(&self.on_this_machine(path), self.root.as_deref()))
            .flatten();
        let mode = if is_kernel {
            Mode::Kernel
        } else if path == "[vdso]" || base_name(path).contains(".so") {
            Mode::Library
        } else {
            Mode::User
        };
        let symbols = if is_kernel {
            if self.kernel.is_empty() { "none" } else { "kallsyms" }
        } else {
            elf.as_ref().map_or("none", ElfImage::symbols)
        };
        let build_id = elf.as_ref().and_then(|elf| elf.build_id.clone());
        let name = if path.is_empty() { "[anonymous]".to_owned() } else { path.to_owned() };
        let number = self.images.len() as u32;
        self.images.push(Image { path: name, mode, build_id, symbols: symbols.to_owned(), elf });
        self.by_path.insert(path.to_owned(), number);
        number
    }

    fn on_this_machine(&self, path: &str) -> PathBuf {
        match &self.root {
            Some(root) => root.join(path.trim_start_matches('/')),
            None => path.into(),
        }
    }
}

fn base_name(path: &str) -> &str {
    if path.is_empty() { "anonymous" } else { path.rsplit('/').next().unwrap_or(path) }
}

fn role_of(name: &str, mode: Mode) -> Role {
    if mode != Mode::Kernel {
        Role::Plain
    } else if name.contains("return_thunk") || name.contains("safe_ret") {
        Role::ReturnThunk
    } else if name.contains("__x86_indirect_") {
        Role::IndirectThunk
    } else if name.starts_with("entry_SYSCALL")
        || name.starts_with("entry_SYSENTER")
        || name == "asm_int80_emulation"
        || name == "entry_INT80_compat"
    {
        Role::SystemCall
    } else if name.starts_with("asm_exc_") {
        Role::Exception
    } else if name.starts_with("asm_sysvec_")
        || name.starts_with("asm_common_interrupt")
        || name.starts_with("irq_entries")
        || name.starts_with("spurious_entries")
        || name == "asm_spurious_interrupt"
        || name == "asm_exc_nmi"
    {
        Role::Interrupt
    } else {
        Role::Plain
    }
}
