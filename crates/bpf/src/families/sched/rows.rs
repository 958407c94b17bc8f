//! Rows of `run_states`: times on no CPU.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use sysdock_calls::{
    Cause, ObjectId, Objects,
    syscalls::{CLASS_WORDS, Class},
};
use sysdock_table::{
    Batch, ROWS_PER_GROUP, Recording, TableError,
    rows::{RunStates, RunStatesColumns},
};

use crate::{conversion::waits::WaitedFor, families::calls::call_kinds::CallKinds};

use super::cause;

/// State of a thread on no CPU: the values of `run_states.state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Sleeping,
    Uninterruptible,
    Stopped,
    Traced,
    Preempted,
    New,
    /// It was on no CPU when recording began.
    Unknown,
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            State::Sleeping => "sleeping",
            State::Uninterruptible => "uninterruptible",
            State::Stopped => "stopped",
            State::Traced => "traced",
            State::Preempted => "preempted",
            State::New => "new",
            State::Unknown => "unknown",
        }
    }

    /// Whether it could have run all the time.
    pub(super) fn is_runnable(self) -> bool {
        matches!(self, State::Preempted | State::New)
    }

    /// Whether another thread must wake it.
    pub(super) fn is_wait(self) -> bool {
        matches!(self, State::Sleeping | State::Uninterruptible | State::Stopped | State::Traced)
    }
}

/// Who woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waker {
    Unknown,
    Interrupt,
    /// A recorded thread, by its task.
    Thread(u32),
    /// Another thread, by the number of its name.
    Other(u32),
}

/// A time on no CPU. All of them may stay in memory until the end, so the structure is small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Absence {
    pub(super) task: u32,
    pub(super) from_ns: i64,
    /// When the thread was woken; `from_ns` if it waits for nothing.
    pub(super) woken_ns: i64,
    pub(super) until_ns: i64,
    pub(super) state: State,
    pub(super) waker: Waker,
    /// Number of the system call; below 0: one of `enum no_call`.
    pub(super) call: i16,
    /// The CPU on which it ran next; below 0: it did not run again.
    pub(super) cpu: i16,
    /// The object of the call, a row in `paths`; below 0: none, or unknown.
    pub(super) object: i32,
    /// Stack of the call; below 0: unknown.
    pub(super) stack: i32,
    /// The lock of the kernel that it waits for, a row in `locks`; below 0: none, or unknown.
    pub(super) lock: i32,
    /// The task that held the lock of the program when the wait for it began; below 0: unknown.
    pub(super) holder: i32,
    /// What it waits for; `None`: only for a CPU, or not determined yet.
    pub(super) cause: Option<Cause>,
}

const _: () = assert!(size_of::<Absence>() == 64, "pages state it");

/// Names by number.
pub(super) struct Names {
    meanings: CallKinds,
    wakers: Vec<String>,
    numbers: FxHashMap<[u8; 16], u32>,
}

impl Default for Names {
    fn default() -> Self {
        Names { meanings: CallKinds::new(), wakers: Vec::new(), numbers: FxHashMap::default() }
    }
}

impl Names {
    /// The number of a program's name.
    pub(super) fn waker(&mut self, name: [u8; 16]) -> u32 {
        *self.numbers.entry(name).or_insert_with(|| {
            self.wakers.push(sysdock_table::readable(crate::events::until_nul(&name)).into_owned());
            (self.wakers.len() - 1) as u32
        })
    }

    pub(super) fn waker_name(&self, waker: Waker) -> Option<Cow<'_, str>> {
        match waker {
            Waker::Interrupt => Some("interrupt".into()),
            Waker::Other(number) => Some(self.wakers[number as usize].as_str().into()),
            _ => None,
        }
    }

    /// The absence with its cause, which follows from the object of its call, or from what the
    /// thread waited for.
    pub(super) fn explained(&mut self, absence: Absence, wait: Option<WaitedFor>, objects: &Objects) -> Absence {
        let may_wait = matches!(absence.state, State::Sleeping | State::Uninterruptible);
        match wait.filter(|_| may_wait) {
            Some(WaitedFor::Lock(lock)) => return Absence { cause: Some(Cause::KernelLock), lock, ..absence },
            Some(WaitedFor::Page { object, from_disk }) if absence.call < 0 => {
                let cause = if from_disk { Cause::Disk } else { Cause::PageFault };
                return Absence { cause: Some(cause), object, ..absence };
            }
            _ => {}
        }
        let Some((number, class)) = self.call(absence.call) else {
            return Absence { cause: cause::without_call(absence.state, absence.call), ..absence };
        };
        let kind = ObjectId::try_from(absence.object).ok().map(|object| objects.kind(object));
        let cause = match cause::in_call(absence.state, self.name(number), class, kind) {
            // A disk ends a wait by an interrupt, or through a thread of the kernel. Another program
            // ends one for something that it held: the lock of an inode, for example.
            Some(Cause::Disk) if matches!(absence.waker, Waker::Thread(_)) => Some(Cause::Kernel),
            cause => cause,
        };
        Absence { cause, ..absence }
    }

    /// Name and class of a call.
    pub(super) fn call(&mut self, call: i16) -> Option<(u16, Class)> {
        let meaning = self.meanings.of(u16::try_from(call).ok()?);
        Some((meaning.call, meaning.class))
    }

    fn name(&self, call: u16) -> &str {
        &self.meanings.calls.names()[usize::from(call)]
    }

    pub(super) fn call_name(&self, (number, class): (u16, Class)) -> (Cow<'_, str>, Cow<'static, str>) {
        (self.name(number).into(), CLASS_WORDS[class as usize].into())
    }
}

/// Rows of `run_states` that are not written yet.
#[derive(Default)]
pub(super) struct Rows(Batch<RunStatesColumns>);

impl Rows {
    pub(super) fn push(&mut self, absence: &Absence, words: &mut Names, recording: &mut Recording) -> Result<(), TableError> {
        let dur_ns = absence.until_ns.saturating_sub(absence.from_ns).max(0);
        let call = words.call(absence.call);
        let (call, class) = call.map(|call| words.call_name(call)).unzip();
        self.0.push(&RunStates {
            ts_ns: absence.from_ns,
            dur_ns,
            wait_ns: absence.woken_ns.saturating_sub(absence.from_ns).clamp(0, dur_ns),
            task_id: absence.task.cast_signed(),
            state: absence.state.name().into(),
            cause: absence.cause.map(|cause| cause.name().into()),
            waker_task_id: match absence.waker {
                Waker::Thread(task) => Some(task.cast_signed()),
                _ => None,
            },
            waker: words.waker_name(absence.waker),
            cpu: Some(i32::from(absence.cpu)).filter(|cpu| *cpu >= 0),
            call,
            class,
            path_id: Some(absence.object).filter(|object| *object >= 0),
            stack_id: Some(absence.stack).filter(|stack| *stack >= 0),
            lock_id: Some(absence.lock).filter(|lock| *lock >= 0),
            holder_task_id: Some(absence.holder).filter(|holder| *holder >= 0 && absence.cause == Some(Cause::Lock)),
        });
        if self.0.len() >= ROWS_PER_GROUP { self.flush(recording) } else { Ok(()) }
    }

    pub(super) fn flush(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        recording.write_batch(&mut self.0)
    }
}
