//! Conditions at which a flight recorder writes what it holds.

use std::{fs, time::Duration};

use rustc_hash::FxHashMap;
use sysdock_calls::syscalls::Class;
use sysdock_table::{Fact, facts::marks as facts};

use crate::{
    events::{
        CALL_NUMBER, CALL_RING, CALL_UNFINISHED, CallEvent, EVENT_CALL, EVENT_EXIT, EVENT_LOCK_WAIT, EVENT_PROBE, EVENT_SWITCH,
        EVENT_WAKE, ExitEvent, Kinds, LOCK_NESTED, LockWaitEvent, ProbeEvent, Raw, SwitchEvent, WakeEvent,
    },
    families::{Family, PROBES, calls::call_kinds::CallKinds, locks, processes::signals, sched},
};

/// Signals that commonly end processes without a fault. They count only if the user names them.
const USUAL: [&str; 4] = ["SIGTERM", "SIGINT", "SIGHUP", "SIGPIPE"];
/// What is wrong with a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongTrigger {
    /// It has none of the forms of a trigger.
    Form,
    /// Its time is none: why, as the parser of times states it.
    Time(String),
    /// Pressure of something other than cpu, memory and io.
    Resource,
    /// Not a percentage from 1 to 100.
    Percent,
    NoSignal(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A call about files, or the call of this name, takes longer than `than`.
    Call {
        /// Name of the call; `None`: all about files.
        name: Option<String>,
        than: Duration,
    },
    /// A thread waits longer than this for a CPU.
    RunQueue(Duration),
    /// A thread waits longer than this for a lock of the kernel.
    Lock(Duration),
    /// Threads waited for a resource during more than this part of the last second.
    Pressure {
        /// `cpu`, `memory` or `io`.
        resource: &'static str,
        /// Percent of the second.
        percent: u32,
    },
    /// A process is killed by one of these signals; empty: by any, except those that commonly end
    /// processes.
    Signal(Vec<String>),
    /// A probe is reached.
    Probe,
    /// This program with its arguments, which is run repeatedly, exits with status 0. There is no
    /// shell; at least the program is stated.
    Command(Vec<String>),
}

impl Trigger {
    /// Parse what a user wrote; `duration` parses times.
    ///
    /// # Errors
    /// What is wrong.
    pub fn parse(text: &str, duration: fn(&str) -> Result<Duration, String>) -> Result<Trigger, WrongTrigger> {
        let (what, value) = text.split_once(':').map_or((text, None), |(what, value)| (what, Some(value)));
        let (what, detail) = what.split_once('/').map_or((what, None), |(what, detail)| (what, Some(detail)));
        let time = || duration(value.unwrap_or_default()).map_err(WrongTrigger::Time);
        match (what, detail, value) {
            ("call", name, Some(_)) => Ok(Trigger::Call { name: name.map(str::to_string), than: time()? }),
            ("run-queue", None, Some(_)) => Ok(Trigger::RunQueue(time()?)),
            ("lock", None, Some(_)) => Ok(Trigger::Lock(time()?)),
            ("pressure", Some(resource), Some(percent)) => Trigger::pressure(resource, percent),
            ("signal", None, None) => Ok(Trigger::Signal(Vec::new())),
            ("signal", None, Some(names)) => Ok(Trigger::Signal(names.split(',').map(full_name).collect::<Result<_, _>>()?)),
            ("probe", None, None) => Ok(Trigger::Probe),
            ("command", None, Some(command)) => Trigger::command(command),
            _ => Err(WrongTrigger::Form),
        }
    }

    /// Words as a shell would separate them.
    fn command(text: &str) -> Result<Trigger, WrongTrigger> {
        shlex::split(text).filter(|words| !words.is_empty()).map(Trigger::Command).ok_or(WrongTrigger::Form)
    }

    fn pressure(resource: &str, percent: &str) -> Result<Trigger, WrongTrigger> {
        let resource = ["cpu", "memory", "io"].into_iter().find(|known| *known == resource);
        let resource = resource.ok_or(WrongTrigger::Resource)?;
        match percent.strip_suffix('%').unwrap_or(percent).parse() {
            Ok(percent @ 1..=100) => Ok(Trigger::Pressure { resource, percent }),
            _ => Err(WrongTrigger::Percent),
        }
    }

    /// The family that the trigger needs.
    #[must_use]
    pub fn family(&self) -> Option<Family> {
        use crate::families::Converter;
        match self {
            Trigger::RunQueue(_) => Some(sched::Sched::FAMILY),
            Trigger::Lock(_) => Some(locks::Locks::FAMILY),
            Trigger::Probe => Some(PROBES),
            Trigger::Call { .. } | Trigger::Pressure { .. } | Trigger::Signal(_) | Trigger::Command(_) => None,
        }
    }
}

/// The full name of a signal that is given with or without SIG.
fn full_name(name: &str) -> Result<String, WrongTrigger> {
    let name = if name.starts_with("SIG") { name.to_string() } else { format!("SIG{name}") };
    let is_known = (1..=64).any(|number| signals::name(number) == name);
    if is_known { Ok(name) } else { Err(WrongTrigger::NoSignal(name)) }
}

/// The event that fired a trigger.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// What it was, without the thread.
    pub what: Fact,
    /// Id of the thread; 0: none.
    pub tid: u32,
    /// Time, `CLOCK_MONOTONIC` [ns].
    pub at_ns: u64,
}

/// Checks events against the triggers.
pub(crate) struct Lookout {
    meanings: CallKinds,
    /// Limits for calls about files, and for calls by name (in lower case, as the kernel has them)
    /// [ns].
    files_ns: u64,
    named_ns: Vec<(String, u64)>,
    /// The least of these limits.
    least_ns: u64,
    run_queue: Option<RunQueue>,
    lock_ns: u64,
    pressures: Vec<Pressure>,
    signals: Option<Vec<String>>,
    probe: bool,
    /// Kinds of events that need to be checked.
    pub(crate) kinds: Kinds,
}

/// A limit that is never exceeded.
const NEVER: u64 = u64::MAX;

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NEVER)
}

impl Lookout {
    pub(crate) fn new(triggers: &[Trigger]) -> Lookout {
        let mut lookout = Lookout {
            meanings: CallKinds::new(),
            files_ns: NEVER,
            named_ns: Vec::new(),
            least_ns: NEVER,
            run_queue: None,
            lock_ns: NEVER,
            pressures: Vec::new(),
            signals: None,
            probe: false,
            kinds: Kinds::NONE,
        };
        for trigger in triggers {
            let kinds: &[u8] = match trigger {
                Trigger::Call { .. } => &[EVENT_CALL],
                Trigger::RunQueue(_) => &[EVENT_SWITCH, EVENT_WAKE],
                Trigger::Lock(_) => &[EVENT_LOCK_WAIT],
                Trigger::Signal(_) => &[EVENT_EXIT],
                Trigger::Probe => &[EVENT_PROBE],
                Trigger::Pressure { .. } | Trigger::Command(_) => &[],
            };
            lookout.kinds = lookout.kinds.and(Kinds::of(kinds));
            lookout.add(trigger);
        }
        lookout.least_ns = lookout.named_ns.iter().map(|(_, than)| *than).fold(lookout.files_ns, u64::min);
        lookout
    }

    fn add(&mut self, trigger: &Trigger) {
        match trigger {
            Trigger::Call { name: None, than } => self.files_ns = self.files_ns.min(nanoseconds(*than)),
            Trigger::Call { name: Some(name), than } => self.named_ns.push((name.clone(), nanoseconds(*than))),
            Trigger::RunQueue(than) => {
                let than_ns = self.run_queue.as_ref().map_or(NEVER, |queue| queue.than_ns).min(nanoseconds(*than));
                self.run_queue = Some(RunQueue { than_ns, ..RunQueue::default() });
            }
            Trigger::Lock(than) => self.lock_ns = self.lock_ns.min(nanoseconds(*than)),
            Trigger::Pressure { resource, percent } => self.pressures.push(Pressure::new(resource, *percent)),
            Trigger::Signal(names) => self.signals.get_or_insert_default().extend(names.iter().cloned()),
            Trigger::Probe => self.probe = true,
            Trigger::Command(_) => {}
        }
    }

    /// Check an event.
    #[inline]
    pub(crate) fn see(&mut self, event: &Raw<'_>) -> Option<Cause> {
        if !self.kinds.has(event.kind) {
            return None;
        }
        match event.kind {
            EVENT_CALL => self.call(event),
            EVENT_SWITCH => event.read().and_then(|(switch, _)| self.run_queue.as_mut()?.switched(&switch)),
            EVENT_WAKE => event.read().and_then(|(wake, _)| self.run_queue.as_mut()?.woken(&wake)),
            EVENT_LOCK_WAIT => self.lock(event),
            EVENT_EXIT => event.read().and_then(|(exit, _)| self.exit(&exit)),
            EVENT_PROBE => {
                let (probe, _) = event.read::<ProbeEvent>()?;
                Some(Cause { what: facts::probe_reached(), tid: probe.tid, at_ns: probe.at_ns })
            }
            _ => None,
        }
    }

    fn call(&mut self, event: &Raw<'_>) -> Option<Cause> {
        let (call, _) = event.read::<CallEvent>()?;
        let dur_ns = call.duration_ns_and_number >> 16;
        // A call that did not return, because its thread ended, was no wait; nor was an operation
        // of io_uring.
        if dur_ns <= self.least_ns || event.flags & (CALL_UNFINISHED | CALL_RING) != 0 {
            return None;
        }
        let meaning = self.meanings.of((call.duration_ns_and_number as u32 & CALL_NUMBER) as u16);
        let name = &self.meanings.calls.names()[usize::from(meaning.call)];
        let than_ns = self.named_ns.iter().filter(|(named, _)| named == name).map(|(_, than)| *than).min();
        let than_ns = than_ns.unwrap_or(NEVER).min(if is_about_files(meaning.class, &call) { self.files_ns } else { NEVER });
        (dur_ns > than_ns).then(|| Cause {
            what: facts::call_took(name.as_str(), dur_ns),
            tid: call.tid,
            at_ns: call.start_ns.saturating_add(dur_ns),
        })
    }

    fn lock(&self, event: &Raw<'_>) -> Option<Cause> {
        let (wait, _) = event.read::<LockWaitEvent>()?;
        let is_slow = wait.wait_ns > self.lock_ns && event.flags & LOCK_NESTED == 0;
        is_slow.then(|| Cause { what: facts::waited_for_lock(wait.wait_ns), tid: wait.tid, at_ns: wait.at_ns })
    }

    fn exit(&self, exit: &ExitEvent) -> Option<Cause> {
        let names = self.signals.as_ref()?;
        let name = signals::name((exit.status & 0x7f).cast_signed());
        let counts = if names.is_empty() { !USUAL.contains(&name.as_str()) } else { names.contains(&name) };
        // Each thread of a killed process ends by the signal: the first thread reports it.
        let is_first = exit.status & 0x7f != 0 && exit.tid == exit.pid;
        (is_first && counts).then(|| Cause { what: facts::killed(name), tid: exit.tid, at_ns: exit.at_ns })
    }

    /// Check what is read once per second.
    pub(crate) fn second(&mut self, now_ns: u64) -> Option<Cause> {
        self.pressures.iter_mut().find_map(|pressure| pressure.read(now_ns))
    }
}

/// Whether a call waits for a file, and not for another program. Of transfers, only those of files
/// with a position count.
fn is_about_files(class: Class, call: &CallEvent) -> bool {
    match class {
        Class::Read | Class::Write | Class::Copy => call.offset >= 0,
        Class::Wait | Class::Process | Class::Memory | Class::Signal | Class::Time | Class::Other => false,
        Class::Socket | Class::Control | Class::Lock => false,
        _ => true,
    }
}

/// Threads that could run, and wait for a CPU.
#[derive(Default)]
struct RunQueue {
    than_ns: u64,
    /// Start of the wait, by thread [ns].
    since: FxHashMap<u32, u64>,
    /// When a thread last got a CPU: events of another CPU may come later [ns].
    ran: FxHashMap<u32, u64>,
}

/// Limit for remembered threads, more than any machine runs in a second. Above it, remaining
/// entries of ended threads are dropped.
const MOST_THREADS: usize = 1 << 16;

impl RunQueue {
    fn woken(&mut self, wake: &WakeEvent) -> Option<Cause> {
        if let Some(ran) = self.ran.get(&wake.tid).filter(|ran| **ran > wake.at_ns) {
            return self.judge(wake.tid, wake.at_ns, *ran);
        }
        self.wait(wake.tid, wake.at_ns);
        None
    }

    fn switched(&mut self, switch: &SwitchEvent) -> Option<Cause> {
        if switch.from_tid != 0 {
            self.ran.remove(&switch.from_tid);
            if switch.state == 0 {
                self.wait(switch.from_tid, switch.at_ns);
            } else if self.since.get(&switch.from_tid).is_some_and(|since| *since < switch.at_ns) {
                // It was woken while it still ran: it never waited.
                self.since.remove(&switch.from_tid);
            }
        }
        if switch.to_tid == 0 {
            return None;
        }
        if self.ran.len() >= MOST_THREADS {
            self.ran.clear();
        }
        self.ran.insert(switch.to_tid, switch.at_ns);
        let since = self.since.remove(&switch.to_tid)?;
        self.judge(switch.to_tid, since, switch.at_ns)
    }

    fn wait(&mut self, tid: u32, since_ns: u64) {
        if self.since.len() >= MOST_THREADS {
            self.since.clear();
        }
        self.since.insert(tid, since_ns);
    }

    fn judge(&self, tid: u32, from_ns: u64, at_ns: u64) -> Option<Cause> {
        let wait_ns = at_ns.saturating_sub(from_ns);
        (wait_ns > self.than_ns).then(|| Cause { what: facts::waited_for_cpu(wait_ns), tid, at_ns })
    }
}

/// Time that threads waited for a resource.
struct Pressure {
    resource: &'static str,
    percent: u32,
    /// The last reading: its time, and the kernel's sum [ns].
    last: Option<(u64, u64)>,
}

impl Pressure {
    fn new(resource: &'static str, percent: u32) -> Pressure {
        Pressure { resource, percent, last: None }
    }

    fn read(&mut self, now_ns: u64) -> Option<Cause> {
        let text = fs::read_to_string(format!("/proc/pressure/{}", self.resource)).ok()?;
        let total_ns = total_us(&text)?.saturating_mul(1000);
        let (before_ns, total_before_ns) = self.last.replace((now_ns, total_ns))?;
        let share = (total_ns - total_before_ns.min(total_ns)) * 100 / (now_ns - before_ns).max(1);
        (share >= u64::from(self.percent)).then(|| Cause { what: facts::pressure(self.resource, share), tid: 0, at_ns: now_ns })
    }
}

/// The sum in the line `some avg10=… total=N` of /proc/pressure (Documentation/accounting/psi.rst)
/// [us].
fn total_us(text: &str) -> Option<u64> {
    text.lines().find(|line| line.starts_with("some"))?.rsplit_once("total=")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{events, testing};

    fn seconds(text: &str) -> Result<Duration, String> {
        text.parse().map(Duration::from_secs).map_err(|_| format!("{text}: not a time"))
    }

    fn parsed(text: &str) -> Result<Trigger, WrongTrigger> {
        Trigger::parse(text, seconds)
    }

    /// Causes, each with its thread.
    fn see(lookout: &mut Lookout, bytes: &[u8]) -> Vec<(u32, Fact)> {
        let (mut rest, mut causes) = (bytes, Vec::new());
        while let Some((event, after)) = events::split(rest) {
            causes.extend(lookout.see(&event).map(|cause| (cause.tid, cause.what)));
            rest = after;
        }
        causes
    }

    fn event<L: events::Layout>(kind: u8, fixed: &L) -> Vec<u8> {
        let mut out = Vec::new();
        events::add(&mut out, kind, 0, fixed, &[]);
        out
    }

    #[test]
    fn triggers_are_read() {
        let second = Duration::from_secs(1);
        assert_eq!(parsed("call:1"), Ok(Trigger::Call { name: None, than: second }));
        assert_eq!(parsed("call/fsync:1"), Ok(Trigger::Call { name: Some("fsync".into()), than: second }));
        assert_eq!(parsed("pressure/io:20%"), Ok(Trigger::Pressure { resource: "io", percent: 20 }));
        assert_eq!(parsed("signal:SEGV,SIGABRT"), Ok(Trigger::Signal(vec!["SIGSEGV".into(), "SIGABRT".into()])));
        let words = ["test", "-e", "/tmp/a:b; true"].map(String::from).to_vec();
        assert_eq!(parsed("command:test -e '/tmp/a:b; true'"), Ok(Trigger::Command(words)));
        assert_eq!(parsed("run-queue:1").map(|trigger| trigger.family().map(|family| family.name)), Ok(Some("sched")));
        for wrong in [
            "",
            "call",
            "call:x",
            "lock/x:1",
            "pressure/net:1",
            "pressure/io:101",
            "signal:SIGNAL",
            "probe:x",
            "command:",
            "command: ",
            "command:a 'b",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn calls_count_where_they_wait_for_files() {
        let mut lookout = Lookout::new(&[parsed("call:1").unwrap(), parsed("call/futex:2").unwrap()]);
        let dur_ns = |seconds: u64| seconds * 1_000_000_000 + 1;
        let call = |number, seconds| testing::call(7, 5, dur_ns(seconds), number, 0).bytes();
        assert_eq!(see(&mut lookout, &call(libc::SYS_fsync, 1)), [(7, facts::call_took("fsync", dur_ns(1)))]);
        assert_eq!(see(&mut lookout, &call(libc::SYS_futex, 2)), [(7, facts::call_took("futex", dur_ns(2)))]);
        for (number, seconds) in [(libc::SYS_fsync, 0), (libc::SYS_futex, 1), (libc::SYS_epoll_wait, 9), (libc::SYS_read, 9)] {
            assert_eq!(see(&mut lookout, &call(number, seconds)), [], "{number}");
        }
    }

    #[test]
    fn waits_for_a_cpu_are_from_the_moment_that_a_thread_can_run() {
        let wake = |tid, at_ns| event(EVENT_WAKE, &WakeEvent { at_ns, tid, ..WakeEvent::default() });
        let switch = |from_tid, state: u32, to_tid, at_ns| {
            let state = state as u16;
            event(EVENT_SWITCH, &SwitchEvent { at_ns, from_tid, to_tid, state, ..SwitchEvent::default() })
        };
        let mut lookout = Lookout::new(&[parsed("run-queue:1").unwrap()]);
        const S: u64 = 1_000_000_000;
        let mut find = |events: &[Vec<u8>]| see(&mut lookout, &events.concat());
        assert_eq!(find(&[wake(1, S), switch(0, 0, 1, 2 * S)]), []);
        assert_eq!(find(&[switch(1, 1, 0, 3 * S), wake(1, 4 * S), switch(0, 0, 1, 6 * S)]), [(1, facts::waited_for_cpu(2 * S))]);
        // It was preempted.
        assert_eq!(find(&[switch(1, 0, 2, 7 * S), switch(2, 1, 1, 9 * S)]), [(1, facts::waited_for_cpu(2 * S))]);
        // Sleep is no wait for a CPU, and a wake-up by another CPU may be reported later.
        assert_eq!(find(&[switch(1, 1, 0, 10 * S), switch(0, 0, 1, 20 * S), wake(1, 20 * S - 1)]), []);
        assert_eq!(
            find(&[switch(1, 1, 0, 21 * S), switch(0, 0, 1, 30 * S), wake(1, 28 * S)]),
            [(1, facts::waited_for_cpu(2 * S))]
        );
    }

    #[test]
    fn processes_count_that_are_killed_by_what_usually_ends_none() {
        let exit = |tid, signal| event(EVENT_EXIT, &ExitEvent { tid, pid: 5, status: signal, ..ExitEvent::default() });
        let mut any = Lookout::new(&[parsed("signal").unwrap()]);
        assert_eq!(
            see(&mut any, &[exit(5, 11), exit(6, 11), exit(5, 15), exit(5, 256)].concat()),
            [(5, facts::killed("SIGSEGV"))]
        );
        let mut named = Lookout::new(&[parsed("signal:TERM").unwrap()]);
        assert_eq!(see(&mut named, &[exit(5, 11), exit(5, 15)].concat()), [(5, facts::killed("SIGTERM"))]);
    }

    #[test]
    fn pressure_is_the_share_of_time_between_two_readings() {
        assert_eq!(
            total_us("some avg10=0.00 avg60=0.00 avg300=1.37 total=8020727494\nfull avg10=0.00 total=5\n"),
            Some(8_020_727_494)
        );
        assert_eq!(total_us("nonsense"), None);
    }
}
