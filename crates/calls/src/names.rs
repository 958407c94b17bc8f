//! Normal forms of paths, and names of programs.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use sysdock_table::readable;

/// An absolute path without `//`, `/.` and `/..`. Links are not known from a log, so `a/../b`
/// becomes `b`, as in a shell.
pub fn normal(path: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if path.len() <= 1 || !has_odd_slash(&path) {
        return path;
    }
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let mut out = Vec::with_capacity(path.len());
    for part in parts {
        out.push(b'/');
        out.extend_from_slice(part);
    }
    if out.is_empty() {
        out.push(b'/');
    }
    Cow::Owned(out)
}

/// Whether a path has a slash at its end, or a slash before a slash or a dot.
fn has_odd_slash(path: &[u8]) -> bool {
    // Without an early exit, many bytes are compared in one step.
    let pairs = path.iter().zip(path.iter().skip(1));
    let odd = |(one, next): (&u8, &u8)| (*one == b'/') & ((*next == b'/') | (*next == b'.'));
    pairs.fold(false, |found, pair| found | odd(pair)) || path.last() == Some(&b'/')
}

/// Name of the program in an executable, as the kernel keeps it: the last component of the path, at
/// most 15 bytes.
pub fn comm(path: &[u8]) -> &[u8] {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    &name[..name.len().min(15)]
}

/// Names of programs: the table `commands`.
#[derive(Debug, Default)]
pub struct Commands {
    ids: FxHashMap<Box<[u8]>, i32>,
    /// The names by their numbers.
    pub names: Vec<String>,
}

impl Commands {
    /// The number of a name.
    pub fn intern(&mut self, name: &[u8]) -> i32 {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = i32::try_from(self.names.len()).expect("fewer than 2^31 program names");
        self.names.push(readable(name).into_owned());
        self.ids.insert(name.into(), id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_normal() {
        let cases = [("/a//b/./c/", "/a/b/c"), ("/a/../b", "/b"), ("/..", "/"), ("/.hidden", "/.hidden"), ("/", "/")];
        for (path, expected) in cases {
            assert_eq!(normal(Cow::Borrowed(path.as_bytes())), expected.as_bytes(), "{path}");
        }
    }

    #[test]
    fn odd_slashes_are_found_at_any_place() {
        for at in 0..40 {
            for (pair, odd) in [(b"//", true), (b"/.", true), (b"/x", false), (b"./", false)] {
                let mut path = vec![b'_'; 42];
                path[at..at + 2].copy_from_slice(pair);
                assert_eq!(has_odd_slash(&path), odd, "{at}");
                assert!(has_odd_slash(&path[..at + 1]) == (pair[0] == b'/'), "{at}");
            }
        }
    }
}
