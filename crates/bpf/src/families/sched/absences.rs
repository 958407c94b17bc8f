//! From switches and wake-ups to times on no CPU, thread by thread.
//!
//! States of a thread: *running* -> *away* (it left its CPU) -> *woken* (perhaps) -> *running*. Behind the event that ends its life it still
//! gives back what it had, and may wait for that; it is gone with the last switch.

use std::mem;

use rustc_hash::FxHashMap;
use sysdock_calls::CallRow;
use sysdock_table::TableError;

use crate::{
    conversion::Conversion,
    events::{
        STATE_DEAD, STATE_SLEEPING, STATE_STOPPED, STATE_TRACED, STATE_UNINTERRUPTIBLE, SWITCH_PREEMPTED, SwitchEvent,
        WAKE_INTERRUPT, WAKE_NEW, WAKE_OTHER, WakeEvent,
    },
};

use super::{
    critical_path::CriticalPath,
    rows::{Absence, Rows, State, Waker, Words},
};

/// Absences of one thread that wait for the end of the call that they belong to; with more, they have no object.
const MOST_WAITING: usize = 4096;

/// Threads that are on no CPU, and what was made of the time before.
#[derive(Default)]
pub(super) struct Absences {
    /// By thread id, those that last; `until_ns` is not known yet, nor `woken_ns` before it is woken: [`i64::MAX`].
    now: FxHashMap<u32, Absence>,
    /// Lives of threads that were seen on a CPU and may be again, by thread id.
    seen: FxHashMap<u32, u32>,
    /// By thread id, absences since its last call returned.
    in_call: FxHashMap<u32, Vec<Absence>>,
    words: Words,
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
        if event.state & STATE_DEAD != 0 {
            conversion.threads.is_gone(tid, at_ns);
            self.now.remove(&tid);
            self.seen.remove(&tid);
            let left = self.in_call.remove(&tid).unwrap_or_default();
            let life = left.first().map(|absence| absence.life);
            left.into_iter().try_for_each(|absence| self.keep(absence, conversion))?;
            life.into_iter().for_each(|life| conversion.waits.forget(life));
            return Ok(());
        }
        let Some(life) = life_of(tid, conversion) else { return Ok(()) };
        self.seen.insert(tid, life);
        self.back_from(tid, at_ns, conversion)?;
        let state = if flags & SWITCH_PREEMPTED != 0 { State::Preempted } else { state(event.state) };
        self.now.insert(tid, Absence { call: event.call as i16, ..begun(life, at_ns, state) });
        Ok(())
    }

    /// A thread is woken.
    pub(super) fn woken(&mut self, event: &WakeEvent, flags: u32, at_ns: i64, conversion: &mut Conversion<'_>) {
        let waker = if flags & WAKE_INTERRUPT != 0 {
            Waker::Interrupt
        } else if flags & WAKE_OTHER != 0 {
            Waker::Other(self.words.waker(event.waker))
        } else {
            life_of(event.waker_tid, conversion).map_or(Waker::Nobody, Waker::Thread)
        };
        if flags & WAKE_NEW != 0 {
            let thread = conversion.thread(event.tid, at_ns);
            let life = conversion.threads.get_mut(thread).life as u32;
            self.now.insert(event.tid, Absence { waker, ..begun(life, at_ns, State::New) });
            return;
        }
        // One that is about to sleep, and is woken before it does, goes on.
        if let Some(absence) = self.now.get_mut(&event.tid).filter(|absence| absence.woken_ns == i64::MAX) {
            (absence.woken_ns, absence.waker) = (at_ns, waker);
        }
    }

    /// A thread gets a CPU.
    pub(super) fn returns(&mut self, event: &SwitchEvent, at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        let tid = event.to_tid;
        if tid == 0 {
            return Ok(());
        }
        let absence = match self.now.remove(&tid) {
            Some(absence) => absence,
            // The event of its leaving was lost.
            None if self.seen.contains_key(&tid) => return Ok(()),
            None => match since_the_start(tid, at_ns, conversion) {
                Some(absence) => absence,
                None => return Ok(()),
            },
        };
        self.seen.insert(tid, absence.life);
        self.over(tid, ended(absence, at_ns, event.cpu as i16), conversion)
    }

    /// It is back by now, if it was away: the kernel ran no program when it came, see docs/explain/kernel-recorder.md. It did not come before
    /// it was woken; who could have run all the time is taken to have come at once.
    fn back_from(&mut self, tid: u32, at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        let Some(missed) = self.now.remove(&tid) else { return Ok(()) };
        let back_ns = if missed.state.is_runnable() { missed.from_ns } else { missed.woken_ns.min(at_ns) };
        self.over(tid, ended(missed, back_ns, -1), conversion)
    }

    /// It ran again.
    fn over(&mut self, tid: u32, absence: Absence, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        // What it was at, in a call or in a page fault, is known a moment later.
        conversion.waits.away(absence.life, absence.from_ns, absence.until_ns);
        let waiting = self.in_call.entry(tid).or_default();
        waiting.push(absence);
        if waiting.len() < MOST_WAITING {
            return Ok(());
        }
        let all = mem::take(waiting);
        all.into_iter().try_for_each(|absence| self.keep(absence, conversion))
    }

    /// A call of a thread has returned: it was in it when it left its CPU, or on its way back from the one before.
    #[inline]
    pub(super) fn call(&mut self, tid: u32, call: &CallRow, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        if self.now.get(&tid).is_some_and(|absence| absence.from_ns >= call.ts_ns) {
            self.back_from(tid, call.ts_ns.saturating_add(call.dur_ns.max(0)), conversion)?;
        }
        let Some(waiting) = self.in_call.get_mut(&tid).filter(|waiting| !waiting.is_empty()) else { return Ok(()) };
        let mut waiting = mem::take(waiting);
        let life = waiting[0].life;
        for absence in waiting.drain(..) {
            let absence = match absence.from_ns < call.ts_ns {
                true => Absence { call: -1, ..absence },
                false => Absence { object: call.object, stack: conversion.call_stack, ..absence },
            };
            self.keep(absence, conversion)?;
        }
        conversion.waits.forget(life);
        // With the room that it has.
        self.in_call.insert(tid, waiting);
        Ok(())
    }

    /// Write what is left: threads that are away are so until the end.
    pub(super) fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        let until_ns = conversion.last_ns();
        let mut rest: Vec<Absence> = mem::take(&mut self.in_call).into_values().flatten().collect();
        let still = mem::take(&mut self.now).into_values().filter(|absence| absence.from_ns < until_ns);
        rest.extend(still.map(|absence| ended(absence, until_ns, -1)));
        rest.sort_by_key(|absence| (absence.until_ns, absence.from_ns, absence.life));
        rest.into_iter().try_for_each(|absence| self.keep(absence, conversion))?;
        self.rows.flush(conversion.recording)?;
        mem::take(&mut self.path).write(&mut self.words, conversion)
    }

    fn keep(&mut self, absence: Absence, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        let wait = conversion.waits.of(absence.life, absence.from_ns);
        let absence = self.words.explained(absence, wait, &conversion.objects);
        self.path.add(&absence);
        self.rows.push(&absence, &mut self.words, conversion.recording)
    }
}

/// Also of one that has ended, and gives back what it had.
fn life_of(tid: u32, conversion: &Conversion<'_>) -> Option<u32> {
    conversion.threads.life_of(tid).map(|life| life as u32)
}

fn begun(life: u32, from_ns: i64, state: State) -> Absence {
    let (woken_ns, until_ns) = (i64::MAX, i64::MAX);
    Absence {
        life,
        from_ns,
        woken_ns,
        until_ns,
        state,
        waker: Waker::Nobody,
        call: -1,
        cpu: -1,
        object: -1,
        stack: -1,
        lock: -1,
        cause: None,
    }
}

fn ended(absence: Absence, until_ns: i64, cpu: i16) -> Absence {
    let woken_ns = if absence.state.is_runnable() { absence.from_ns } else { absence.woken_ns.min(until_ns) };
    Absence { woken_ns, until_ns, cpu, ..absence }
}

/// A thread that had left its CPU before recording began. The command begins only now: until then it was held back.
fn since_the_start(tid: u32, at_ns: i64, conversion: &mut Conversion<'_>) -> Option<Absence> {
    let life = conversion.life(tid, at_ns);
    let is_command = i64::from(tid) == conversion.command_pid();
    let start_ns = &mut conversion.threads.lives[life].start_ns;
    if is_command {
        *start_ns = at_ns;
        return None;
    }
    Some(begun(life as u32, (*start_ns).min(at_ns), State::Unknown))
}

/// A freezer, or a state that a newer kernel has, is a way to sleep.
fn state(bits: u32) -> State {
    match bits {
        0 => State::Preempted,
        bits if bits & STATE_UNINTERRUPTIBLE != 0 => State::Uninterruptible,
        bits if bits & STATE_SLEEPING != 0 => State::Sleeping,
        bits if bits & STATE_STOPPED != 0 => State::Stopped,
        bits if bits & STATE_TRACED != 0 => State::Traced,
        _ => State::Sleeping,
    }
}
