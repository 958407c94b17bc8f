//! What a thread waits for, as far as its call and the object of that tell.

use sysdock_calls::{Kind, syscalls::Class};

use super::rows::State;
use crate::events::CALL_NEVER;

/// The words of `run_states.cause`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Disk,
    FileLock,
    Lock,
    /// Never by the call: the wait itself was recorded.
    KernelLock,
    Pipe,
    Socket,
    Child,
    Timer,
    Events,
    Device,
    PageFault,
    Kernel,
    /// A thread of the kernel that has nothing to do.
    Idle,
    Stopped,
    Unknown,
}

impl Cause {
    pub(super) fn word(self) -> &'static str {
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

    /// Of a thread that waits in no call; `reason`: one of `enum no_call`.
    pub(super) fn without_call(state: State, reason: i16) -> Option<Self> {
        Cause::of(state, |is_uninterruptible| {
            if reason == CALL_NEVER.cast_signed() as i16 {
                return if is_uninterruptible { Cause::Kernel } else { Cause::Idle };
            }
            Cause::PageFault
        })
    }

    /// Of a thread in a call with a name and a class, which works on an object of a kind.
    pub(super) fn in_call(state: State, name: &str, class: Class, kind: Option<Kind>) -> Option<Self> {
        Cause::of(state, |is_uninterruptible| Cause::of_call(is_uninterruptible, name, class, kind))
    }

    /// Of a thread in a state; `asleep`: the cause if it sleeps. `None`: it waits for nothing but a CPU.
    fn of(state: State, asleep: impl FnOnce(bool) -> Self) -> Option<Self> {
        match state {
            State::Preempted | State::New => None,
            State::Stopped | State::Traced => Some(Cause::Stopped),
            State::Unknown => Some(Cause::Unknown),
            State::Sleeping | State::Uninterruptible => Some(asleep(state == State::Uninterruptible)),
        }
    }

    fn of_call(is_uninterruptible: bool, name: &str, class: Class, kind: Option<Kind>) -> Self {
        match (name, class, kind) {
            ("nanosleep" | "clock_nanosleep", ..) => Cause::Timer,
            // A fork waits for its child where they share memory until the child runs a program.
            ("wait4" | "waitid" | "vfork" | "clone" | "clone3", ..) => Cause::Child,
            ("io_getevents" | "io_pgetevents" | "execve" | "execveat", ..) | (_, Class::Sync, _) => Cause::Disk,
            ("fcntl", ..) if !is_uninterruptible => Cause::FileLock,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_follow_from_calls() {
        let cause = |state, name, class, kind| Cause::in_call(state, name, class, kind).map(Cause::word);
        let (asleep, waits) = (State::Sleeping, State::Uninterruptible);
        assert_eq!(cause(waits, "read", Class::Read, Some(Kind::File)), Some("disk"));
        assert_eq!(cause(asleep, "read", Class::Read, Some(Kind::Pipe)), Some("pipe"));
        assert_eq!(cause(asleep, "read", Class::Read, Some(Kind::Device)), Some("device"));
        assert_eq!(cause(waits, "fsync", Class::Sync, Some(Kind::File)), Some("disk"));
        assert_eq!(cause(asleep, "futex", Class::Lock, None), Some("lock"));
        assert_eq!(cause(asleep, "flock", Class::Lock, Some(Kind::File)), Some("file lock"));
        assert_eq!(cause(asleep, "fcntl", Class::Control, Some(Kind::File)), Some("file lock"));
        assert_eq!(cause(asleep, "accept4", Class::Socket, None), Some("socket"));
        assert_eq!(cause(asleep, "epoll_wait", Class::Wait, Some(Kind::Anonymous)), Some("events"));
        assert_eq!(cause(asleep, "clock_nanosleep", Class::Wait, None), Some("timer"));
        assert_eq!(cause(waits, "vfork", Class::Process, None), Some("child process"));
        assert_eq!(cause(waits, "munmap", Class::Memory, None), Some("kernel"));
        assert_eq!(cause(State::Stopped, "read", Class::Read, Some(Kind::File)), Some("stopped"));
        assert_eq!(cause(State::Preempted, "read", Class::Read, Some(Kind::File)), None);
        assert_eq!(Cause::without_call(waits, -1), Some(Cause::PageFault));
        // Threads of the kernel have no pages that could be missing.
        assert_eq!(Cause::without_call(asleep, -2), Some(Cause::Idle));
        assert_eq!(Cause::without_call(waits, -2), Some(Cause::Kernel));
        assert_eq!(Cause::without_call(State::Preempted, -2), None);
        assert_eq!(Cause::without_call(State::Unknown, -2), Some(Cause::Unknown));
    }
}
