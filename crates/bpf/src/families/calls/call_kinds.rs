//! Names, classes and shapes of calls by number, looked up once for each number.

use sysdock_calls::syscalls::{self, Calls, Class, Shape};

use super::numbers;

/// Meaning of a call's number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallKind {
    /// Number of the name in the recording.
    pub(crate) call: u16,
    pub(crate) class: Class,
    pub(crate) shape: Shape,
    /// `restart_syscall`: the next part of the interrupted call.
    pub(crate) goes_on: bool,
    /// `rt_sigreturn`: its result is that of the call that the signal interrupted.
    pub(crate) ends_handler: bool,
}

/// Meanings of all numbers that occurred.
#[derive(Debug)]
pub(crate) struct CallKinds {
    /// As long as the greatest number needs that occurred: most are below 500 of 65,536.
    known: Vec<Option<CallKind>>,
    names: Vec<&'static str>,
    pub(crate) calls: Calls,
}

impl CallKinds {
    pub(crate) fn new() -> Self {
        CallKinds { known: Vec::new(), names: numbers::names(), calls: Calls::new() }
    }

    #[inline]
    pub(crate) fn of(&mut self, number: u16) -> CallKind {
        match self.known.get(usize::from(number)) {
            Some(Some(meaning)) => *meaning,
            _ => self.look_up(number),
        }
    }

    #[cold]
    fn look_up(&mut self, number: u16) -> CallKind {
        let name = match self.names.get(usize::from(number)) {
            Some(name) if !name.is_empty() => (*name).into(),
            _ => format!("syscall_{number:#x}"),
        };
        let (call, &(class, shape)) = self.calls.look_up(syscalls::number(name.as_bytes()), name.as_bytes());
        let meaning = CallKind { call, class, shape, goes_on: name == "restart_syscall", ends_handler: name == "rt_sigreturn" };
        let index = usize::from(number);
        if index >= self.known.len() {
            self.known.resize(index + 1, None);
        }
        self.known[index] = Some(meaning);
        meaning
    }
}
