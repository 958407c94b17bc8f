//! Code of modules: its addresses, the names of its functions, and the tables for unwinding.

use std::ops::Range;

use sysdock_symbols::btf::Types;

use crate::{
    error::Fault,
    format::{u16_at, u32_at, u64_at},
    kernel::Kernel,
    orc::Table,
};

/// Size of `Elf64_Sym`.
const SYMBOL_BYTES: usize = 24;
/// More symbols than any module has.
const MOST_SYMBOLS: u64 = 1 << 20;
const MOST_ENTRIES: u64 = 4 << 20;

/// The code of a module.
pub(crate) struct Code {
    pub(crate) module: String,
    pub(crate) range: Range<u64>,
    pub(crate) orc: Option<Table>,
    /// Functions with their names, ordered by address.
    functions: Vec<(u64, String)>,
}

impl Code {
    /// Its functions, ordered by address.
    pub(crate) fn functions(&self) -> impl Iterator<Item = (u64, &str)> {
        self.functions.iter().map(|(address, name)| (*address, name.as_str()))
    }

    /// The function that contains an address, and the offset in it.
    pub(crate) fn function(&self, address: u64) -> Option<(&str, u64)> {
        let end = self.functions.partition_point(|(start, _)| *start <= address);
        let until = self.functions.get(..end)?;
        let (last, _) = until.last()?;
        // The first of several names at one address, as in the kernel.
        let first = until.partition_point(|(start, _)| start < last);
        self.functions.get(first).map(|(start, name)| (name.as_str(), address - start))
    }
}

impl Kernel {
    /// The code of all readable modules.
    pub(crate) fn code(&self) -> &[Code] {
        self.code.get_or_init(|| self.read_code().unwrap_or_default())
    }

    /// The module that contains an address.
    pub(crate) fn code_at(&self, address: u64) -> Option<&Code> {
        self.code().iter().find(|code| code.range.contains(&address))
    }

    /// The function that contains an address, the offset in it, and its module, if it belongs to
    /// one.
    pub(crate) fn function(&self, address: u64) -> Option<(&str, u64, Option<&str>)> {
        if self.image.contains(&address) {
            return self.symbols.function(address).map(|(name, far)| (name, far, None));
        }
        let code = self.code_at(address)?;
        code.function(address).map(|(name, far)| (name, far, Some(code.module.as_str())))
    }

    /// The types that contain a structure of this name: those of the kernel, or of a module.
    pub(crate) fn types_with(&self, structure: &str) -> Option<&Types> {
        let kernel = &*self.types;
        if kernel.structure(structure).is_some() {
            return Some(kernel);
        }
        let of_modules = self.module_types.get_or_init(|| self.read_types().unwrap_or_default());
        of_modules.iter().find(|types| types.structure(structure).is_some())
    }

    /// Read the types of modules (`struct btf_module`, kernel/bpf/btf.c).
    fn read_types(&self) -> Result<Vec<Types>, Fault> {
        let modules = self.list(self.symbol("btf_modules")?, self.field("btf_module", "list")?.offset);
        let types = self.field("btf_module", "btf")?;
        let part = |btf: u64, name: &str| self.number(btf, self.field("btf", name)?);
        let read = |module: &u64| -> Result<Types, Fault> {
            let btf = self.number(*module, types)?;
            let data = self.memory.bytes(part(btf, "data")?, part(btf, "data_size")?)?;
            Types::of(data, Some(self.types.clone())).ok_or(Fault::Damaged)
        };
        Ok(modules.entries.iter().filter_map(|module| read(module).ok()).collect())
    }

    fn read_code(&self) -> Result<Vec<Code>, Fault> {
        let modules = self.list(self.symbol("modules")?, self.field("module", "list")?.offset);
        let name = self.field("module", "name")?;
        let mut found = Vec::new();
        for module in modules.entries {
            let (Ok(name), Ok(range)) = (self.text(module, name), self.code_range(module)) else { continue };
            let functions = self.functions_of(module).unwrap_or_default();
            found.push(Code { module: name, range, orc: self.orc_of(module).ok(), functions });
        }
        Ok(found)
    }

    /// Addresses of the code of a module: the first of its memory areas since 6.4.
    fn code_range(&self, module: u64) -> Result<Range<u64>, Fault> {
        let number = |path: &str| self.number(module, self.field("module", path)?);
        if let Ok(pieces) = self.field("module", "mem") {
            let first = module.wrapping_add(pieces.offset);
            let start = self.number(first, self.field("module_memory", "base")?)?;
            return Ok(start..start.saturating_add(self.number(first, self.field("module_memory", "size")?)?));
        }
        let start = number("core_layout.base")?;
        Ok(start..start.saturating_add(number("core_layout.text_size")?))
    }

    fn functions_of(&self, module: u64) -> Result<Vec<(u64, String)>, Fault> {
        let table = self.number(module, self.field("module", "kallsyms")?)?;
        let part = |name: &str| self.number(table, self.field("mod_kallsyms", name)?);
        let (symbols, count, names, kinds) = (part("symtab")?, part("num_symtab")?, part("strtab")?, part("typetab")?);
        if count > MOST_SYMBOLS {
            return Err(Fault::TooLong);
        }
        let symbols = self.memory.bytes(symbols, count * SYMBOL_BYTES as u64)?;
        let kinds = self.memory.bytes(kinds, count)?;
        let mut functions = Vec::new();
        for (symbol, kind) in symbols.chunks_exact(SYMBOL_BYTES).zip(kinds) {
            let (name, section) = (u32_at(symbol, 0), u16_at(symbol, 6));
            if section != 0 && matches!(kind, b't' | b'T' | b'w' | b'W') {
                functions.push((u64_at(symbol, 8), self.string(names.wrapping_add(u64::from(name)))?));
            }
        }
        functions.sort_by_key(|(address, _)| *address);
        Ok(functions)
    }

    fn orc_of(&self, module: u64) -> Result<Table, Fault> {
        let number = |path: &str| self.number(module, self.field("module", path)?);
        let (count, places, entries) = (number("arch.num_orcs")?, number("arch.orc_unwind_ip")?, number("arch.orc_unwind")?);
        if count > MOST_ENTRIES {
            return Err(Fault::TooLong);
        }
        Table::read(self, places, entries, count)
    }
}
