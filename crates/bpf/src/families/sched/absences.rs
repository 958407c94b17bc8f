//! Turns switches and wake-ups into times on no CPU, thread by thread.
//!
//! States of a thread: *running* -> *away* (it left its CPU) -> *woken* (perhaps) -> *running*.
//! After the event that ends its task it still releases its memory, and may wait while doing so; it
//! is gone with its last switch.

use std::mem;

use rustc_hash::FxHashMap;
use sysdock_calls::{CallRow, Issue};
use sysdock_table::{TableError, facts::issues as facts};

use crate::{
    conversion::Conversion,
    events::{
        STATE_DEAD, STATE_NOLOAD, STATE_SLEEPING, STATE_STOPPED, STATE_TRACED, STATE_UNINTERRUPTIBLE, SWITCH_PREEMPTED,
        SWITCH_SHARED, SwitchEvent, WAKE_INTERRUPT, WAKE_NEW, WAKE_OTHER, WakeEvent,
    },
};

use super::{
    critical_path::CriticalPath,
    rows::{Absence, Names, Rows, State, Waker},
};

/// Limit for absences of one thread that wait for the end of their call; further ones get no
/// object.
const MOST_WAITING: usize = 4096;
/// Largest time by which a thread may leave its CPU after its wake-up by another thread was
/// reported, as both run at the same time [ns].
const EARLY_NS: i64 = 1_000_000;

/// A thread that was on a CPU, or is new.
struct Thread {
    task: u32,
    /// The kernel's count of its switches when it last left a CPU; `None`: unknown yet.
    switches: Option<u32>,
    /// The current absence. `until_ns` is not known yet, nor `woken_ns` until it is woken:
    /// [`i64::MAX`].
    away: Option<Absence>,
    /// The last wake-up while it was on a CPU: time and waker.
    woken: (i64, Waker),
    /// Absences since its last call returned.
    in_call: Vec<Absence>,
}

impl Thread {
    fn new(task: u32) -> Self {
        Thread { task, switches: None, away: None, woken: (i64::MIN, Waker::Unknown), in_call: Vec::new() }
    }

    /// End the current absence, if there is one, and return it.
    fn back(&mut self) -> Option<Absence> {
        let mut absence = self.away.take()?;
        let (early_ns, waker) = self.woken;
        // The waker was already waking the thread while it left its CPU.
        if absence.woken_ns == i64::MAX && absence.from_ns.saturating_sub(early_ns) < EARLY_NS {
            (absence.woken_ns, absence.waker) = (absence.from_ns, waker);
        }
        Some(absence)
    }
}

/// Numbers of switches without an event, for example because the kernel ran no program: see
/// docs/explain/kernel-recorder.md.
#[derive(Default)]
struct Missed {
    /// A thread left its CPU, by the kernel's own count.
    left: u64,
    /// A thread was woken.
    woken: u64,
    /// A thread came back.
    came_back: u64,
}

/// The current absences of threads, and those that have ended.
#[derive(Default)]
pub(super) struct Absences {
    /// By thread id.
    threads: FxHashMap<u32, Thread>,
    missed: Missed,
    kept: Kept,
}

/// Absences that have ended.
#[derive(Default)]
struct Kept {
    words: Names,
    rows: Rows,
    path: CriticalPath,
}

impl Absences {
    /// A thread leaves its CPU.
    pub(super) fn leaves(
        &mut self,
        event: &SwitchEvent,
        flags: u32,
        at_ns: i64,
        conversion: &mut Conversion<'_>,
    ) -> Result<(), TableError> {
        let tid = event.from_tid;
        if tid == 0 {
            return Ok(());
        }
        self.count(tid, event.switches);
        self.back_from(tid, at_ns, conversion)?;
        if u32::from(event.state) & STATE_DEAD != 0 {
            conversion.threads.is_gone(tid, at_ns);
            let Some(gone) = self.threads.remove(&tid) else { return Ok(()) };
            gone.in_call.into_iter().try_for_each(|absence| self.kept.keep(absence, conversion))?;
            conversion.waits.forget(gone.task);
            return Ok(());
        }
        let Some(task) = task_of(tid, conversion) else { return Ok(()) };
        let thread = self.threads.entry(tid).or_insert_with(|| Thread::new(task));
        let state = if flags & SWITCH_PREEMPTED != 0 { State::Preempted } else { state(event.state.into()) };
        (thread.task, thread.switches) = (task, Some(event.switches));
        let holder = holder(event, flags, task, conversion);
        thread.away = Some(Absence { call: event.call as i16, holder, ..begun(task, at_ns, state) });
        Ok(())
    }

    /// Compare with the kernel's count. `switches`: how many times the thread has left a CPU.
    fn count(&mut self, tid: u32, switches: u32) {
        let before = self.threads.get(&tid).and_then(|thread| thread.switches);
        // Only increases count: after lost events the number may be that of another thread.
        let more = before.map_or(0, |before| switches.wrapping_sub(before).cast_signed());
        self.missed.left += u64::from((more - 1).max(0).cast_unsigned());
    }

    /// A thread is woken.
    pub(super) fn woken(&mut self, event: &WakeEvent, flags: u32, at_ns: i64, conversion: &mut Conversion<'_>) {
        let waker = if flags & WAKE_INTERRUPT != 0 {
            Waker::Interrupt
        } else if flags & WAKE_OTHER != 0 {
            Waker::Other(self.kept.words.waker(event.waker))
        } else {
            task_of(event.waker_tid, conversion).map_or(Waker::Unknown, Waker::Thread)
        };
        if flags & WAKE_NEW != 0 {
            let thread = conversion.thread(event.tid, at_ns);
            let task = conversion.threads.get_mut(thread).task as u32;
            let away = Some(Absence { waker, ..begun(task, at_ns, State::New) });
            self.threads.insert(event.tid, Thread { switches: Some(0), away, ..Thread::new(task) });
            return;
        }
        // A thread that is about to sleep and is woken before it does continues to run.
        let Some(thread) = self.threads.get_mut(&event.tid) else { return };
        match &mut thread.away {
            Some(absence) if absence.woken_ns == i64::MAX => (absence.woken_ns, absence.waker) = (at_ns, waker),
            Some(_) => {}
            None => thread.woken = (at_ns, waker),
        }
    }

    /// A thread gets a CPU.
    pub(super) fn returns(&mut self, event: &SwitchEvent, at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        let tid = event.to_tid;
        if tid == 0 {
            return Ok(());
        }
        let absence = match self.threads.get_mut(&tid) {
            // `None`: there is no event of its leaving.
            Some(thread) => thread.back(),
            None => since_the_start(tid, at_ns, conversion),
        };
        let Some(absence) = absence else { return Ok(()) };
        self.threads.entry(tid).or_insert_with(|| Thread::new(absence.task));
        self.over(tid, ended(absence, at_ns, event.cpu as i16), conversion)
    }

    /// The thread must be back by now, although no event reports it. It did not come back before it
    /// was woken; one that could have run all the time is assumed to have come back at once.
    fn back_from(&mut self, tid: u32, at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        let Some(missed) = self.threads.get_mut(&tid).and_then(Thread::back) else { return Ok(()) };
        self.missed.came_back += 1;
        let back_ns = if missed.state.is_runnable() { missed.from_ns } else { missed.woken_ns.min(at_ns) };
        self.over(tid, ended(missed, back_ns, -1), conversion)
    }

    /// An absence ended.
    fn over(&mut self, tid: u32, absence: Absence, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        self.missed.woken += u64::from(absence.state.is_wait() && absence.waker == Waker::Unknown);
        // What the thread was doing, in a call or in a page fault, is known a moment later.
        conversion.waits.away(absence.task, absence.from_ns, absence.until_ns);
        let Some(thread) = self.threads.get_mut(&tid) else { return Ok(()) };
        thread.in_call.push(absence);
        if thread.in_call.len() < MOST_WAITING {
            return Ok(());
        }
        thread.in_call.drain(..).try_for_each(|absence| self.kept.keep(absence, conversion))
    }

    /// A call of a thread returned: the thread was in this call when it left its CPU, or on its way
    /// back from the previous one.
    #[inline]
    pub(super) fn call(&mut self, tid: u32, call: &CallRow, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        let Some(thread) = self.threads.get(&tid) else { return Ok(()) };
        if thread.away.is_some_and(|absence| absence.from_ns >= call.ts_ns) {
            self.back_from(tid, call.ts_ns.saturating_add(call.dur_ns.max(0)), conversion)?;
        } else if thread.in_call.is_empty() {
            return Ok(());
        }
        self.waited(tid, call, conversion)
    }

    /// Keep the absences since the previous call, which have ended.
    fn waited(&mut self, tid: u32, call: &CallRow, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        let Some(thread) = self.threads.get_mut(&tid) else { return Ok(()) };
        for absence in thread.in_call.drain(..) {
            let absence = match absence.from_ns < call.ts_ns {
                true => Absence { call: -1, ..absence },
                false => Absence { object: call.object, stack: conversion.call_stack, ..absence },
            };
            self.kept.keep(absence, conversion)?;
        }
        conversion.waits.forget(thread.task);
        Ok(())
    }

    /// Write the remaining rows. Threads that are away stay so until the end.
    pub(super) fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        let until_ns = conversion.last_ns();
        let mut rest = Vec::new();
        for thread in mem::take(&mut self.threads).into_values() {
            rest.extend(thread.in_call);
            rest.extend(thread.away.filter(|absence| absence.from_ns < until_ns).map(|absence| ended(absence, until_ns, -1)));
        }
        rest.sort_by_key(|absence| (absence.until_ns, absence.from_ns, absence.task));
        rest.into_iter().try_for_each(|absence| self.kept.keep(absence, conversion))?;
        self.missed.report(conversion);
        mem::take(&mut self.kept).finish(conversion)
    }
}

impl Missed {
    fn report(&self, conversion: &mut Conversion<'_>) {
        let Missed { left, woken, came_back } = *self;
        let issue = Issue::SwitchMissed;
        conversion.issues.add_many(issue, 0, left, facts::left_unseen(left));
        conversion.issues.add_many(issue, 0, woken, facts::wakeup_unseen(woken));
        conversion.issues.add_many(issue, 0, came_back, facts::return_unseen(came_back));
    }
}

impl Kept {
    fn keep(&mut self, absence: Absence, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        let wait = conversion.waits.of(absence.task, absence.from_ns);
        let absence = self.words.explained(absence, wait, &conversion.objects);
        self.path.add(&absence);
        self.rows.push(&absence, &mut self.words, conversion.recording)
    }

    fn finish(mut self, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        self.rows.flush(conversion.recording)?;
        self.path.write(&mut self.words, conversion)
    }
}

/// The task of a thread, including one that has ended and still releases its memory.
fn task_of(tid: u32, conversion: &Conversion<'_>) -> Option<u32> {
    conversion.threads.task_of(tid).map(|task| task as u32)
}

/// The thread that holds the lock of the program for which a thread waits; below 0: unknown. The
/// value in memory may be any number: it counts only if it is that of another thread, of the same
/// process or, if the lock may be shared, of any recorded one.
fn holder(event: &SwitchEvent, flags: u32, task: u32, conversion: &Conversion<'_>) -> i32 {
    let known = Some(event.holder_tid).filter(|tid| *tid != 0 && *tid != event.from_tid);
    let holder = known.and_then(|tid| task_of(tid, conversion));
    let threads = &conversion.threads;
    let may_hold = |holder: &u32| flags & SWITCH_SHARED != 0 || threads.process(*holder) == threads.process(task);
    holder.filter(may_hold).map_or(-1, u32::cast_signed)
}

fn begun(task: u32, from_ns: i64, state: State) -> Absence {
    let (woken_ns, until_ns) = (i64::MAX, i64::MAX);
    Absence {
        task,
        from_ns,
        woken_ns,
        until_ns,
        state,
        waker: Waker::Unknown,
        call: -1,
        cpu: -1,
        object: -1,
        stack: -1,
        lock: -1,
        holder: -1,
        cause: None,
    }
}

fn ended(absence: Absence, until_ns: i64, cpu: i16) -> Absence {
    let woken_ns = if absence.state.is_runnable() { absence.from_ns } else { absence.woken_ns.min(until_ns) };
    Absence { woken_ns, until_ns, cpu, ..absence }
}

/// The absence of a thread that had left its CPU before recording began. That of the command begins
/// now, because the recorder held it back.
fn since_the_start(tid: u32, at_ns: i64, conversion: &mut Conversion<'_>) -> Option<Absence> {
    let task = conversion.task(tid, at_ns);
    let is_command = i64::from(tid) == conversion.command_pid();
    let start_ns = &mut conversion.threads.tasks[task].start_ns;
    if is_command {
        *start_ns = at_ns;
        return None;
    }
    Some(begun(task as u32, (*start_ns).min(at_ns), State::Unknown))
}

/// A thread in a freezer, an idle thread, and states of newer kernels count as sleeping.
fn state(bits: u32) -> State {
    match bits {
        0 => State::Preempted,
        bits if bits & STATE_UNINTERRUPTIBLE != 0 && bits & STATE_NOLOAD == 0 => State::Uninterruptible,
        bits if bits & STATE_SLEEPING != 0 => State::Sleeping,
        bits if bits & STATE_STOPPED != 0 => State::Stopped,
        bits if bits & STATE_TRACED != 0 => State::Traced,
        _ => State::Sleeping,
    }
}
