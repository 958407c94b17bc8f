//! A kernel in a dump: its memory, its symbols, its types.

use std::{cell::OnceCell, ops::Range, sync::Arc};

use serde_json::{Value, json};
use sysdock_symbols::btf::{Field, Types};
use sysdock_table::{Cancel, Fact, facts::dump as facts};

use crate::{
    debug_info::DebugInfo,
    error::{DumpError, Fault, NoDump, NotReadable},
    format::{self, About, PAGE, Registers, Source, u64_at},
    memory::Memory,
    modules::Code,
    symbols::Symbols,
    users::UserPages,
    vmcoreinfo::VmCoreInfo,
};

/// Facts about a dump, from its headers and notes.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// Name of the file format.
    pub format: &'static str,
    /// Release of the kernel, for example `6.1.0-56-cloud-amd64`.
    pub release: Option<String>,
    /// Build id, by which files of debug information are found.
    pub build_id: Option<String>,
    /// Size of the memory whose content is in the file [B].
    pub bytes: u64,
    /// Number of processors whose registers are in the file.
    pub processors: usize,
    /// The pages that makedumpfile left out (`-d`), if it made the file.
    pub level: Option<i32>,
    /// Number of symbols; 0: none could be read.
    pub symbols: usize,
    /// Number of types; 0: none could be read.
    pub types: usize,
    /// Problems that did not prevent reading the dump.
    pub remarks: Vec<Fact>,
}

impl Description {
    /// The output of `sysdock dump info --format json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "format": self.format, "release": self.release, "build_id": self.build_id,
            "pages_bytes": self.bytes, "level": self.level, "processors": self.processors,
            "symbols": self.symbols, "types": self.types, "remarks": self.remarks,
        })
    }
}

/// A kernel whose memory was opened.
pub struct Kernel {
    pub(crate) memory: Memory,
    pub(crate) info: VmCoreInfo,
    pub(crate) symbols: Arc<Symbols>,
    pub(crate) types: Arc<Types>,
    pub(crate) registers: Vec<Registers>,
    /// Offsets of the variables of each processor, as far as known.
    per_cpu: Vec<u64>,
    description: Description,
    /// Addresses of the kernel's own code.
    pub(crate) image: Range<u64>,
    /// Code of modules, read on first use.
    pub(crate) code: OnceCell<Vec<Code>>,
    /// Types of modules, read on first use.
    pub(crate) module_types: OnceCell<Vec<Types>>,
    /// Debug information, if a file is used.
    pub(crate) debug_info: Option<DebugInfo>,
    /// Pages that [`Kernel::answer`] does not show; `None`: it shows all.
    pub(crate) users: Option<UserPages>,
}

impl Kernel {
    /// Open a dump, and read its symbols and types.
    ///
    /// # Errors
    /// [`DumpError`]: the file cannot be read, is no dump of a kernel, or one that is not
    /// supported.
    pub fn open(source: Source) -> Result<Kernel, DumpError> {
        let is_file = matches!(source, Source::File(_));
        let path = &source.path().to_path_buf();
        let (physical, about) = format::open(source)?;
        let About { format, vmcoreinfo, registers, level, mut remarks } = about;
        let given = vmcoreinfo.map(|bytes| VmCoreInfo::of(&bytes)).filter(|info| info.symbol("_stext").is_some());
        let info = match given {
            Some(info) => info,
            None => {
                if is_file {
                    remarks.push(facts::vmcoreinfo_from_memory());
                }
                VmCoreInfo::search(&*physical).ok_or_else(|| DumpError::NoDump(path.into(), NoDump::NoVmCoreInfo))?
            }
        };
        let pages = physical.pages();
        let mut memory =
            Memory::new(physical, &info).ok_or_else(|| DumpError::NotReadable(path.into(), NotReadable::NoPageTable))?;
        let symbols = Symbols::read(&memory, &info).unwrap_or_else(|fault| {
            remarks.push(facts::no_kallsyms(fault.name()));
            Symbols::default()
        });
        if let Some(start) = symbols.address("page_offset_base").and_then(|place| memory.u64(place).ok()) {
            memory.set_direct_map(start);
        }
        let types = types_of(&memory, &symbols).unwrap_or_else(|fault| {
            remarks.push(facts::no_btf(fault.name()));
            Types::default()
        });
        let description = Description {
            format,
            release: info.text("OSRELEASE").map(Into::into),
            build_id: info.text("BUILD-ID").map(Into::into),
            bytes: pages * PAGE,
            processors: registers.len(),
            level,
            symbols: symbols.len(),
            types: types.ids().count(),
            remarks,
        };
        let place = |name: &str| symbols.address(name).or_else(|| info.symbol(name));
        let image = place("_stext").unwrap_or(0)..place("_end").unwrap_or(u64::MAX);
        let per_cpu = per_cpu_offsets(&memory, &symbols).unwrap_or_default();
        Ok(Kernel {
            memory,
            info,
            symbols: Arc::new(symbols),
            types: Arc::new(types),
            registers,
            per_cpu,
            description,
            image,
            code: OnceCell::new(),
            module_types: OnceCell::new(),
            debug_info: None,
            users: None,
        })
    }

    /// The same kernel for another thread; `None`: only one thread can read its memory.
    pub(crate) fn twin(&self) -> Option<Kernel> {
        Some(Kernel {
            memory: self.memory.twin()?,
            info: self.info.clone(),
            symbols: Arc::clone(&self.symbols),
            types: Arc::clone(&self.types),
            registers: self.registers.clone(),
            per_cpu: self.per_cpu.clone(),
            description: self.description.clone(),
            image: self.image.clone(),
            code: OnceCell::new(),
            module_types: OnceCell::new(),
            debug_info: None,
            users: None,
        })
    }

    /// From now on, [`Kernel::answer`] refuses data of users: the memory of processes and the
    /// content of files.
    ///
    /// # Errors
    /// A [`Fault`]: it is unknown which pages these are.
    pub fn hide_users(&mut self) -> Result<(), Fault> {
        self.users = Some(UserPages::of(self)?);
        Ok(())
    }

    /// End all reading once this is requested. Results until then are kept.
    pub fn cancel_by(&mut self, cancel: &Cancel) {
        self.memory.set_cancel(cancel);
    }

    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Location of a member of a structure.
    pub(crate) fn field(&self, structure: &str, path: &str) -> Result<Field, Fault> {
        self.types.field(structure, path).ok_or(Fault::NoType)
    }

    /// The first of several members that this kernel has: names change between versions.
    pub(crate) fn any_field(&self, structure: &str, paths: &[&str]) -> Result<Field, Fault> {
        paths.iter().find_map(|path| self.types.field(structure, path)).ok_or(Fault::NoType)
    }

    /// The address of a symbol.
    pub(crate) fn symbol(&self, name: &str) -> Result<u64, Fault> {
        self.symbols.address(name).ok_or(Fault::NoType)
    }

    /// The number in a member of the structure at this address.
    pub(crate) fn number(&self, structure: u64, field: Field) -> Result<u64, Fault> {
        let value = self.memory.number(structure.wrapping_add(field.offset), field.size.min(8))?;
        Ok(match field.bits {
            Some((first, count)) => value >> first & (1_u64.checked_shl(count).unwrap_or(0).wrapping_sub(1)),
            None => value,
        })
    }

    /// The number in a member of the structure at this address. The member is looked up by name, so
    /// this is for single values, not for thousands.
    pub(crate) fn member(&self, address: u64, structure: &str, path: &str) -> Result<u64, Fault> {
        self.number(address, self.field(structure, path)?)
    }

    /// The text in a member, up to its first NUL.
    pub(crate) fn text(&self, structure: u64, field: Field) -> Result<String, Fault> {
        let bytes = self.memory.bytes(structure.wrapping_add(field.offset), field.size as u64)?;
        Ok(String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned())
    }

    /// The text at an address, of at most 256 bytes.
    pub(crate) fn string(&self, address: u64) -> Result<String, Fault> {
        const MOST: u64 = 256;
        // The next page may not be mapped.
        let here = MOST.min(PAGE - address % PAGE);
        let mut bytes = self.memory.bytes(address, here)?;
        if !bytes.contains(&0) && here < MOST {
            bytes.extend(self.memory.bytes(address.wrapping_add(here), MOST - here)?);
        }
        Ok(String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned())
    }

    /// Number of possible processors.
    pub(crate) fn cpus(&self) -> usize {
        self.per_cpu.len()
    }

    /// The address of a processor's instance of a variable.
    pub(crate) fn per_cpu(&self, address: u64, cpu: usize) -> Result<u64, Fault> {
        self.per_cpu.get(cpu).map(|offset| address.wrapping_add(*offset)).ok_or(Fault::NoType)
    }
}

fn per_cpu_offsets(memory: &Memory, symbols: &Symbols) -> Result<Vec<u64>, Fault> {
    const MOST: u32 = 8192;
    let place = |name: &str| symbols.address(name).ok_or(Fault::NoType);
    let count = memory.u32(place("nr_cpu_ids")?)?.min(MOST);
    let offsets = memory.bytes(place("__per_cpu_offset")?, u64::from(count) * 8)?;
    Ok(offsets.chunks_exact(8).map(|eight| u64_at(eight, 0)).collect())
}

fn types_of(memory: &Memory, symbols: &Symbols) -> Result<Types, Fault> {
    let (start, end) = (symbols.address("__start_BTF"), symbols.address("__stop_BTF"));
    let (start, end) = start.zip(end).ok_or(Fault::NoType)?;
    Types::of(memory.bytes(start, end.wrapping_sub(start))?, None).ok_or(Fault::Damaged)
}
