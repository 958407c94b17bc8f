//! Programs under qemu-user: their system calls and signals, mappings, children and threads.
//!
//! qemu reports system calls, but not the delivery of signals. A handler is known from the call
//! that sets it. It was entered by a signal if the code before it did not go there: that code was
//! left early, or did not end in a jump or call to the handler. (If it ended in an indirect jump or
//! call, the target is unknown, and it counts as a call.)

use std::sync::atomic::Ordering;

use rustc_hash::FxHashMap;
use sysdock_itrace_file::ring::{MOST_BYTES, Why, maps_message};
use sysdock_itrace_file::{Event, Note};

use crate::Recorder;
use crate::shared::Shared;

/// Numbers of system calls on x86-64.
mod call {
    pub(super) const MMAP: i64 = 9;
    pub(super) const MPROTECT: i64 = 10;
    pub(super) const SIGACTION: i64 = 13;
    pub(super) const MREMAP: i64 = 25;
    pub(super) const SHMAT: i64 = 30;
    pub(super) const CLONE: i64 = 56;
    pub(super) const FORK: i64 = 57;
    pub(super) const VFORK: i64 = 58;
    pub(super) const EXECVE: i64 = 59;
    pub(super) const KILL: i64 = 62;
    pub(super) const TKILL: i64 = 200;
    pub(super) const TGKILL: i64 = 234;
    pub(super) const EXECVEAT: i64 = 322;
    pub(super) const PKEY_MPROTECT: i64 = 329;
    pub(super) const CLONE3: i64 = 435;
}

const PROT_EXEC: u64 = 4;
const CLONE_VM: u64 = 0x100;
const CLONE_VFORK: u64 = 0x4000;
/// Signals of instructions that fault: SIGILL, SIGBUS, SIGFPE, SIGSEGV.
const FAULTS: [u32; 4] = [4, 7, 8, 11];

/// Where control goes at the end of a block, as far as the code states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// To an address, or to the next instruction.
    To(u64),
    /// To an address that the code does not state.
    Anywhere,
    /// Into the kernel.
    SystemCall,
    /// To the next instruction, or back to a caller.
    Other,
}

impl Way {
    /// Where the last instruction of a block goes; `end`: the address after it.
    pub(crate) fn of(code: &[u8], end: u64) -> Way {
        let is_prefix = |byte: &&u8| matches!(**byte, 0x2e | 0x3e | 0x40..=0x4f | 0x66 | 0xf2 | 0xf3);
        let code = &code[code.iter().take_while(is_prefix).count()..];
        let near =
            |at: &[u8]| at.first().map_or(Way::Other, |&byte| Way::To(end.wrapping_add_signed(i64::from(byte.cast_signed()))));
        let far = |at: &[u8]| {
            let distance = at.first_chunk::<4>().map(|bytes| i64::from(i32::from_le_bytes(*bytes)));
            distance.map_or(Way::Other, |distance| Way::To(end.wrapping_add_signed(distance)))
        };
        match code {
            [0x0f, 0x05, ..] => Way::SystemCall,
            [0xe8 | 0xe9, at @ ..] | [0x0f, 0x80..=0x8f, at @ ..] => far(at),
            [0xeb | 0x70..=0x7f | 0xe0..=0xe3, at @ ..] => near(at),
            [0xff, operand, ..] if matches!(operand >> 3 & 7, 2..=5) => Way::Anywhere,
            _ => Way::Other,
        }
    }

    fn leads_to(self, address: u64, end: u64) -> bool {
        address == end || self == Way::To(address) || self == Way::Anywhere
    }
}

/// A system call in progress.
struct Call {
    number: i64,
    arguments: [u64; 4],
}

pub(crate) struct User {
    pub(crate) shared: Shared,
    has_begun: bool,
    call: Option<Call>,
    /// The signal that the last system call sent.
    sent: Option<u32>,
    /// Addresses of handlers, by signal.
    handlers: FxHashMap<u32, u64>,
    /// For each block: its end, and where control goes there.
    pub(crate) ways: Vec<(u64, Way)>,
}

impl User {
    pub(crate) fn new(shared: Shared) -> User {
        User { shared, has_begun: false, call: None, sent: None, handlers: FxHashMap::default(), ways: Vec::new() }
    }

    /// The signal that was delivered if a handler begins at an address; 0: one of several.
    fn signal_of(&self, address: u64, is_fault: bool) -> Option<u32> {
        let mut found = self.handlers.iter().filter(|(_, handler)| **handler == address).map(|(signal, _)| *signal);
        let first = found.next()?;
        if let Some(sent) = self.sent.filter(|sent| self.handlers.get(sent) == Some(&address)) {
            return Some(sent);
        }
        let rest: Vec<u32> = found.collect();
        if rest.is_empty() {
            return Some(first);
        }
        let mut faults = rest.iter().copied().chain([first]).filter(|signal| FAULTS.contains(signal));
        match (faults.next(), faults.next()) {
            (Some(fault), None) if is_fault => Some(fault),
            _ => Some(0),
        }
    }
}

/// In a child, which shares the memory: its work is not recorded.
pub(crate) extern "C" fn in_child() {
    let Some(recorder) = crate::recorder() else { return };
    recorder.hot.is_recording = false;
    recorder.is_over = true;
}

/// A system call begins.
pub(crate) fn begins(recorder: &mut Recorder, number: i64, arguments: [u64; 4]) {
    let Some(user) = &mut recorder.user else { return };
    user.call = Some(Call { number, arguments });
    user.sent = match number {
        call::KILL | call::TKILL => Some(arguments[1] as u32),
        call::TGKILL => Some(arguments[2] as u32),
        _ => None,
    };
    if matches!(number, call::EXECVE | call::EXECVEAT) {
        user.shared.ring.head().executes.store(1, Ordering::Relaxed);
    }
    recorder.note(Note::Untraced(number as u32));
}

/// A system call has ended.
pub(crate) fn ends(recorder: &mut Recorder, result: i64) {
    let Some(user) = &mut recorder.user else { return };
    let Some(Call { number, arguments }) = user.call.take() else { return };
    let head = user.shared.ring.head();
    let failed = (-4095..0).contains(&result);
    match number {
        call::EXECVE | call::EXECVEAT => head.executes.store(0, Ordering::Relaxed),
        _ if failed => {}
        call::MMAP | call::MPROTECT | call::PKEY_MPROTECT if arguments[2] & PROT_EXEC != 0 => report_maps(recorder),
        call::MREMAP | call::SHMAT => report_maps(recorder),
        call::SIGACTION if arguments[1] != 0 => {
            // Safe: qemu has read it there. The handler is its first word; 0 and 1 are none.
            let handler = unsafe { std::ptr::read_unaligned(arguments[1] as usize as *const u64) };
            let signal = arguments[0] as u32;
            if handler > 1 {
                user.handlers.insert(signal, handler)
            } else {
                user.handlers.remove(&signal)
            };
            recorder.hot.watches = !user.handlers.is_empty();
        }
        call::FORK | call::VFORK => {
            head.children.fetch_add(1, Ordering::Relaxed);
        }
        call::CLONE | call::CLONE3 => {
            // Safe: as above; the flags are the first word.
            let flags = if number == call::CLONE { arguments[0] } else { unsafe { *(arguments[0] as usize as *const u64) } };
            // qemu makes a process of a thread whose parent waits while the memory is shared.
            if flags & CLONE_VM != 0 && flags & CLONE_VFORK == 0 {
                recorder.end_early(Why::Thread);
            } else {
                head.children.fetch_add(1, Ordering::Relaxed);
            }
        }
        _ => {}
    }
}

/// The first block is about to be translated. Its code must be at its stated address, because
/// everything here relies on it.
pub(crate) fn begin(recorder: &mut Recorder, address: u64, code: &[u8]) {
    let Some(user) = &mut recorder.user else { return };
    if std::mem::replace(&mut user.has_begun, true) {
        return;
    }
    let mut there = vec![0u8; code.len()];
    let to = libc::iovec { iov_base: there.as_mut_ptr().cast(), iov_len: there.len() };
    let from = libc::iovec { iov_base: address as usize as *mut libc::c_void, iov_len: code.len() };
    // Safe: copies only what exists.
    unsafe { libc::process_vm_readv(libc::getpid(), &raw const to, 1, &raw const from, 1, 0) };
    if there == code {
        report_maps(recorder);
    } else {
        recorder.end_early(Why::Moved);
    }
}

fn report_maps(recorder: &mut Recorder) {
    // This fails if the program has opened as many files as it may; a later attempt may succeed.
    let Ok(text) = std::fs::read_to_string("/proc/self/maps") else { return };
    let mut lines = text.as_str();
    while !lines.is_empty() && recorder.hot.is_recording {
        let end = lines.get(..MOST_BYTES).map_or(lines.len(), |part| part.rfind('\n').map_or(lines.len(), |at| at + 1));
        let (part, rest) = lines.split_at(end.min(lines.len()));
        recorder.send(&maps_message(part));
        lines = rest;
    }
}

/// A block is about to be executed, and the program has signal handlers. `was_left`: the block
/// before was not executed to its end.
#[cold]
pub(crate) fn entered(recorder: &mut Recorder, next: u32, was_left: bool) {
    let Some(user) = &recorder.user else { return };
    let address = recorder.blocks[next as usize].0;
    let Some((end, way)) = user.ways.get(recorder.hot.block as usize).copied() else { return };
    if !was_left && way.leads_to(address, end) {
        return;
    }
    let Some(signal) = user.signal_of(address, was_left) else { return };
    // A fault of the last instruction of a block: that was begun, but not completed.
    if !was_left && way != Way::SystemCall && FAULTS.contains(&signal) {
        recorder.hot.words.push(Event::Note(Note::Left(recorder.hot.length.saturating_sub(1) as u16)).pack());
    }
    recorder.note(Note::Signal(signal));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_of_instructions() {
        assert_eq!(Way::of(&[0x0f, 0x05], 0x1002), Way::SystemCall);
        assert_eq!(Way::of(&[0xe8, 0, 1, 0, 0], 0x1005), Way::To(0x1105));
        assert_eq!(Way::of(&[0xf2, 0xe9, 0xfb, 0xff, 0xff, 0xff], 0x1006), Way::To(0x1001));
        assert_eq!(Way::of(&[0x75, 0xfc], 0x1002), Way::To(0xffe));
        assert_eq!(Way::of(&[0x0f, 0x84, 2, 0, 0, 0], 0x1006), Way::To(0x1008));
        assert_eq!(Way::of(&[0xff, 0xd0], 0x1002), Way::Anywhere);
        assert_eq!(Way::of(&[0x3e, 0xff, 0x25, 0, 0, 0, 0], 0x1007), Way::Anywhere);
        assert_eq!(Way::of(&[0xc3], 0x1001), Way::Other);
        assert_eq!(Way::of(&[0xff, 0xc0], 0x1002), Way::Other);
        assert_eq!(Way::of(&[0xe8], 0x1001), Way::Other);
    }

    #[test]
    fn code_that_goes_to_a_handler_is_no_signal() {
        assert!(Way::To(0x2000).leads_to(0x2000, 0x1000));
        assert!(Way::Other.leads_to(0x1000, 0x1000));
        assert!(Way::Anywhere.leads_to(0x2000, 0x1000));
        assert!(!Way::SystemCall.leads_to(0x2000, 0x1000));
        assert!(!Way::To(0x3000).leads_to(0x2000, 0x1000));
    }
}
