//! Functions and source lines for addresses in binaries, from symbols and debug information. For an
//! inlined function, the function that contains it is named as well.

use std::{borrow::Cow, path::Path};

use blazesym::symbolize::{
    CodeInfo, Input, Sym, Symbolized, Symbolizer,
    source::{Elf, Source},
};

/// The symbol of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Symbol {
    /// The module of the kernel, if the symbol belongs to one.
    pub(crate) object: Option<String>,
    pub(crate) function: Option<String>,
    /// Offset in the function [B]; unknown for an inlined one.
    pub(crate) offset: Option<i64>,
    /// File and line.
    pub(crate) source: Option<String>,
}

/// The functions at each of these addresses of a binary, the innermost first; empty where nothing
/// is known.
pub(crate) fn symbols(path: &Path, addresses: &[u64]) -> Vec<Vec<Symbol>> {
    // A new symbolizer for each binary, so that its debug information does not stay in memory.
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
        function: Some(readable(&function.name).into_owned()),
        offset: None,
        source: function.code_info.as_ref().map(place),
    });
    let outer = Symbol {
        object: None,
        function: Some(readable(name).into_owned()),
        offset: i64::try_from(*offset).ok(),
        source: code_info.as_deref().map(place),
    };
    within.chain([outer]).collect()
}

/// The name of a function as its programmer wrote it. Only names that begin with a prefix of C++ or
/// Rust compilers are demangled: in the grammar of C++ the whole name of a C function such as `w`
/// or `i` is a type, `wchar_t` or `int`.
fn readable(name: &str) -> Cow<'_, str> {
    if !["_Z", "__Z", "_R", "__R"].iter().any(|start| name.starts_with(start)) {
        return name.into();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        // The alternate form omits the hash at the end.
        return format!("{rust:#}").into();
    }
    let cpp = cpp_demangle::Symbol::new(name).ok().and_then(|symbol| symbol.demangle().ok());
    cpp.map_or_else(|| name.into(), Into::into)
}

fn place(info: &CodeInfo<'_>) -> String {
    let path = info.to_path();
    match info.line {
        Some(line) => format!("{}:{line}", path.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_compilers_made_are_taken_apart() {
        for plain in ["w", "i", "main", "Rx", "ZN3foo", "_Zwrong", ""] {
            assert_eq!(readable(plain), plain);
        }
        assert_eq!(readable("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(readable("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
    }
}
