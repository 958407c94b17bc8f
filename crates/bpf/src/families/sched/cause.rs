//! What a thread waits for, from its state and its call.

use sysdock_calls::{Cause, Kind, syscalls::Class};

use super::rows::State;
use crate::events::CALL_NEVER;

/// The cause for a thread that waits in no call; `reason`: one of `enum no_call`.
pub(super) fn without_call(state: State, reason: i16) -> Option<Cause> {
    of(state, |is_uninterruptible| {
        if reason == CALL_NEVER.cast_signed() as i16 {
            return if is_uninterruptible { Cause::Kernel } else { Cause::Idle };
        }
        Cause::PageFault
    })
}

/// The cause for a thread in a call of this name and class, which works on an object of this kind.
pub(super) fn in_call(state: State, name: &str, class: Class, kind: Option<Kind>) -> Option<Cause> {
    of(state, |is_uninterruptible| Cause::of_call(is_uninterruptible, name, class, kind))
}

/// The cause for a thread in a state; `asleep`: the cause if it sleeps. `None`: it waits only for a
/// CPU.
fn of(state: State, asleep: impl FnOnce(bool) -> Cause) -> Option<Cause> {
    match state {
        State::Preempted | State::New => None,
        State::Stopped | State::Traced => Some(Cause::Stopped),
        State::Unknown => Some(Cause::Unknown),
        State::Sleeping | State::Uninterruptible => Some(asleep(state == State::Uninterruptible)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_follow_from_calls() {
        let cause = |state, name, class, kind| in_call(state, name, class, kind).map(Cause::name);
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
        assert_eq!(without_call(waits, -1), Some(Cause::PageFault));
        // Threads of the kernel have no pages that could be missing.
        assert_eq!(without_call(asleep, -2), Some(Cause::Idle));
        assert_eq!(without_call(waits, -2), Some(Cause::Kernel));
        assert_eq!(without_call(State::Preempted, -2), None);
        assert_eq!(without_call(State::Unknown, -2), Some(Cause::Unknown));
    }
}
