//! Functions and source lines for addresses in binaries, from symbols and debug information. For an
//! inlined function, the function that contains it is named as well.

use std::{borrow::Cow, path::Path};

use blazesym::symbolize::{
    CodeInfo, Input, Sym, Symbolized, Symbolizer,
    source::{Elf, Source},
};

/// The symbol of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbol {
    /// The module of the kernel, if the symbol belongs to one.
    pub object: Option<String>,
    pub function: Option<String>,
    /// Offset in the function [B]; unknown for an inlined one.
    pub offset: Option<i64>,
    /// File and line.
    pub source: Option<String>,
}

/// Makes a name of what a symbol states.
pub type Naming = fn(&str) -> Cow<'_, str>;

/// The functions at each of these addresses of a binary, the innermost first; empty where nothing
/// is known, or the file cannot be read.
#[must_use]
pub fn symbols(path: &Path, addresses: &[u64], naming: Naming) -> Vec<Vec<Symbol>> {
    // A new symbolizer for each binary, so that its debug information does not stay in memory.
    let symbolizer = Symbolizer::builder().enable_auto_reload(false).build();
    let source = Source::Elf(Elf::new(path));
    let Ok(found) = symbolizer.symbolize(&source, Input::VirtOffset(addresses)) else { return vec![Vec::new(); addresses.len()] };
    let mut all: Vec<Vec<Symbol>> = found.iter().map(|found| functions(found, naming)).collect();
    all.resize(addresses.len(), Vec::new());
    all
}

fn functions(found: &Symbolized<'_>, naming: Naming) -> Vec<Symbol> {
    let Symbolized::Sym(Sym { name, offset, code_info, inlined, .. }) = found else { return Vec::new() };
    let within = inlined.iter().rev().map(|function| Symbol {
        object: None,
        function: Some(naming(&function.name).into_owned()),
        offset: None,
        source: function.code_info.as_ref().map(place),
    });
    let outer = Symbol {
        object: None,
        function: Some(naming(name).into_owned()),
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
