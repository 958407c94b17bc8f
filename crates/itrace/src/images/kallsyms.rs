//! Symbols of a kernel, in the form of /proc/kallsyms.

use std::path::Path;

/// Functions of the kernel and its modules, by address.
#[derive(Debug, Default)]
pub(crate) struct Kallsyms {
    /// Address, name, and index of the module.
    symbols: Vec<(u64, String, Option<u16>)>,
    modules: Vec<String>,
}

impl Kallsyms {
    /// Read a file; it counts as empty if it cannot be read.
    pub(crate) fn read(path: &Path) -> Kallsyms {
        std::fs::read_to_string(path).map(|text| Kallsyms::parse(&text)).unwrap_or_default()
    }

    pub(crate) fn parse(text: &str) -> Kallsyms {
        let mut names = Kallsyms::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else { continue };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            if address >> 63 == 0 || !matches!(kind, "t" | "T" | "w" | "W") || is_no_function(name) {
                continue;
            }
            let module = words.next().map(|word| names.module(word.trim_matches(['[', ']'])));
            names.symbols.push((address, name.into(), module));
        }
        // The first of several names of an address in the file.
        names.symbols.sort_by_key(|symbol| symbol.0);
        names.symbols.dedup_by_key(|symbol| symbol.0);
        names
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Start, name and module of the function at an address.
    pub(crate) fn find(&self, address: u64) -> Option<(u64, &str, Option<&str>)> {
        let after = self.symbols.partition_point(|symbol| symbol.0 <= address);
        let (start, name, module) = self.symbols.get(after.checked_sub(1)?)?;
        let module = module.map(|number| self.modules[usize::from(number)].as_str());
        Some((*start, name, module))
    }

    fn module(&mut self, name: &str) -> u16 {
        if self.modules.last().is_none_or(|last| last != name) {
            match self.modules.iter().position(|known| known == name) {
                Some(known) => return known as u16,
                None => self.modules.push(name.into()),
            }
        }
        self.modules.len() as u16 - 1
    }
}

/// Whether a name is a label within a function, or a mark of a section.
fn is_no_function(name: &str) -> bool {
    name.starts_with(".L") || name.starts_with("__pfx_") || name.starts_with("__cfi_") || name == "_text" || name == "_stext"
}
