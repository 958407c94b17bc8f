//! Names of functions as their programmers wrote them.

use std::borrow::Cow;

/// The name of a function as its programmer wrote it. Only names that begin with a prefix of C++ or
/// Rust compilers are demangled: in the grammar of C++ the whole name of a C function such as `w`
/// or `i` is a type, `wchar_t` or `int`.
#[must_use]
pub fn demangle(name: &str) -> Cow<'_, str> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_compilers_made_are_taken_apart() {
        for plain in ["w", "i", "main", "Rx", "ZN3foo", "_Zwrong", ""] {
            assert_eq!(demangle(plain), plain);
        }
        assert_eq!(demangle("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(demangle("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
    }
}
