//! The table `critical_path` of a log, computed from calls that wait: their duration and, if other
//! calls show it, what ended them.
//!
//! A log does not show when a thread runs. A call that may wait and takes [`LEAST_NS`] or more
//! counts as a wait as a whole, and all other time as running. Another recorded thread ends a wait:
//! the child that was waited for, the last write to the same pipe or to the other end of the
//! socket, a wake-up at the same address (futex), or the end of a thread of the same process. For a
//! wait for events (poll), the descriptor that the thread reads next is taken as the one that ended
//! it.

use memchr::memmem;
use rustc_hash::FxHashMap;
use sysdock_calls::{
    CallRow, Cause, Kind, Objects, Task, action,
    critical_path::{self, MOST_ABSENCES, Part, Piece, critical_path},
    syscalls::{CLASS_WORDS, Class},
};
use sysdock_table::{
    Batch, Recording, TableError,
    rows::{CriticalPath as Row, CriticalPathColumns},
};

use crate::fields::Call;

/// Shorter calls do not count as waits [ns]: under strace the cheapest call takes some 20 µs.
const LEAST_NS: i64 = 100_000;
/// Maximum time between the end of a thread and the wake-up of another by it [ns].
const END_NS: i64 = 5_000_000;

/// The cause of the wait in a call. `None`: the call does not wait for long, or it computes.
fn cause(name: &[u8], class: Class, kind: Option<Kind>) -> Option<Cause> {
    const ACTIONS: [&str; 5] = ["futex", "child_wait", "connect", "accept", "signal_wait"];
    let name = std::str::from_utf8(name).ok()?;
    let transfers = matches!(class, Class::Read | Class::Write | Class::Copy) && matches!(kind, Some(Kind::Pipe | Kind::Socket));
    let locks_a_file = class == Class::Lock && kind.is_some();
    let may_wait = transfers
        || locks_a_file
        || matches!(class, Class::Sync | Class::Wait)
        || name == "vfork"
        || ACTIONS.contains(&action(name));
    may_wait.then(|| Cause::of_call(false, name, class, kind))
}

/// An action of one thread that ends the wait of another: writing to or reading from a pipe or an
/// end of a socket, or a wake-up at an address of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Deed {
    Write(i32),
    Read(i32),
    Wake(i32, u64),
    /// A thread of the process ends.
    End(i32),
    /// A process ends and closes its files.
    Exit,
}

/// A call that waited.
#[derive(Clone, Copy, Debug)]
struct Wait {
    task: u32,
    from_ns: i64,
    until_ns: i64,
    /// The timeout was reached.
    ran_out: bool,
    cause: Cause,
    /// The action that ends it, on the object as this thread names it.
    deed: Option<Deed>,
    /// The result of the call: the child, or 0 at the end of input.
    result: i64,
    object: i32,
    call: u16,
    class: u8,
    /// The thread that ended it, and when.
    waker: Option<(u32, i64)>,
}

impl critical_path::Absence for Wait {
    fn task(&self) -> u32 {
        self.task
    }

    fn times(&self) -> (i64, i64, i64) {
        let woken_ns = self.waker.map_or(self.until_ns, |(_, at_ns)| at_ns.clamp(self.from_ns, self.until_ns));
        (self.from_ns, woken_ns, self.until_ns)
    }

    fn follows(&self) -> Option<u32> {
        self.waker.map(|(task, _)| task)
    }
}

/// An action that may end the wait of another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Act {
    deed: Deed,
    ts_ns: i64,
    task: u32,
}

type Pairs = FxHashMap<Box<[u8]>, Box<[u8]>>;

/// Calls that waited, and actions that may have ended them.
#[derive(Default)]
pub(crate) struct Waits {
    waits: Vec<Wait>,
    acts: Vec<Act>,
    /// By thread: the wait for events that has no known cause yet.
    events: FxHashMap<u32, usize>,
    /// Names of both ends of each `socketpair`, by either of them.
    pairs: Pairs,
    is_too_long: bool,
}

impl Waits {
    /// Take note of a complete call.
    pub(crate) fn see(&mut self, call: &Call<'_>, class: Class, row: &CallRow, objects: &Objects, tasks: &[Task]) {
        // This runs for each call: most are short and end no other thread's wait.
        let may_end_a_wait = matches!(
            class,
            Class::Read | Class::Write | Class::Copy | Class::Close | Class::Lock | Class::Socket | Class::Process
        );
        if row.dur_ns < LEAST_NS && !may_end_a_wait {
            return;
        }
        let act = |deed| Act { deed, ts_ns: row.ts_ns, task: row.task };
        match call.name {
            b"exit" => return self.act(act(Deed::End(tasks[row.task as usize].pid))),
            b"exit_group" => return self.act(act(Deed::Exit)),
            _ => {}
        }
        if call.name == b"socketpair" {
            return self.pair(call);
        }
        let kind = u32::try_from(row.object).ok().map(|object| objects.kind(object));
        let meets = matches!(kind, Some(Kind::Pipe | Kind::Socket));
        let is_lock = class == Class::Lock && matches!(call.name, b"futex" | b"futex_time64");
        if row.dur_ns < LEAST_NS && !meets && !is_lock {
            return;
        }
        let place = if is_lock { futex(call, tasks[row.task as usize].pid) } else { None };
        let is_read = class == Class::Read;
        if meets && is_read {
            self.found(row);
        }
        let done = if is_read { Deed::Read(row.object) } else { Deed::Write(row.object) };
        match place {
            Some((wake, true)) => return self.act(act(wake)),
            // Closing the last writing end also ends a wait for data.
            _ if meets && (row.transferred > 0 || class == Class::Close) => self.act(act(done)),
            _ => {}
        }
        let Some(cause) = cause(call.name, class, kind).filter(|_| row.dur_ns >= LEAST_NS) else { return };
        let awaited = if is_read { Deed::Write(row.object) } else { Deed::Read(row.object) };
        self.wait(row, cause, place.map(|(wake, _)| wake).or(meets.then_some(awaited)));
    }

    fn wait(&mut self, row: &CallRow, cause: Cause, deed: Option<Deed>) {
        if self.waits.len() >= MOST_ABSENCES {
            self.is_too_long = true;
            return;
        }
        let ran_out = match cause {
            Cause::Events => row.result <= 0 || row.errno >= 0,
            Cause::Lock => row.errno >= 0,
            _ => false,
        };
        if cause == Cause::Events && !ran_out {
            self.events.insert(row.task, self.waits.len());
        }
        self.waits.push(Wait {
            task: row.task,
            from_ns: row.ts_ns,
            until_ns: row.ts_ns.saturating_add(row.dur_ns),
            ran_out,
            cause,
            deed,
            result: row.result,
            object: row.object,
            call: row.call,
            class: row.class,
            waker: None,
        });
    }

    fn pair(&mut self, call: &Call<'_>) {
        if let Some((one, other)) = pair(call.arguments.text).filter(|_| self.pairs.len() < MOST_ABSENCES) {
            self.pairs.insert(one.into(), other.into());
            self.pairs.insert(other.into(), one.into());
        }
    }

    fn act(&mut self, act: Act) {
        if self.acts.len() < MOST_ABSENCES {
            self.acts.push(act);
        } else {
            self.is_too_long = true;
        }
    }

    /// A thread reads: it had waited for this descriptor.
    fn found(&mut self, row: &CallRow) {
        if let Some(wait) = self.events.remove(&row.task).and_then(|index| self.waits.get_mut(index)) {
            (wait.deed, wait.object) = (Some(Deed::Write(row.object)), row.object);
        }
    }

    /// Write the path of the log's first thread, in the order of time, if all others descend from
    /// it: a command, or a thread that was attached to. The table is empty if several were, because
    /// the end of none of them is the end of the others; it is missing if there were too many waits.
    pub(crate) fn write(
        &mut self,
        recording: &mut Recording,
        calls: &[String],
        objects: &Objects,
        tasks: &[Task],
        last_ns: i64,
    ) -> Result<(), TableError> {
        if self.is_too_long {
            return Ok(());
        }
        let roots = tasks.iter().filter(|task| task.parent.is_none()).count();
        if roots != 1 || tasks[0].parent.is_some() {
            recording.manifest.tables.entry("critical_path".into()).or_default();
            return Ok(());
        }
        self.acts.sort_unstable();
        self.find_wakers(objects, tasks);
        let mut rows = Batch::<CriticalPathColumns>::default();
        for piece in critical_path(&mut self.waits, 0, tasks[0].end_ns.unwrap_or(last_ns), tasks) {
            rows.push(&row(&piece, calls));
        }
        recording.write_batch(&mut rows)
    }

    fn find_wakers(&mut self, objects: &Objects, tasks: &[Task]) {
        let mut by_tid: FxHashMap<i64, Vec<u32>> = FxHashMap::default();
        for (number, task) in (0..).zip(tasks) {
            by_tid.entry(task.tid.into()).or_default().push(number);
        }
        for wait in &mut self.waits {
            wait.waker = match wait.cause {
                Cause::Child => by_tid.get(&wait.result).and_then(|tasks_of| child(wait, tasks_of, tasks)),
                _ if wait.ran_out => None,
                _ => awaited(wait, objects, &self.pairs)
                    .and_then(|deed| last_act(&self.acts, deed, wait, wait.from_ns))
                    .or_else(|| last_end(&self.acts, wait, tasks)),
            };
        }
    }
}

/// The child that was waited for: its task that ended during the wait.
fn child(wait: &Wait, tasks_of: &[u32], tasks: &[Task]) -> Option<(u32, i64)> {
    let lived = |number: &u32| tasks[*number as usize].start_ns <= wait.until_ns && *number != wait.task;
    let number = tasks_of.iter().copied().rfind(lived)?;
    Some((number, tasks[number as usize].end_ns.unwrap_or(wait.until_ns)))
}

/// The action that ends a wait, on the object as the other end names it.
fn awaited(wait: &Wait, objects: &Objects, pairs: &Pairs) -> Option<Deed> {
    match wait.deed? {
        Deed::Write(object) => other_end(object, objects, pairs).map(Deed::Write),
        Deed::Read(object) => other_end(object, objects, pairs).map(Deed::Read),
        other => Some(other),
    }
}

/// The other thread that last performed the action before the wait ended, and when.
fn last_act(acts: &[Act], deed: Deed, wait: &Wait, since_ns: i64) -> Option<(u32, i64)> {
    let after = acts.partition_point(|act| (act.deed, act.ts_ns) <= (deed, wait.until_ns));
    let mut there = acts[..after].iter().rev().take_while(|act| act.deed == deed && act.ts_ns >= since_ns);
    there.find(|act| act.task != wait.task).map(|act| (act.task, act.ts_ns))
}

/// Another thread of the process that ended the wait with its end (`pthread_join`); a process that
/// had the other end of a pipe or socket open.
fn last_end(acts: &[Act], wait: &Wait, tasks: &[Task]) -> Option<(u32, i64)> {
    let deed = match wait.cause {
        Cause::Lock => Deed::End(tasks[wait.task as usize].pid),
        Cause::Pipe | Cause::Socket if wait.result == 0 => Deed::Exit,
        _ => return None,
    };
    last_act(acts, deed, wait, wait.from_ns.max(wait.until_ns.saturating_sub(END_NS)))
}

/// The object as the other end names it; both ends of a pipe have one name.
fn other_end(object: i32, objects: &Objects, pairs: &Pairs) -> Option<i32> {
    let id = u32::try_from(object).ok()?;
    if objects.kind(id) == Kind::Pipe {
        return Some(object);
    }
    let name = objects.name(id);
    let other = pairs.get(name).map_or_else(|| turned(name), |other| Some(other.to_vec()))?;
    objects.find(&other).map(u32::cast_signed)
}

/// Both names in `socketpair(AF_UNIX, SOCK_STREAM, 0, [3<socket:[11]>, 4<socket:[22]>])`.
fn pair(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let name = |text: &[u8]| Some((memchr::memchr(b'<', text)? + 1, memmem::find(text, b"]>")? + 1));
    let (start, end) = name(text)?;
    let rest = text.get(end..)?;
    let (other_start, other_end) = name(rest)?;
    Some((text.get(start..end)?, rest.get(other_start..other_end)?))
}

/// `TCP:[127.0.0.1:80->127.0.0.1:1024]` with its ends in the other order.
fn turned(name: &[u8]) -> Option<Vec<u8>> {
    let open = memchr::memchr(b'[', name)?;
    let arrow = open + memmem::find(&name[open..], b"->")?;
    let close = name.len().checked_sub(1).filter(|end| name[*end] == b']' && *end > arrow)?;
    let (ours, theirs) = (&name[open + 1..arrow], &name[arrow + 2..close]);
    Some([&name[..=open], theirs, b"->", ours, b"]"].concat())
}

/// The address of `futex(address, operation, ...)`, and whether the call wakes others.
fn futex(call: &Call<'_>, pid: i32) -> Option<(Deed, bool)> {
    let text = call.arguments.text.get(call.name.len() + 1..)?;
    let comma = memchr::memchr(b',', &text[..text.len().min(32)])?;
    let digits = std::str::from_utf8(text[..comma].strip_prefix(b"0x")?).ok()?;
    let address = u64::from_str_radix(digits, 16).ok()?;
    let operation = text[comma + 1..].trim_ascii_start();
    let wakes = [&b"FUTEX_WAKE"[..], b"FUTEX_REQUEUE", b"FUTEX_CMP_REQUEUE", b"FUTEX_UNLOCK"];
    Some((Deed::Wake(pid, address), wakes.iter().any(|word| operation.starts_with(word))))
}

fn row<'a>(piece: &Piece<'_, Wait>, calls: &'a [String]) -> Row<'a> {
    let wait = piece.absence.filter(|_| piece.part == Part::Waiting);
    Row {
        ts_ns: piece.from_ns,
        dur_ns: piece.until_ns - piece.from_ns,
        task_id: piece.task.cast_signed(),
        // A log does not show whether a thread that continued after a wait had a CPU.
        part: if piece.part == Part::Runnable { Part::Running } else { piece.part }.name().into(),
        cause: wait.map(|wait| wait.cause.name().into()),
        waker: wait.and_then(waker),
        call: wait.map(|wait| calls[usize::from(wait.call)].as_str().into()),
        class: wait.map(|wait| CLASS_WORDS[usize::from(wait.class)].into()),
        path_id: wait.map(|wait| wait.object).filter(|object| *object >= 0),
        stack_id: None,
        lock_id: None,
    }
}

/// The cause of a wait that no recorded thread ended, as far as its kind shows.
fn waker(wait: &Wait) -> Option<std::borrow::Cow<'static, str>> {
    let is_over = wait.ran_out || matches!(wait.cause, Cause::Timer | Cause::Disk);
    wait.waker.is_none().then(|| if is_over { "interrupt" } else { "another program" }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_a_socket() {
        let there = |name: &str| turned(name.as_bytes()).map(|name| String::from_utf8(name).unwrap());
        assert_eq!(there("TCP:[127.0.0.1:80->10.0.0.1:1024]").unwrap(), "TCP:[10.0.0.1:1024->127.0.0.1:80]");
        assert_eq!(there("UNIX-STREAM:[11->22]").unwrap(), "UNIX-STREAM:[22->11]");
        assert_eq!(there("socket:[11]"), None);
        let made = b"socketpair(AF_UNIX, SOCK_STREAM, 0, [3<socket:[11]>, 4<socket:[22]>]) = 0";
        assert_eq!(pair(made), Some((&b"socket:[11]"[..], &b"socket:[22]"[..])));
        assert_eq!(pair(b"socketpair(AF_UNIX, SOCK_STREAM, 0, [3, 4]) = 0"), None);
        assert_eq!(there("TCP:[::]->"), None);
    }
}
