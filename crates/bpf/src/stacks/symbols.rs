//! From places in binaries to functions and source lines, by their symbols and debug information; of a function that was put into another
//! by the compiler both are named.

use std::path::Path;

use blazesym::symbolize::{
    CodeInfo, Input, Sym, Symbolized, Symbolizer,
    source::{Elf, Source},
};

/// What is known of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Symbol {
    /// What holds it, where that is not the object itself: a module of the kernel.
    pub(crate) object: Option<String>,
    pub(crate) function: Option<String>,
    /// Bytes behind the start of the function; unknown for one that was put into another.
    pub(crate) offset: Option<i64>,
    /// File and line.
    pub(crate) source: Option<String>,
}

/// The functions at each of these addresses of a binary, the innermost first; none where nothing is known.
pub(crate) fn symbols(path: &Path, addresses: &[u64]) -> Vec<Vec<Symbol>> {
    // Anew for each binary, so that its debug information does not stay in memory.
    let symbolizer = Symbolizer::builder().enable_auto_reload(false).build();
    let source = Source::Elf(Elf::new(path));
    let Ok(found) = symbolizer.symbolize(&source, Input::VirtOffset(addresses)) else { return vec![Vec::new(); addresses.len()] };
    let mut all: Vec<Vec<Symbol>> = found.iter().map(functions).collect();
    all.resize(addresses.len(), Vec::new());
    all
}

fn functions(found: &Symbolized<'_>) -> Vec<Symbol> {
    let Symbolized::Sym(Sym { name, offset, code_info, inlined, .. }) = found else { return Vec::new() };
    let within = inlined.iter().rev().map(|function| Symbol {
        object: None,
        function: Some(function.name.to_string()),
        offset: None,
        source: function.code_info.as_ref().map(place),
    });
    let outer = Symbol {
        object: None,
        function: Some(name.to_string()),
        offset: i64::try_from(*offset).ok(),
        source: code_info.as_deref().map(place),
    };
    within.chain([outer]).collect()
}

fn place(info: &CodeInfo<'_>) -> String {
    let path = info.to_path();
    match info.line {
        Some(line) => format!("{}:{line}", path.display()),
        None => path.display().to_string(),
    }
}
