//! Functions of a kernel and its modules, by address.

use std::path::Path;

use sysdock_symbols::kallsyms::{Line, Places};

/// A file in the form of /proc/kallsyms, and where its functions are.
#[derive(Debug, Default)]
pub(crate) struct Kallsyms {
    text: String,
    functions: Places,
}

impl Kallsyms {
    /// Read a file; it counts as empty if it cannot be read.
    pub(crate) fn read(path: &Path) -> Kallsyms {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        Kallsyms { functions: Places::of(&text, is_function), text }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.functions.number() == 0
    }

    /// Start, name and module of the function at an address.
    pub(crate) fn find(&self, address: u64) -> Option<(u64, &str, Option<&str>)> {
        let Line { address, name, module, .. } = self.functions.before(&self.text, address)?;
        Some((address, name, module.map(|module| module.trim_matches(['[', ']']))))
    }
}

/// Whether it is a function of the kernel; no label within one, and no mark of a section.
fn is_function(line: &Line<'_>) -> bool {
    let is_mark = [".L", "__pfx_", "__cfi_"].iter().any(|start| line.name.starts_with(start));
    line.address >> 63 == 1 && line.is_code() && !is_mark && line.name != "_text" && line.name != "_stext"
}
