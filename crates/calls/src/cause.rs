//! What a thread waits for, as far as its call and the object of the call show.

use crate::{Kind, action, syscalls::Class};

/// What a thread waits for: the values of `run_states.cause` and `critical_path.cause`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Disk,
    FileLock,
    Lock,
    /// Never derived from the call, but only from a recorded wait.
    KernelLock,
    Pipe,
    Socket,
    Child,
    Timer,
    Events,
    Device,
    PageFault,
    Kernel,
    /// A kernel thread that has nothing to do.
    Idle,
    Stopped,
    Unknown,
}

impl Cause {
    /// The name in a table.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Disk => "disk",
            Cause::FileLock => "file lock",
            Cause::Lock => "lock",
            Cause::KernelLock => "kernel lock",
            Cause::Pipe => "pipe",
            Cause::Socket => "socket",
            Cause::Child => "child process",
            Cause::Timer => "timer",
            Cause::Events => "events",
            Cause::Device => "device",
            Cause::PageFault => "page fault",
            Cause::Kernel => "kernel",
            Cause::Idle => "idle",
            Cause::Stopped => "stopped",
            Cause::Unknown => "unknown",
        }
    }

    /// The cause for a thread that sleeps in a call of this name and class, which works on an
    /// object of this kind. `is_uninterruptible`: no signal ends its sleep.
    pub fn of_call(is_uninterruptible: bool, name: &str, class: Class, kind: Option<Kind>) -> Self {
        match (action(name), class, kind) {
            ("sleep", ..) => Cause::Timer,
            // A fork that shares memory with its child waits until the child runs a program.
            ("child_wait" | "fork", ..) => Cause::Child,
            ("complete" | "exec", ..) | (_, Class::Sync, _) => Cause::Disk,
            ("file_lock", Class::Control, _) if !is_uninterruptible => Cause::FileLock,
            (_, Class::Lock, Some(_)) => Cause::FileLock,
            (_, Class::Lock, None) => Cause::Lock,
            (_, _, Some(Kind::Pipe)) => Cause::Pipe,
            (_, _, Some(Kind::Socket)) | (_, Class::Socket, _) => Cause::Socket,
            (_, Class::Wait | Class::Signal | Class::Time, _) | (_, _, Some(Kind::Anonymous)) => Cause::Events,
            (_, Class::Process | Class::Memory | Class::Map | Class::Other, _) => Cause::Kernel,
            (_, _, Some(Kind::Device | Kind::Virtual)) => Cause::Device,
            _ if is_uninterruptible => Cause::Disk,
            _ => Cause::Kernel,
        }
    }
}
