//! Rows of `interrupts` from events.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};
use sysdock_table::{
    Batch, ROWS_PER_GROUP, Recording, TableError,
    rows::{self, InterruptsColumns},
};

use crate::{
    conversion::Conversion,
    events::{
        EVENT_TIMER, INTERRUPT_HARD, INTERRUPT_SOFT, InterruptEvent, Raw, TimerEvent, VECTOR_CALL, VECTOR_CALL_SINGLE,
        VECTOR_RESCHEDULE, VECTOR_TIMER, VECTOR_WORK, until_nul,
    },
};

/// Names as in /proc/softirqs.
const SOFTIRQS: [&str; 10] = ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// Limit for functions that timers call: more than a kernel has; a forged spool may contain any
/// number.
const MOST_FUNCTIONS: usize = 65_536;

/// The handler that ran.
#[derive(Clone, Copy, Debug)]
enum Handler<'a> {
    /// Name of the handler, and number of the interrupt line.
    Hard(&'a [u8], u32),
    Soft(u32),
    Vector(u32),
    /// Address of the timer's function, and its slack [ns].
    Timer(u64, u64),
}

/// A run of a handler as it was recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<'a> {
    handler: Handler<'a>,
    /// Times of `CLOCK_MONOTONIC` [ns].
    begin_ns: u64,
    end_ns: u64,
    inner_ns: u64,
    /// Delay of a timer [ns]; below 0: unknown.
    delay_ns: i64,
    tid: u32,
    woken_tid: u32,
    cpu: u32,
}

impl<'a> Run<'a> {
    /// `None`: the event is broken.
    pub(super) fn of(event: &Raw<'a>) -> Option<Self> {
        if event.kind == EVENT_TIMER {
            let (timer, _) = event.read::<TimerEvent>()?;
            let TimerEvent { at_ns: end_ns, begin_ns, inner_ns, delay_ns, tid, woken_tid, cpu, .. } = timer;
            let handler = Handler::Timer(timer.function, timer.slack_ns);
            // The clock may have been set meanwhile.
            return Some(Run { handler, begin_ns, end_ns, inner_ns, delay_ns: delay_ns.max(0), tid, woken_tid, cpu });
        }
        let (interrupt, name) = event.read::<InterruptEvent>()?;
        let InterruptEvent { at_ns: end_ns, begin_ns, inner_ns, delay_ns, tid, woken_tid, number, cpu } = interrupt;
        let handler = match event.flags {
            INTERRUPT_HARD => Handler::Hard(until_nul(name), number),
            INTERRUPT_SOFT => Handler::Soft(number),
            _ => Handler::Vector(number),
        };
        Some(Run { handler, begin_ns, end_ns, inner_ns, delay_ns, tid, woken_tid, cpu })
    }
}

impl<'a> Handler<'a> {
    fn kind(self) -> &'static str {
        match self {
            Handler::Hard(..) => "hard",
            Handler::Soft(_) => "soft",
            Handler::Vector(_) => "vector",
            Handler::Timer(..) => "timer",
        }
    }

    fn name(self, functions: &'a Functions) -> Option<Cow<'a, str>> {
        match self {
            Handler::Hard(name, _) => Some(sysdock_table::readable(name)),
            Handler::Soft(number) => Some(softirq(number)),
            Handler::Vector(number) => Some(vector(number)),
            Handler::Timer(function, _) => functions.names.get(&function).map(|name| name.as_str().into()),
        }
    }
}

fn softirq(number: u32) -> Cow<'static, str> {
    SOFTIRQS.get(number as usize).map_or_else(|| number.to_string().into(), |name| (*name).into())
}

fn vector(number: u32) -> Cow<'static, str> {
    match number {
        VECTOR_TIMER => "local timer".into(),
        VECTOR_RESCHEDULE => "reschedule".into(),
        VECTOR_CALL => "call function".into(),
        VECTOR_CALL_SINGLE => "call function single".into(),
        VECTOR_WORK => "irq work".into(),
        other => other.to_string().into(),
    }
}

/// Functions that timers call.
#[derive(Debug, Default)]
pub(super) struct Functions {
    /// Addresses that are not resolved yet.
    unnamed: FxHashSet<u64>,
    /// Names by address.
    names: FxHashMap<u64, String>,
}

impl Functions {
    /// Add a function that a timer calls.
    pub(super) fn add(&mut self, address: u64) {
        if self.unnamed.len() < MOST_FUNCTIONS {
            self.unnamed.insert(address);
        }
    }

    /// Resolve the names of all added functions.
    pub(super) fn name(&mut self, conversion: &Conversion<'_>) {
        if self.unnamed.is_empty() {
            return;
        }
        let addresses: Vec<u64> = self.unnamed.drain().collect();
        let symbols = conversion.names.symbols(&addresses, conversion.start.boot.as_deref());
        let functions = symbols.into_iter().map(|found| found.into_iter().next().and_then(|symbol| symbol.function));
        let named = addresses.into_iter().zip(functions);
        self.names.extend(named.filter_map(|(address, function)| Some((address, function?))));
    }
}

/// Rows of `interrupts` that are not written yet.
#[derive(Default)]
pub(super) struct InterruptRows(Batch<InterruptsColumns>);

impl InterruptRows {
    pub(super) fn push(
        &mut self,
        run: &Run<'_>,
        end_ns: i64,
        functions: &Functions,
        conversion: &mut Conversion<'_>,
    ) -> Result<(), TableError> {
        let dur_ns = run.end_ns.saturating_sub(run.begin_ns).min(i64::MAX as u64).cast_signed();
        let ts_ns = end_ns.saturating_sub(dur_ns);
        conversion.seen(ts_ns, end_ns);
        let task = |tid: u32| conversion.threads.task_of(tid).filter(|_| tid != 0).map(|task| task as i32);
        self.0.push(&rows::Interrupts {
            ts_ns,
            dur_ns,
            self_ns: dur_ns.saturating_sub_unsigned(run.inner_ns).max(0),
            cpu: run.cpu.cast_signed(),
            kind: run.handler.kind().into(),
            name: run.handler.name(functions),
            line: if let Handler::Hard(_, line) = run.handler { Some(line.cast_signed()) } else { None },
            delay_ns: Some(run.delay_ns).filter(|delay_ns| *delay_ns >= 0),
            slack_ns: if let Handler::Timer(_, slack_ns) = run.handler { i64::try_from(slack_ns).ok() } else { None },
            task_id: task(run.tid),
            woken_task_id: task(run.woken_tid),
        });
        if self.0.len() >= ROWS_PER_GROUP { self.flush(conversion.recording) } else { Ok(()) }
    }

    pub(super) fn flush(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        recording.write_batch(&mut self.0)
    }
}
