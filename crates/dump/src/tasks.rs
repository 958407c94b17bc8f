//! The tasks of a kernel: processes and their threads, with their CPU time, memory and I/O.

use std::{
    mem::take,
    num::NonZero,
    sync::{
        Mutex,
        mpsc::{Receiver, TrySendError, sync_channel},
    },
    thread::{Builder, available_parallelism, scope},
};

use rustc_hash::FxHashMap;
use sysdock_symbols::btf::Field;

use crate::{error::Fault, format::PAGE, kernel::Kernel, threads::Threads};

/// A task. Values that could not be read are `None`, and `fault` tells why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Address of its `task_struct`.
    pub address: u64,
    /// Its own number, as in `ps -L`.
    pub pid: Option<u32>,
    /// Number of its process.
    pub tgid: Option<u32>,
    /// Number of the parent process.
    pub ppid: Option<u32>,
    /// Name, of at most 15 bytes.
    pub comm: Option<String>,
    /// Name in /proc/PID/comm, if it differs from `comm`: names of threads of the kernel may be
    /// longer, and those of workers contain what they work on.
    pub full_name: Option<String>,
    /// State, as bits.
    pub state: Option<u32>,
    /// The processor that it runs on, or last ran on.
    pub cpu: Option<u32>,
    /// CPU time in programs, as in /proc/PID/stat: sampled at ticks, and scaled to `run_ns`.
    pub user_ns: Option<u64>,
    /// CPU time in the kernel, computed the same way.
    pub system_ns: Option<u64>,
    /// CPU time as the scheduler measured it.
    pub run_ns: Option<u64>,
    /// Time in the run queue.
    pub queue_ns: Option<u64>,
    /// Resident memory of the process.
    pub rss_bytes: Option<u64>,
    /// Bytes that it caused to be read from storage.
    pub read_bytes: Option<u64>,
    /// Bytes that it caused to be written to storage.
    pub write_bytes: Option<u64>,
    /// When it was created [ns since boot].
    pub start_ns: Option<u64>,
    /// When it last got a processor, by the log clock; `None`: never.
    pub arrived_ns: Option<u64>,
    /// When it left its processor, by the log clock; `None`: it runs, or never ran.
    pub left_ns: Option<u64>,
    /// Address of its kernel stack.
    pub(crate) stack: u64,
    /// Why something is missing.
    pub fault: Option<Fault>,
}

impl Task {
    /// Name in /proc/PID/comm.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.full_name.as_deref().or(self.comm.as_deref())
    }

    /// Take the resident memory from what is known about the `mm_struct`.
    fn take_memory(&mut self, mm: u64, layout: &Layout, known: &KnownMemory) {
        match known.get(&mm) {
            Some(Ok(bytes)) => self.rss_bytes = Some((*bytes).max(0).cast_unsigned()),
            Some(Err(fault)) => self.fault = self.fault.or(Some(*fault)),
            // Threads of the kernel, and zombies, have no memory.
            None => self.rss_bytes = (layout.mm.is_some() && layout.rss.is_some()).then_some(0),
        }
    }

    /// The letter of its state, as in `ps` (fs/proc/array.c).
    #[must_use]
    pub fn letter(&self) -> Option<char> {
        const NOLOAD: u32 = 0x400;
        const UNINTERRUPTIBLE: u32 = 2;
        let state = self.state?;
        if state == UNINTERRUPTIBLE | NOLOAD {
            return Some('I');
        }
        let letters = ['S', 'D', 'T', 't', 'X', 'Z', 'P'];
        Some(letters.iter().enumerate().find(|(bit, _)| state >> bit & 1 == 1).map_or('R', |(_, letter)| *letter))
    }
}

/// Offsets of members. Values whose member this kernel lacks are missing in all tasks.
struct Layout {
    pid: Field,
    tgid: Option<Field>,
    comm: Option<Field>,
    state: Option<Field>,
    exit_state: Option<Field>,
    cpu: Option<Field>,
    parent: Option<Field>,
    user: Option<Field>,
    system: Option<Field>,
    previous_user: Option<Field>,
    previous_system: Option<Field>,
    run: Option<Field>,
    queue: Option<Field>,
    read: Option<Field>,
    written: Option<Field>,
    start: Option<Field>,
    arrived: Option<Field>,
    timed: Option<Field>,
    on_cpu: Option<Field>,
    /// Time to add to `timed`, for each processor.
    lags: Vec<u64>,
    mm: Option<Field>,
    stack: Option<Field>,
    signal: Field,
    thread_node: Field,
    thread_head: Field,
    rss: Option<Rss>,
    threads: Option<Threads>,
}

/// How `mm_struct` counts its pages: one number for each kind; since 6.2 with a part for each
/// processor.
struct Rss {
    /// Offset of the first kind.
    first: u64,
    /// Distance between kinds.
    step: u64,
    /// Offset of the sum in a counter.
    sum: u64,
    /// Offset of the pointer to the parts of processors.
    parts: Option<u64>,
    /// Offset and size of the part that each task keeps (before 6.2).
    in_task: Option<(u64, u64)>,
}

/// Kinds that count as resident: files, anonymous memory, shared memory
/// (include/linux/mm_types_task.h). The kind in between is what was swapped out.
const IN_RAM: [u64; 3] = [0, 1, 3];

impl Layout {
    fn of(kernel: &Kernel) -> Result<Layout, Fault> {
        let task = |paths: &[&str]| kernel.any_field("task_struct", paths).ok();
        Ok(Layout {
            pid: kernel.field("task_struct", "pid")?,
            tgid: task(&["tgid"]),
            comm: task(&["comm"]),
            state: task(&["__state", "state"]),
            exit_state: task(&["exit_state"]),
            cpu: task(&["thread_info.cpu", "cpu"]),
            parent: task(&["real_parent"]),
            user: task(&["utime"]),
            system: task(&["stime"]),
            previous_user: task(&["prev_cputime.utime"]),
            previous_system: task(&["prev_cputime.stime"]),
            run: task(&["se.sum_exec_runtime"]),
            queue: task(&["sched_info.run_delay"]),
            read: task(&["ioac.read_bytes"]),
            written: task(&["ioac.write_bytes"]),
            start: task(&["start_boottime", "real_start_time"]),
            arrived: task(&["sched_info.last_arrival"]),
            timed: task(&["se.exec_start"]),
            on_cpu: task(&["on_cpu"]),
            lags: (0..kernel.cpus()).map(|cpu| kernel.task_clock_lag(cpu).unwrap_or(0)).collect(),
            mm: task(&["mm"]),
            stack: task(&["stack"]),
            signal: kernel.field("task_struct", "signal")?,
            thread_node: kernel.field("task_struct", "thread_node")?,
            thread_head: kernel.field("signal_struct", "thread_head")?,
            rss: Rss::of(kernel),
            threads: Threads::of(kernel).ok(),
        })
    }
}

impl Rss {
    fn of(kernel: &Kernel) -> Option<Rss> {
        if let Ok(array) = kernel.field("mm_struct", "rss_stat.count") {
            let step = kernel.types.element_size(&array) as u64;
            let in_task = kernel.field("task_struct", "rss_stat.count").ok();
            let in_task = in_task.map(|array| (array.offset, kernel.types.element_size(&array) as u64));
            return Some(Rss { first: array.offset, step, sum: 0, parts: None, in_task });
        }
        let array = kernel.field("mm_struct", "rss_stat").ok()?;
        let (sum, parts) = (kernel.field("percpu_counter", "count").ok()?, kernel.field("percpu_counter", "counters").ok()?);
        let step = kernel.types.element_size(&array) as u64;
        Some(Rss { first: array.offset, step, sum: sum.offset, parts: Some(parts.offset), in_task: None })
    }

    /// Resident bytes, without the parts that tasks keep.
    fn bytes(&self, kernel: &Kernel, mm: u64) -> Result<i64, Fault> {
        let counter = |kind: u64| mm.wrapping_add(self.first + kind * self.step);
        let mut pages = 0_i64;
        for kind in IN_RAM {
            pages = pages.wrapping_add(kernel.memory.u64(counter(kind).wrapping_add(self.sum))?.cast_signed());
        }
        let Some(offset) = self.parts else { return Ok(pages.wrapping_mul(PAGE.cast_signed())) };
        let mut places = [0; IN_RAM.len()];
        for (place, kind) in places.iter_mut().zip(IN_RAM) {
            *place = kernel.memory.u64(counter(kind).wrapping_add(offset))?;
        }
        // The parts of a processor are close together, mostly in one page.
        for cpu in 0..kernel.cpus() {
            for place in places {
                pages = pages.wrapping_add(i64::from(kernel.memory.u32(kernel.per_cpu(place, cpu)?)?.cast_signed()));
            }
        }
        Ok(pages.wrapping_mul(PAGE.cast_signed()))
    }

    /// Resident bytes that a task keeps.
    fn of_task(&self, kernel: &Kernel, task: u64) -> Result<i64, Fault> {
        let Some((first, size)) = self.in_task else { return Ok(0) };
        let count = |kind: u64| kernel.memory.u32(task.wrapping_add(first + kind * size));
        IN_RAM.iter().try_fold(0, |sum, kind| Ok(sum + i64::from(count(*kind)?.cast_signed()) * PAGE.cast_signed()))
    }
}

/// All tasks of a kernel, and lists that could not be followed.
#[derive(Debug, Default)]
pub struct Tasks {
    /// In the order of the kernel's list: each process with its threads. The first is the idle task
    /// of processor 0.
    pub tasks: Vec<Task>,
    /// Lists that could not be followed to their end: whose they are, and why.
    pub broken: Vec<(String, Fault)>,
}

/// Number of processes that a thread reads at a time.
const CHUNK: usize = 512;
/// Number of chunks up to which one thread reads them: further threads would cost more than they
/// gain.
const FEW_CHUNKS: usize = 4;
/// Number of chunks that wait for a thread. It is small, because what was just found is still in
/// caches.
const WAITING_CHUNKS: usize = 2;
/// More threads do not help: all wait for the same memory.
pub(crate) const MOST_THREADS: usize = 8;

/// A cache of the resident memory of processes.
type KnownMemory = FxHashMap<u64, Result<i64, Fault>>;

/// Processes that were read.
#[derive(Default)]
struct Chunk {
    /// Index of the chunk in the list.
    number: usize,
    tasks: Vec<Task>,
    broken: Vec<(String, Fault)>,
    /// For each task, the address of its `mm_struct`, and the part that the task keeps. Empty: no
    /// task keeps a part.
    memories: Vec<(u64, i64)>,
}

/// Work of the threads that read tasks, and its results.
struct Work<'l> {
    layout: &'l Layout,
    waiting: Mutex<Receiver<(usize, Vec<u64>)>>,
    done: Mutex<Vec<Chunk>>,
    memory: Mutex<KnownMemory>,
}

impl Work<'_> {
    fn read(&self, kernel: &Kernel, (number, leaders): (usize, Vec<u64>), known: &mut KnownMemory) {
        let chunk = kernel.chunk(number, &leaders, self.layout, known);
        if let Ok(mut done) = self.done.lock() {
            done.push(chunk);
        }
    }

    /// Read chunks until no more come.
    fn read_all(&self, kernel: &Kernel, mut known: KnownMemory) {
        loop {
            let next = self.waiting.lock().map(|waiting| waiting.recv());
            let Ok(Ok(chunk)) = next else { break };
            self.read(kernel, chunk, &mut known);
        }
        if let Ok(mut memory) = self.memory.lock() {
            memory.extend(known);
        }
    }
}

impl Kernel {
    /// Read all tasks.
    ///
    /// # Errors
    /// A [`Fault`]: the kernel's list of tasks, or its layout, is unknown.
    pub fn tasks(&self) -> Result<Tasks, Fault> {
        let layout = Layout::of(self)?;
        let first = self.symbol("init_task")?;
        let list = self.field("task_struct", "tasks")?.offset;
        let (send, waiting) = sync_channel(WAITING_CHUNKS);
        let waiting = Mutex::new(waiting);
        let work = &Work { layout: &layout, waiting, done: Mutex::default(), memory: Mutex::default() };
        let helpers = available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS) - 1;
        let fault = scope(|scope| {
            let (mut chunk, mut chunks, mut known) = (vec![first], 0, KnownMemory::default());
            let fault = self.each_of_list(first.wrapping_add(list), list, |leader| {
                chunk.push(leader);
                if chunk.len() < CHUNK {
                    return;
                }
                chunks += 1;
                for twin in (chunks == FEW_CHUNKS).then_some(0..helpers).into_iter().flatten().map_while(|_| self.twin()) {
                    // If no thread can be started, this one reads all.
                    let _ = Builder::new().spawn_scoped(scope, move || work.read_all(&twin, KnownMemory::default()));
                }
                // If the others have enough to do, this one reads what it has just found.
                let next = (chunks, take(&mut chunk));
                let kept = if chunks < FEW_CHUNKS { Some(next) } else { send.try_send(next).err().map(unsent) };
                if let Some(next) = kept {
                    work.read(self, next, &mut known);
                }
            });
            drop(send);
            work.read(self, (chunks + 1, chunk), &mut known);
            work.read_all(self, known);
            fault
        });
        let broken = fault.map(|fault| ("the list of processes".into(), fault));
        Ok(put_together(work, broken.into_iter().collect()))
    }

    /// Read the tasks of these processes.
    fn chunk(&self, number: usize, leaders: &[u64], layout: &Layout, known: &mut KnownMemory) -> Chunk {
        let mut chunk = Chunk { number, ..Chunk::default() };
        for leader in leaders {
            for address in self.threads(*leader, layout, &mut chunk.broken) {
                let mut task = self.task(address, layout);
                let (mm, kept) = self.memory_of(address, layout, known);
                // Before 6.2 the sum is known after all tasks were read.
                if layout.rss.as_ref().is_some_and(|rss| rss.in_task.is_some()) {
                    chunk.memories.push((mm, kept));
                } else {
                    task.take_memory(mm, layout, known);
                }
                chunk.tasks.push(task);
            }
        }
        chunk
    }

    /// The threads of a process, its first thread first.
    fn threads(&self, leader: u64, layout: &Layout, broken: &mut Vec<(String, Fault)>) -> Vec<u64> {
        let Ok(signal) = self.number(leader, layout.signal) else { return vec![leader] };
        let head = signal.wrapping_add(layout.thread_head.offset);
        // Most have one thread: its node and the head point at each other.
        let node = leader.wrapping_add(layout.thread_node.offset);
        if self.memory.u64(head) == Ok(node) && self.memory.u64(node) == Ok(head) {
            return vec![leader];
        }
        let walk = self.list(head, layout.thread_node.offset);
        if let Some(fault) = walk.fault {
            let pid = self.number(leader, layout.pid).map_or("?".into(), |pid| pid.to_string());
            broken.push((format!("the threads of process {pid}"), fault));
        }
        let mut threads = vec![leader];
        threads.extend(walk.entries.into_iter().filter(|thread| *thread != leader));
        threads
    }

    fn task(&self, address: u64, layout: &Layout) -> Task {
        let mut task = Task { address, ..Task::default() };
        let mut fault = None;
        let mut number = |field: Option<Field>| {
            let read = self.number(address, field?);
            read.inspect_err(|error| fault = fault.or(Some(*error))).ok()
        };
        let small = |number: Option<u64>| number.map(|number| number as u32);
        task.pid = small(number(Some(layout.pid)));
        task.tgid = small(number(layout.tgid));
        task.cpu = small(number(layout.cpu));
        let (state, exit_state) = (number(layout.state), number(layout.exit_state));
        task.state = state.zip(exit_state).map(|(state, exit_state)| state as u32 | exit_state as u32);
        task.run_ns = number(layout.run);
        task.queue_ns = number(layout.queue);
        task.read_bytes = number(layout.read);
        task.write_bytes = number(layout.written);
        task.start_ns = number(layout.start);
        task.arrived_ns = number(layout.arrived).filter(|arrived| *arrived > 0);
        let lag = task.cpu.and_then(|cpu| layout.lags.get(cpu as usize)).unwrap_or(&0);
        let timed = number(layout.timed).filter(|timed| *timed > 0).map(|timed| timed.saturating_add(*lag));
        let runs = number(layout.on_cpu) == Some(1);
        task.left_ns = timed.max(task.arrived_ns).filter(|_| !runs);
        let times = [layout.user, layout.system, layout.previous_user, layout.previous_system].map(&mut number);
        if let ([Some(user), Some(system), Some(before_user), Some(before_system)], Some(run)) = (times, task.run_ns) {
            let (user, system) = as_proc_shows(run, (user, system), (before_user, before_system));
            (task.user_ns, task.system_ns) = (Some(user), Some(system));
        }
        task.stack = number(layout.stack).unwrap_or(0);
        let parent = number(layout.parent).zip(layout.tgid);
        task.ppid = parent.and_then(|(parent, tgid)| {
            let read = self.number(parent, tgid);
            read.inspect_err(|error| fault = fault.or(Some(*error))).ok().map(|tgid| tgid as u32)
        });
        let comm = layout.comm.map(|comm| self.text(address, comm));
        task.comm = comm.and_then(|text| text.inspect_err(|error| fault = fault.or(Some(*error))).ok());
        if let (Some(comm), Some(threads)) = (&task.comm, &layout.threads) {
            match threads.name(self, address, comm) {
                Ok(name) => task.full_name = name,
                Err(error) => fault = fault.or(Some(error)),
            }
        }
        task.fault = fault;
        task
    }

    /// The address of a task's `mm_struct`, and the part that the task keeps; what the `mm_struct`
    /// counts goes into `known`.
    fn memory_of(&self, task: u64, layout: &Layout, known: &mut KnownMemory) -> (u64, i64) {
        let (Some(field), Some(rss)) = (layout.mm, &layout.rss) else { return (0, 0) };
        let mm = self.number(task, field).unwrap_or(0);
        if mm == 0 {
            return (0, 0);
        }
        known.entry(mm).or_insert_with(|| rss.bytes(self, mm));
        (mm, rss.of_task(self, task).unwrap_or(0))
    }
}

/// The value that could not be sent.
fn unsent<T>(error: TrySendError<T>) -> T {
    match error {
        TrySendError::Full(value) | TrySendError::Disconnected(value) => value,
    }
}

/// Combine the results in the order of the kernel's list. The memory of a process counts once: all
/// threads share it, and before 6.2 each keeps a part of the count.
fn put_together(work: &Work<'_>, broken: Vec<(String, Fault)>) -> Tasks {
    let mut chunks = work.done.lock().map(|mut done| take(&mut *done)).unwrap_or_default();
    let mut known = work.memory.lock().map(|mut memory| take(&mut *memory)).unwrap_or_default();
    chunks.sort_by_key(|chunk| chunk.number);
    let kept = chunks.iter().flat_map(|chunk| &chunk.memories).filter(|(_, kept)| *kept != 0);
    for (mm, kept) in kept {
        if let Some(Ok(sum)) = known.get_mut(mm) {
            *sum += kept;
        }
    }
    let mut found = Tasks { tasks: Vec::with_capacity(chunks.len() * CHUNK), broken };
    for mut chunk in chunks {
        for (task, (mm, _)) in chunk.tasks.iter_mut().zip(chunk.memories) {
            task.take_memory(mm, work.layout, &known);
        }
        found.broken.append(&mut chunk.broken);
        found.tasks.append(&mut chunk.tasks);
    }
    found
}

/// `cputime_adjust` of kernel/sched/cputime.c: the measured time is divided in proportion to the
/// sampled times, and neither part ever decreases.
fn as_proc_shows(run: u64, (user, system): (u64, u64), (before_user, before_system): (u64, u64)) -> (u64, u64) {
    if before_user.saturating_add(before_system) >= run {
        return (before_user, before_system);
    }
    let system = match (user, system) {
        (_, 0) => 0,
        (0, _) => run,
        (user, system) => (u128::from(system) * u128::from(run) / (u128::from(user) + u128::from(system))) as u64,
    };
    let system = system.max(before_system).min(run);
    let user = run - system;
    if user < before_user { (before_user, run.saturating_sub(before_user)) } else { (user, system) }
}
