//! Facts that are not reported again when a segment begins: the existing threads, which of them are
//! on no CPU and since when, the mapped code of their processes, and the paths of files that later
//! events refer to. They are taken from the events as they pass, so they are the state that the
//! events had reported by then.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    events::{
        self, EVENT_EXEC, EVENT_EXIT, EVENT_FORK, EVENT_MAPPED, EVENT_PATH, EVENT_PROGRAM, EVENT_SWITCH, EVENT_TASK, EVENT_WAKE,
        ExitEvent, ForkEvent, Kinds, MappedEvent, PathEvent, ProgramEvent, Raw, STATE_DEAD, SwitchEvent, TaskEvent, WakeEvent,
        until_nul,
    },
    families::processes::events::{Exec, FoundTask},
};

/// Number of segments for which a path is kept after it was reported: the kernel writes back a file
/// half a minute after a program wrote to it.
const PATHS_KEPT: u64 = 4;
/// Limit for all paths that are kept [B].
const MOST_PATHS: usize = 8 << 20;

/// Kinds of events from which facts are taken.
pub(crate) const KNOWN_KINDS: Kinds = Kinds::of(&[
    EVENT_FORK,
    EVENT_EXEC,
    EVENT_SWITCH,
    EVENT_WAKE,
    EVENT_EXIT,
    EVENT_TASK,
    EVENT_MAPPED,
    EVENT_PROGRAM,
    EVENT_PATH,
]);

/// The facts so far.
#[derive(Default)]
pub(crate) struct Known {
    tasks: FxHashMap<u32, OneTask>,
    /// Events about threads that are not processed yet, with their times: the events of one CPU
    /// come before those of the next.
    pending: Vec<(u64, Vec<u8>)>,
    /// Threads that ended in this segment: time and name.
    ended: FxHashMap<u32, (u64, [u8; 16])>,
    /// Where threads were seen last.
    seen: FxHashMap<u32, Seen>,
    /// By image: the previous image, the file, the event.
    images: FxHashMap<u64, Image>,
    /// Path events by the id of the file, with the segment in which they came.
    paths: FxHashMap<u64, (u64, Vec<u8>)>,
    path_bytes: usize,
    segment: u64,
}

/// The scheduler's last event about a thread.
struct Seen {
    at_ns: u64,
    /// If it is on no CPU.
    away: Option<Away>,
}

/// How it left its CPU, and was woken.
struct Away {
    left: SwitchEvent,
    flags: u8,
    woken: Option<(WakeEvent, u8)>,
}

struct OneTask {
    /// Time of the last event about it.
    at_ns: u64,
    fixed: TaskEvent,
    arguments: Vec<u8>,
}

struct Image {
    /// 0: none.
    parent: u64,
    file: u64,
    event: Vec<u8>,
}

impl Known {
    /// Take facts from an event.
    #[inline]
    pub(crate) fn see(&mut self, event: &Raw<'_>) {
        match event.kind {
            EVENT_SWITCH => event.read().map_or((), |(switch, _)| self.switched(&switch, event.flags as u8)),
            EVENT_WAKE => event.read().map_or((), |(wake, _)| self.woken(&wake, event.flags as u8)),
            EVENT_FORK | EVENT_EXEC | EVENT_EXIT => {
                self.pending.push((event.first_number().unwrap_or(0), event.bytes().into()));
            }
            EVENT_TASK => FoundTask::of(event).map_or((), |task| self.task(&task)),
            EVENT_MAPPED => event.read::<MappedEvent>().map_or((), |(mapped, _)| {
                self.image(mapped.image, Image { parent: mapped.parent, file: mapped.file, event: event.bytes().into() });
            }),
            EVENT_PROGRAM => event.read::<ProgramEvent>().map_or((), |(program, _)| {
                self.image(program.image, Image { parent: 0, file: program.file, event: event.bytes().into() });
            }),
            EVENT_PATH => event.read::<PathEvent>().map_or((), |(path, _)| self.path(path.id, event.bytes())),
            _ => {}
        }
    }

    /// Process the events about threads before a time, of which all have passed, in their order.
    pub(crate) fn settle(&mut self, before_ns: u64) {
        if self.pending.is_empty() {
            return;
        }
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_by_key(|(at_ns, _)| *at_ns);
        let ready = pending.partition_point(|(at_ns, _)| *at_ns < before_ns);
        for (_, bytes) in pending.drain(..ready) {
            let Some((event, _)) = events::split(&bytes) else { continue };
            match event.kind {
                EVENT_FORK => event.read().map_or((), |(fork, _)| self.fork(&fork)),
                EVENT_EXEC => Exec::of(&event).map_or((), |exec| self.exec(&exec)),
                _ => event.read().map_or((), |(exit, _)| self.exit(&exit)),
            }
        }
        self.pending = pending;
    }

    fn switched(&mut self, switch: &SwitchEvent, flags: u8) {
        let at_ns = switch.at_ns;
        if switch.to_tid != 0 {
            self.seen_at(switch.to_tid, at_ns, None);
        }
        if switch.from_tid != 0 && u32::from(switch.state) & STATE_DEAD == 0 {
            self.seen_at(switch.from_tid, at_ns, Some(Away { left: SwitchEvent { to_tid: 0, ..*switch }, flags, woken: None }));
        }
    }

    /// Events of another CPU may come later, although they happened before.
    fn seen_at(&mut self, tid: u32, at_ns: u64, away: Option<Away>) {
        let seen = self.seen.entry(tid).or_insert(Seen { at_ns: 0, away: None });
        if at_ns >= seen.at_ns {
            *seen = Seen { at_ns, away };
        }
    }

    fn woken(&mut self, wake: &WakeEvent, flags: u8) {
        let away = self.seen.get_mut(&wake.tid).and_then(|seen| seen.away.as_mut());
        if let Some(away) = away.filter(|away| away.woken.is_none() && away.left.at_ns <= wake.at_ns) {
            away.woken = Some((*wake, flags));
        }
    }

    fn fork(&mut self, fork: &ForkEvent) {
        if self.ended.get(&fork.tid).is_some_and(|(ended_ns, _)| *ended_ns >= fork.at_ns) {
            return;
        }
        let parent = self.tasks.get(&fork.parent_tid).or_else(|| self.tasks.get(&fork.parent_pid));
        let is_thread = fork.pid == fork.parent_pid;
        let above = parent.map_or(0, |parent| parent.fixed.parent_pid);
        let arguments = parent.map(|parent| parent.arguments.clone()).unwrap_or_default();
        let parent_pid = if is_thread { above } else { fork.parent_pid };
        let (at_ns, tid, pid, user_id, comm) = (fork.at_ns, fork.tid, fork.pid, fork.user_id, fork.comm);
        // It may have started a program by now.
        if let Some(task) = self.tasks.get_mut(&tid).filter(|task| task.at_ns > at_ns) {
            (task.fixed.started_ns, task.fixed.parent_pid) = (at_ns, parent_pid);
            return;
        }
        let fixed = TaskEvent { started_ns: at_ns, tid, pid, parent_pid, user_id, comm, ..TaskEvent::default() };
        self.tasks.insert(tid, OneTask { at_ns, fixed, arguments });
    }

    fn exec(&mut self, exec: &Exec<'_>) {
        let before = self.tasks.remove(&exec.fixed.old_tid);
        let first = self.tasks.remove(&exec.fixed.tid);
        let before = first.or(before).map(|task| task.fixed).unwrap_or_default();
        let (at_ns, tid, pid) = (exec.fixed.at_ns, exec.fixed.tid, exec.fixed.pid);
        let (user_id, comm) = (exec.fixed.user_id, exec.fixed.comm);
        // Other threads of the process have ended by this, each with an event of its own.
        let fixed = TaskEvent { tid, pid, user_id, comm, ..before };
        self.tasks.insert(tid, OneTask { at_ns, fixed, arguments: exec.arguments.into() });
    }

    fn exit(&mut self, exit: &ExitEvent) {
        let comm = self.tasks.remove(&exit.tid).map(|task| task.fixed.comm).unwrap_or_default();
        self.ended.insert(exit.tid, (exit.at_ns, comm));
    }

    fn task(&mut self, task: &FoundTask<'_>) {
        self.tasks.insert(task.fixed.tid, OneTask { at_ns: 0, fixed: task.fixed, arguments: task.arguments.into() });
    }

    fn image(&mut self, id: u64, image: Image) {
        self.images.insert(id, image);
    }

    fn path(&mut self, id: u64, event: &[u8]) {
        if self.path_bytes + event.len() > MOST_PATHS {
            return;
        }
        self.path_bytes += event.len();
        if let Some((_, before)) = self.paths.insert(id, (self.segment, event.into())) {
            self.path_bytes -= before.len();
        }
    }

    /// Replace the threads after events about them were lost. `events`: the existing threads, from
    /// /proc.
    pub(crate) fn tasks_are(&mut self, events: &[u8]) {
        self.tasks.clear();
        self.pending.clear();
        let mut rest = events;
        while let Some((event, after)) = events::split(rest) {
            self.see(&event);
            rest = after;
        }
    }

    /// Name of the program of a thread that exists, or has just ended.
    pub(crate) fn name(&self, tid: u32) -> Option<String> {
        let comm = self.tasks.get(&tid).map(|task| task.fixed.comm).or_else(|| Some(self.ended.get(&tid)?.1))?;
        Some(String::from_utf8_lossy(until_nul(&comm)).into_owned()).filter(|name| !name.is_empty())
    }

    /// Begin a segment: events for everything that it may refer to. `images`: those that processes
    /// have now; facts that nothing else needs are dropped.
    pub(crate) fn begin_segment(&mut self, images: &[u64]) -> Vec<u8> {
        self.segment += 1;
        self.ended.clear();
        self.settle(u64::MAX);
        self.forget_images(images);
        self.forget_paths();
        let mut out = Vec::new();
        for task in self.tasks.values() {
            let arguments_length = task.arguments.len() as u16;
            let fixed = TaskEvent { arguments_length, ..task.fixed };
            events::add(&mut out, EVENT_TASK, 0, &fixed, &task.arguments);
        }
        self.seen.retain(|tid, _| self.tasks.contains_key(tid));
        for Away { left, flags, woken } in self.seen.values().filter_map(|seen| seen.away.as_ref()) {
            events::add(&mut out, EVENT_SWITCH, *flags, left, &[]);
            if let Some((wake, flags)) = woken {
                events::add(&mut out, EVENT_WAKE, *flags, wake, &[]);
            }
        }
        for event in self.paths.values().map(|(_, event)| event).chain(self.images.values().map(|image| &image.event)) {
            out.extend(event);
        }
        out
    }

    fn forget_images(&mut self, images: &[u64]) {
        let mut used = FxHashSet::default();
        for image in images {
            let mut at = *image;
            while at != 0 && used.insert(at) {
                at = self.images.get(&at).map_or(0, |image| image.parent);
            }
        }
        self.images.retain(|id, _| used.contains(id));
    }

    fn forget_paths(&mut self) {
        let files: FxHashSet<u64> = self.images.values().map(|image| image.file).collect();
        let oldest = self.segment.saturating_sub(PATHS_KEPT);
        self.paths.retain(|id, (segment, _)| *segment >= oldest || files.contains(id));
        self.path_bytes = self.paths.values().map(|(_, event)| event.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{events::ExecEvent, testing};

    fn see(known: &mut Known, events: &[u8]) {
        let mut rest = events;
        while let Some((event, after)) = events::split(rest) {
            known.see(&event);
            rest = after;
        }
        assert!(rest.is_empty());
    }

    fn tasks(events: &[u8]) -> Vec<(u32, u32, String)> {
        let mut found = Vec::new();
        let mut rest = events;
        while let Some((event, after)) = events::split(rest) {
            if let Some(task) = FoundTask::of(&event).filter(|_| event.kind == EVENT_TASK) {
                let comm = String::from_utf8_lossy(until_nul(&task.fixed.comm)).into_owned();
                found.push((task.fixed.tid, task.fixed.parent_pid, comm));
            }
            rest = after;
        }
        found.sort();
        found
    }

    fn mapped(image: u64, parent: u64, file: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let event = MappedEvent { image, parent, file, ..MappedEvent::default() };
        events::add(&mut out, EVENT_MAPPED, 0, &event, &[]);
        out
    }

    #[test]
    fn threads_are_those_that_were_made_and_have_not_ended() {
        let mut known = Known::default();
        let task = TaskEvent { tid: 10, pid: 10, parent_pid: 1, comm: *b"shell\0\0\0\0\0\0\0\0\0\0\0", ..TaskEvent::default() };
        let mut out = Vec::new();
        events::add(&mut out, EVENT_TASK, 0, &task, &[]);
        let fork = |tid, pid| ForkEvent { tid, pid, parent_tid: 10, parent_pid: 10, comm: task.comm, ..ForkEvent::default() };
        events::add(&mut out, EVENT_FORK, 0, &fork(11, 11), &[]);
        events::add(&mut out, EVENT_FORK, 0, &fork(12, 10), &[]);
        events::add(&mut out, EVENT_FORK, 0, &fork(13, 13), &[]);
        events::add(&mut out, EVENT_EXIT, 0, &ExitEvent { at_ns: 1, tid: 13, pid: 13, ..ExitEvent::default() }, &[]);
        see(&mut known, &out);
        let named = |tid, parent| (tid, parent, "shell".to_string());
        assert_eq!(tasks(&known.begin_segment(&[])), [named(10, 1), named(11, 10), named(12, 1)]);
        known.tasks_are(&[]);
        assert_eq!(tasks(&known.begin_segment(&[])), []);
    }

    #[test]
    fn events_of_cpus_are_put_in_order() {
        let mut known = Known::default();
        let exec =
            ExecEvent { at_ns: 7, tid: 11, pid: 11, old_tid: 11, comm: *b"program\0\0\0\0\0\0\0\0\0", ..ExecEvent::default() };
        let fork = |tid, at_ns| ForkEvent { at_ns, tid, pid: tid, parent_tid: 10, parent_pid: 10, ..ForkEvent::default() };
        let mut out = Vec::new();
        events::add(&mut out, EVENT_EXEC, 0, &exec, &[]);
        events::add(&mut out, EVENT_EXIT, 0, &ExitEvent { at_ns: 6, tid: 12, pid: 12, ..ExitEvent::default() }, &[]);
        events::add(&mut out, EVENT_FORK, 0, &fork(11, 4), &[]);
        events::add(&mut out, EVENT_FORK, 0, &fork(12, 5), &[]);
        see(&mut known, &out);
        known.settle(7);
        assert_eq!((known.name(11), known.pending.len()), (None, 1));
        assert_eq!(tasks(&known.begin_segment(&[])), [(11, 10, "program".to_string())]);
        // An event that comes too late changes nothing.
        let mut out = Vec::new();
        events::add(&mut out, EVENT_EXIT, 0, &ExitEvent { at_ns: 9, tid: 11, pid: 11, ..ExitEvent::default() }, &[]);
        see(&mut known, &out);
        known.settle(u64::MAX);
        assert_eq!(known.name(11), Some("program".to_string()));
        let mut out = Vec::new();
        events::add(&mut out, EVENT_FORK, 0, &fork(11, 4), &[]);
        see(&mut known, &out);
        known.settle(u64::MAX);
        assert!(known.tasks.is_empty());
    }

    #[test]
    fn a_thread_is_where_it_was_seen_last() {
        let mut known = Known::default();
        let mut out = Vec::new();
        let task = TaskEvent { tid: 10, pid: 10, ..TaskEvent::default() };
        events::add(&mut out, EVENT_TASK, 0, &task, &[]);
        let switch = |from_tid, to_tid, at_ns| SwitchEvent { at_ns, from_tid, to_tid, state: 1, ..SwitchEvent::default() };
        // It came back on another CPU, whose events come first.
        events::add(&mut out, EVENT_SWITCH, 0, &switch(0, 10, 8), &[]);
        events::add(&mut out, EVENT_SWITCH, 0, &switch(10, 0, 5), &[]);
        see(&mut known, &out);
        let away = |known: &mut Known| {
            let events = known.begin_segment(&[]);
            let (mut rest, mut kinds) = (&events[..], Vec::new());
            while let Some((event, after)) = events::split(rest) {
                kinds.push(event.kind);
                rest = after;
            }
            kinds
        };
        assert_eq!(away(&mut known), [EVENT_TASK]);
        let mut out = Vec::new();
        events::add(&mut out, EVENT_SWITCH, 0, &switch(10, 0, 9), &[]);
        events::add(&mut out, EVENT_WAKE, 0, &WakeEvent { at_ns: 12, tid: 10, ..WakeEvent::default() }, &[]);
        see(&mut known, &out);
        assert_eq!(away(&mut known), [EVENT_TASK, EVENT_SWITCH, EVENT_WAKE]);
    }

    #[test]
    fn images_stay_as_long_as_a_process_has_them_or_one_made_of_them() {
        let mut known = Known::default();
        see(&mut known, &[mapped(1, 0, 0), mapped(2, 1, 70), mapped(3, 2, 0), mapped(9, 1, 0)].concat());
        known.begin_segment(&[3]);
        let mut held: Vec<u64> = known.images.keys().copied().collect();
        held.sort_unstable();
        assert_eq!(held, [1, 2, 3]);
        known.begin_segment(&[]);
        assert!(known.images.is_empty());
    }

    #[test]
    fn paths_stay_for_some_segments_and_as_long_as_code_of_the_file_is_mapped() {
        let mut known = Known::default();
        see(&mut known, &mapped(1, 0, 70));
        for id in [70, 71] {
            see(&mut known, &testing::path(id, &["x"]).bytes());
        }
        for _ in 0..PATHS_KEPT {
            known.begin_segment(&[1]);
            assert_eq!(known.paths.len(), 2);
        }
        known.begin_segment(&[1]);
        assert_eq!(known.paths.keys().collect::<Vec<_>>(), [&70]);
        assert_eq!(known.path_bytes, known.paths[&70].1.len());
    }
}
