//! Settings of the programs, made before they are loaded: `struct config` of `bpf/config.h`, from
//! the list of system calls.

use std::{fs, io, os::unix::fs::MetadataExt, time::Duration};

use sysdock_calls::syscalls::{self, At, Calls, Class, Requested, Shape};

use crate::families::calls::{compat, numbers};

/// Number of calls that can be distinguished.
pub(crate) const CALLS: usize = 512;
const NONE: u8 = 0xff;

/// The processes whose events are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Every process of the system except the recorder.
    All,
    /// The processes in a control group (version 2) and its descendants: the inode number of its
    /// folder.
    ControlGroup(u64),
    /// These thread groups, and those that they create.
    Processes(Vec<u32>),
}

const NEW_FD: u16 = 1;
const POSITION: u16 = 2;
const VECTOR: u16 = 4;
const OFFSET_POINTER: u16 = 8;
const FILE_BEFORE: u16 = 16;
const PAIR: u16 = 32;
const RENAMES: u16 = 64;
const MAPPING: u16 = 128;
const EXEC: u16 = 256;
const MESSAGE: u16 = 512;
const HOW: u16 = 1024;
const SUBMIT: u16 = 2048;
const REAP: u16 = 4096;
const STACK: u16 = 8192;
const MESSAGES: u16 = 16384;
const BY_COMMAND: u16 = 32768;

/// The calls for which the stack is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Stacks {
    #[default]
    Off,
    /// All calls that are about files.
    All,
    /// Calls of any kind that take longer than this.
    Slower(Duration),
    /// One in this many calls, on each CPU.
    Every(u32),
}

/// `struct shape`: the meaning of each argument.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CallShape {
    flags: u16,
    recorded: u8,
    fd: u8,
    count: u8,
    offset: u8,
    second_fd: u8,
    second_offset: u8,
    directory: u8,
    path: u8,
    second_directory: u8,
    second_path: u8,
}

impl CallShape {
    const PLAIN: CallShape = CallShape {
        flags: 0,
        recorded: 1,
        fd: NONE,
        count: NONE,
        offset: NONE,
        second_fd: NONE,
        second_offset: NONE,
        directory: NONE,
        path: NONE,
        second_directory: NONE,
        second_path: NONE,
    };

    fn of(name: &str, class: Class, shape: Shape) -> Self {
        let plain = CallShape::PLAIN;
        let at = |index: usize| index as u8;
        let maybe = |index: Option<usize>| index.map_or(NONE, at);
        let on_fd = CallShape { fd: 0, ..plain };
        match shape {
            Shape::Fd | Shape::Directory | Shape::ChangeDirFd => on_fd,
            Shape::ReceiveMessage => CallShape { flags: MESSAGE, count: 1, ..on_fd },
            Shape::Messages => CallShape { flags: MESSAGES, count: 1, ..on_fd },
            Shape::Transfer(..) if name == "sendmsg" => CallShape { flags: MESSAGE, count: 1, ..on_fd },
            Shape::Fcntl | Shape::Ioctl | Shape::Truncate => CallShape { count: 1, ..on_fd },
            Shape::Seek => CallShape { flags: POSITION, count: 2, ..on_fd },
            Shape::Close => CallShape { flags: FILE_BEFORE, ..on_fd },
            Shape::Transfer(requested, from) => CallShape::transfer(requested, from),
            Shape::Between { from, from_offset, to, to_offset, size } => CallShape {
                flags: POSITION | OFFSET_POINTER,
                fd: at(from),
                offset: maybe(from_offset),
                second_fd: at(to),
                second_offset: maybe(to_offset),
                count: at(size),
                ..plain
            },
            Shape::Path(path) => CallShape { path: at(path), ..plain },
            Shape::PathAt(directory, path) => CallShape { directory: at(directory), path: at(path), ..plain },
            Shape::Remove(directory, path) => CallShape { directory: maybe(directory), path: at(path), ..plain },
            Shape::Open(directory, path, flags) => {
                // openat2 has its flags in a structure.
                let how = if name == "openat2" { HOW } else { 0 };
                CallShape { flags: NEW_FD | how, directory: maybe(directory), path: at(path), count: at(flags), ..plain }
            }
            Shape::OpenQueue => CallShape { flags: NEW_FD, path: 0, count: 1, ..plain },
            Shape::RemoveQueue => CallShape { path: 0, ..plain },
            Shape::Configure => CallShape { flags: BY_COMMAND, directory: 4, path: 3, ..on_fd },
            Shape::AddRule => CallShape { flags: BY_COMMAND, ..on_fd },
            Shape::Create => CallShape { flags: NEW_FD, path: 0, ..plain },
            Shape::Rename(old_directory, old, new_directory, new) => CallShape {
                flags: RENAMES,
                directory: maybe(old_directory),
                path: at(old),
                second_directory: maybe(new_directory),
                second_path: at(new),
                ..plain
            },
            Shape::Dup | Shape::DupTo => CallShape { flags: NEW_FD, ..on_fd },
            Shape::NewFd(_) | Shape::MemfdCreate | Shape::Ring => CallShape { flags: NEW_FD, ..plain },
            Shape::NewPair(_, argument) => CallShape { flags: PAIR, second_fd: at(argument), ..plain },
            Shape::Map => CallShape { flags: MAPPING, fd: 4, ..plain },
            Shape::ChangeDir => CallShape { path: 0, ..plain },
            Shape::Submit => CallShape { flags: SUBMIT, ..plain },
            Shape::Reap => CallShape { flags: REAP, ..plain },
            Shape::Exec if name == "execveat" => CallShape { flags: EXEC, directory: 0, path: 1, ..plain },
            Shape::Exec => CallShape { flags: EXEC, path: 0, ..plain },
            Shape::Plain | Shape::CloseRange | Shape::Fork | Shape::Unshare => {
                debug_assert!(class != Class::Open || name == "pipe" || shape == Shape::Plain);
                plain
            }
        }
    }

    fn transfer(requested: Requested, from: At) -> Self {
        let (count, vector) = match requested {
            Requested::Argument(index) => (index as u8, 0),
            Requested::Vector(index) => (index as u8, VECTOR),
        };
        let (offset, position) = match from {
            At::Position => (NONE, POSITION),
            At::Argument(index) => (index as u8, 0),
            At::ArgumentOrPosition(index) => (index as u8, POSITION),
            At::Nowhere => (NONE, 0),
        };
        CallShape { flags: vector | position, fd: 0, count, offset, ..CallShape::PLAIN }
    }
}

impl Stacks {
    /// The fields `stacks_slower_ns`, `stacks_every` and `stacks`.
    fn bytes(self) -> [u8; 16] {
        let (slower_ns, every, kind) = match self {
            Stacks::Off => (0, 0, 0u32),
            Stacks::All => (0, 0, 1),
            Stacks::Slower(time) => (u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), 0, 2),
            Stacks::Every(number) => (0, number, 3),
        };
        let mut out = [0; 16];
        out[..8].copy_from_slice(&slower_ns.to_le_bytes());
        out[8..12].copy_from_slice(&every.to_le_bytes());
        out[12..].copy_from_slice(&kind.to_le_bytes());
        out
    }
}

/// Whether calls of this class are about files.
fn is_about_files(class: Class) -> bool {
    !matches!(class, Class::Wait | Class::Process | Class::Memory | Class::Signal | Class::Time | Class::Other)
}

/// Inode number of the first PID namespace: `PROC_PID_INIT_INO` of the kernel.
const FIRST_PID_NAMESPACE: u64 = 0xefff_fffc;

/// The inode number of the PID namespace of this process; 0 for the first one of the system.
///
/// # Errors
/// /proc is not mounted.
pub fn own_pid_namespace() -> io::Result<u64> {
    let number = fs::metadata("/proc/self/ns/pid")?.ino();
    Ok(if number == FIRST_PID_NAMESPACE { 0 } else { number })
}

/// The fields of `struct config`.
pub(crate) struct Config {
    pub(crate) target: Target,
    pub(crate) secret: u64,
    /// The recorder's PID namespace, by its inode number; 0: the first one of the system.
    pub(crate) pid_namespace: u64,
    pub(crate) recorder: u32,
    pub(crate) ring_bytes: u32,
    /// When a ring contains more than this, events wait [B]; 0: never.
    pub(crate) wait_above: u32,
    pub(crate) stacks: Stacks,
    /// Whether events report which code is mapped where, for stacks of calls or of samples.
    pub(crate) layouts: bool,
}

impl Config {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let (kind, cgroup) = match &self.target {
            Target::All => (0u32, 0),
            Target::ControlGroup(id) => (1, *id),
            Target::Processes(_) => (2, 0),
        };
        let mut out = Vec::new();
        out.extend(cgroup.to_le_bytes());
        out.extend(self.secret.to_le_bytes());
        out.extend(self.pid_namespace.to_le_bytes());
        out.extend(kind.to_le_bytes());
        out.extend(self.recorder.to_le_bytes());
        out.extend((self.ring_bytes - 1).to_le_bytes());
        out.extend(self.wait_above.to_le_bytes());
        out.extend(self.stacks.bytes());
        out.extend(u64::from(self.layouts).to_le_bytes());
        for shape in shapes(self.stacks) {
            let CallShape { flags, recorded, fd, count, offset, second_fd, second_offset, .. } = shape;
            out.extend(flags.to_le_bytes());
            out.extend([recorded, fd, count, offset, second_fd, second_offset]);
            out.extend([shape.directory, shape.path, shape.second_directory, shape.second_path]);
        }
        out.extend(compat::table(CALLS).into_iter().flat_map(u16::to_le_bytes));
        out
    }
}

/// Shapes by number. Numbers without a name are recorded as plain calls. If only slow calls have
/// stacks, calls of all kinds may have one.
fn shapes(stacks: Stacks) -> Vec<CallShape> {
    let mut calls = Calls::new();
    let mut shapes = vec![CallShape::PLAIN; CALLS];
    for (number, name) in numbers::names().into_iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        let (_, (class, shape)) = calls.look_up(syscalls::number(name.as_bytes()), name.as_bytes());
        shapes[number] = CallShape::of(name, *class, *shape);
        let has_stack = is_about_files(*class) || matches!(stacks, Stacks::Slower(_));
        shapes[number].flags |= if has_stack { STACK } else { 0 };
    }
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stand_where_the_manual_has_them() {
        let shapes = shapes(Stacks::Off);
        let of = |number: libc::c_long| shapes[usize::try_from(number).expect("positive")];
        assert_eq!(of(libc::SYS_pread64), CallShape { flags: STACK, fd: 0, count: 2, offset: 3, ..CallShape::PLAIN });
        assert_eq!(
            of(libc::SYS_openat),
            CallShape { flags: NEW_FD | STACK, directory: 0, path: 1, count: 2, ..CallShape::PLAIN }
        );
        assert_eq!(of(libc::SYS_unlinkat), CallShape { flags: STACK, directory: 0, path: 1, ..CallShape::PLAIN });
        assert_eq!(of(libc::SYS_getpid), CallShape::PLAIN);
        let renamed = of(libc::SYS_renameat2);
        assert_eq!((renamed.directory, renamed.path, renamed.second_directory, renamed.second_path), (0, 1, 2, 3));
    }

    #[test]
    fn the_layout_is_that_of_the_header() {
        let config = Config {
            target: Target::All,
            secret: 1,
            pid_namespace: 0,
            recorder: 2,
            ring_bytes: 65_536,
            wait_above: 0,
            stacks: Stacks::Off,
            layouts: false,
        };
        assert_eq!(config.bytes().len(), 64 + CALLS * 14);
    }
}
