//! The flags of an open that matter here.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenFlags {
    pub(crate) append: bool,
    pub(crate) close_on_exec: bool,
    pub(crate) create: bool,
    pub(crate) directory: bool,
    pub(crate) exclusive: bool,
    pub(crate) truncate: bool,
}

/// The names of flags in an argument, joined by `|`; openat2 prints them in a structure
/// (`{flags=O_RDWR|O_CREAT, mode=...}`).
pub(crate) fn flag_names(argument: &[u8]) -> &[u8] {
    /// All flags of Linux together are shorter.
    const LONGEST: usize = 256;
    let names = argument.strip_prefix(b"{flags=").unwrap_or(argument);
    let end = memchr::memchr2(b',', b'}', names).unwrap_or(names.len());
    &names[..end.min(LONGEST)]
}

impl OpenFlags {
    /// Parse the flags argument of an open.
    pub(crate) fn of(argument: &[u8]) -> Self {
        let mut flags = OpenFlags::default();
        for word in flag_names(argument).split(|byte| *byte == b'|') {
            match word {
                b"O_APPEND" => flags.append = true,
                b"O_CLOEXEC" => flags.close_on_exec = true,
                b"O_CREAT" => flags.create = true,
                b"O_DIRECTORY" => flags.directory = true,
                b"O_EXCL" => flags.exclusive = true,
                b"O_TRUNC" => flags.truncate = true,
                _ => {}
            }
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_and_openat2_prints_them_in_a_structure() {
        let new = OpenFlags { create: true, exclusive: true, ..OpenFlags::default() };
        assert_eq!(OpenFlags::of(b"O_CREAT|O_EXCL|O_WRONLY"), new);
        assert_eq!(OpenFlags::of(b"{flags=O_CREAT|O_EXCL, mode=0644, resolve=0}"), new);
        assert_eq!(OpenFlags::of(b"O_CREATE|0x4000"), OpenFlags::default());
    }
}
