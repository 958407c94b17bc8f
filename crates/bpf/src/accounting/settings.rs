//! Settings of the programs, made before they are loaded: `struct settings`. What each call does
//! comes from the list of system calls.

use std::{fs, io, os::unix::fs::MetadataExt};

use sysdock_calls::syscalls::{self, Calls, Class, Shape};

use crate::{
    config::CALLS,
    events::{
        JobVariable, KIND_ATTRIBUTE, KIND_CLOSE, KIND_COPY, KIND_MAKE, KIND_NONE, KIND_OPEN, KIND_READ, KIND_READDIR,
        KIND_REMOVE, KIND_RENAME, KIND_STAT, KIND_SYNC, KIND_WRITE, Layout, MEANS_ID, MEANS_MARKER, MEANS_NAME, MEANS_OUTSIDE,
    },
    families::calls::numbers,
};

const MOST_VARIABLES: usize = 16;
/// Longest name of a variable, with its `=` [B].
const MOST_LETTERS: usize = 24;

/// Meaning of an environment variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableKind {
    /// Number of the job.
    Id,
    /// Name of the job.
    Name,
    /// Shows that a batch system started the process: some variables have names too common to be
    /// trusted by themselves.
    Marker,
    /// Shows, in a process of root, that it works for no job: an epilogue has the variables of the
    /// job that it is about.
    Outside,
}

/// Set by the epilogues that are part of sysdock.
const OUTSIDE: &str = "SYSDOCK_OUTSIDE_JOB";

/// An environment variable that batch systems set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    pub kind: VariableKind,
    /// Number of the batch system that sets it; below 32.
    pub scheduler: u8,
    /// Whether the marker of its batch system must be set as well.
    pub needs_marker: bool,
}

/// The mount namespace of the host: that of the first process, as a service may have one of its own.
fn mount_namespace() -> io::Result<fs::Metadata> {
    fs::metadata("/proc/1/ns/mnt").or_else(|_| fs::metadata("/proc/self/ns/mnt"))
}

/// `struct settings` as bytes. Variables that are too long, or too many, are left out and returned.
pub(super) fn bytes(variables: &[Variable]) -> io::Result<(Vec<u8>, Vec<String>)> {
    let mut out = mount_namespace()?.ino().to_ne_bytes().to_vec();
    out.extend(kinds());
    let outside = Variable { name: OUTSIDE.into(), kind: VariableKind::Outside, scheduler: 0, needs_marker: false };
    let (fit, left_out): (Vec<_>, Vec<_>) = std::iter::once(&outside)
        .chain(variables)
        .enumerate()
        .partition(|(place, one)| *place < MOST_VARIABLES && one.name.len() < MOST_LETTERS);
    for place in 0..MOST_VARIABLES {
        let mut bytes = vec![0; JobVariable::BYTES];
        if let Some((_, variable)) = fit.get(place) {
            layout_of(variable).write(&mut bytes);
        }
        out.extend(bytes);
    }
    Ok((out, left_out.into_iter().map(|(_, variable)| variable.name.clone()).collect()))
}

fn layout_of(variable: &Variable) -> JobVariable {
    let name = format!("{}=", variable.name);
    let word = |bytes: &[u8; MOST_LETTERS], at: usize| {
        u64::from_ne_bytes(*bytes[at * 8..].first_chunk().expect("three words of eight bytes"))
    };
    let (mut letters, mut mask) = ([0; MOST_LETTERS], [0; MOST_LETTERS]);
    letters[..name.len()].copy_from_slice(name.as_bytes());
    mask[..name.len()].fill(0xff);
    let bit = 1 << (variable.scheduler & 31);
    JobVariable {
        name: [word(&letters, 0), word(&letters, 1), word(&letters, 2)],
        mask: [word(&mask, 0), word(&mask, 1), word(&mask, 2)],
        length: name.len() as u32,
        meaning: match variable.kind {
            VariableKind::Id => MEANS_ID,
            VariableKind::Name => MEANS_NAME,
            VariableKind::Marker => MEANS_MARKER,
            VariableKind::Outside => MEANS_OUTSIDE,
        },
        scheduler: bit,
        needs: if variable.needs_marker { bit } else { 0 },
    }
}

/// The kind of each call, by its number.
fn kinds() -> Vec<u8> {
    let mut calls = Calls::new();
    let mut kinds = vec![KIND_NONE; CALLS];
    for (number, name) in numbers::names().into_iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        let (_, (class, shape)) = calls.look_up(syscalls::number(name.as_bytes()), name.as_bytes());
        kinds[number] = kind_of(name, *class, *shape);
    }
    kinds
}

fn kind_of(name: &str, class: Class, shape: Shape) -> u8 {
    match (class, shape) {
        (Class::Read, Shape::Transfer(..)) => KIND_READ,
        (Class::Write, Shape::Transfer(..)) => KIND_WRITE,
        (Class::Copy, Shape::Between { .. }) => KIND_COPY,
        (Class::Open, Shape::Open(..) | Shape::Create) => KIND_OPEN,
        (Class::Close, Shape::Close) => KIND_CLOSE,
        (Class::Stat, Shape::Fd | Shape::Path(_) | Shape::PathAt(..)) => KIND_STAT,
        (Class::Dir, Shape::Directory) => KIND_READDIR,
        (Class::Name, Shape::Remove(..)) => KIND_REMOVE,
        (Class::Name, Shape::Rename(..)) => KIND_RENAME,
        (Class::Name, _) if ["link", "mkdir", "mknod", "symlink"].iter().any(|made| name.starts_with(made)) => KIND_MAKE,
        (Class::Attr, Shape::Fd | Shape::Path(_) | Shape::PathAt(..) | Shape::Truncate) => KIND_ATTRIBUTE,
        (Class::Sync, Shape::Fd) => KIND_SYNC,
        _ => KIND_NONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_what_their_names_say() {
        let kinds = kinds();
        let of = |number: libc::c_long| kinds[usize::try_from(number).expect("positive")];
        assert_eq!([of(libc::SYS_read), of(libc::SYS_preadv2), of(libc::SYS_pwrite64)], [KIND_READ, KIND_READ, KIND_WRITE]);
        assert_eq!([of(libc::SYS_openat), of(libc::SYS_creat), of(libc::SYS_openat2)], [KIND_OPEN; 3]);
        assert_eq!([of(libc::SYS_newfstatat), of(libc::SYS_access), of(libc::SYS_statx)], [KIND_STAT; 3]);
        assert_eq!([of(libc::SYS_mkdirat), of(libc::SYS_symlinkat), of(libc::SYS_linkat)], [KIND_MAKE; 3]);
        assert_eq!([of(libc::SYS_unlinkat), of(libc::SYS_rmdir)], [KIND_REMOVE; 2]);
        assert_eq!([of(libc::SYS_renameat2), of(libc::SYS_getdents64)], [KIND_RENAME, KIND_READDIR]);
        assert_eq!([of(libc::SYS_fdatasync), of(libc::SYS_sync)], [KIND_SYNC, KIND_NONE]);
        assert_eq!([of(libc::SYS_sendfile), of(libc::SYS_copy_file_range)], [KIND_COPY; 2]);
        assert_eq!([of(libc::SYS_mount), of(libc::SYS_futex), of(libc::SYS_getcwd)], [KIND_NONE; 3]);
    }

    #[test]
    fn names_that_are_too_long_are_returned() {
        let of = |name: &str| Variable { name: name.into(), kind: VariableKind::Id, scheduler: 1, needs_marker: false };
        let (bytes, left_out) = bytes(&[of("SLURM_JOB_ID"), of("A_NAME_OF_MORE_THAN_23_LETTERS")]).expect("/proc is there");
        assert_eq!(bytes.len(), 8 + CALLS + MOST_VARIABLES * JobVariable::BYTES);
        assert_eq!(left_out, ["A_NAME_OF_MORE_THAN_23_LETTERS"]);
        let at = |place: usize| JobVariable::read(&bytes[8 + CALLS + place * JobVariable::BYTES..]).expect("it is there");
        assert_eq!((at(0).meaning, at(0).length as usize), (MEANS_OUTSIDE, OUTSIDE.len() + 1), "ours is never left out");
        let first = at(1);
        assert_eq!((&first.name[0].to_ne_bytes(), &first.name[1].to_ne_bytes()[..5]), (b"SLURM_JO", &b"B_ID="[..]));
        assert_eq!((first.length, first.scheduler, first.needs), (13, 2, 0));
    }
}
