//! Where and why the kernel stopped: processor and task, registers, taints, and the class of the
//! panic by the log.

use crate::{
    error::Fault,
    kernel::Kernel,
    log::{Log, LogRecord},
    stacks::STACK_BYTES,
    tasks::Task,
};

/// Beginning of the record that reports a panic.
pub(crate) const STOPS: &str = "Kernel panic - not syncing: ";
/// The kernel reports all hung tasks at once, at most every ten seconds or so.
const ROUND_NS: u64 = 5_000_000_000;
/// Value for no processor.
const NONE: i32 = -1;
/// The registers of `elf_prstatus`; all but the last are those of `pt_regs`, in the same order
/// (arch/x86/include/asm/user_64.h).
const NAMES: [&str; 27] = [
    "r15", "r14", "r13", "r12", "bp", "bx", "r11", "r10", "r9", "r8", "ax", "cx", "dx", "si", "di", "orig_ax", "ip", "cs",
    "flags", "sp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs",
];
const IP: usize = 16;
const CS: usize = 17;
const SAVED: usize = 21;
/// Bits of the mask, their letters and meanings (Documentation/admin-guide/tainted-kernels.rst).
const TAINTS: [(char, &str); 20] = [
    ('P', "proprietary module"),
    ('F', "module loaded by force"),
    ('S', "processor out of specification"),
    ('R', "module unloaded by force"),
    ('M', "machine check"),
    ('B', "bad page"),
    ('U', "requested by user space"),
    ('D', "oops or BUG before"),
    ('A', "ACPI table overridden"),
    ('W', "warning"),
    ('C', "staging driver"),
    ('I', "workaround for firmware"),
    ('O', "module from outside the kernel"),
    ('E', "module without signature"),
    ('L', "soft lockup"),
    ('K', "live patch"),
    ('X', "auxiliary, of the distribution"),
    ('T', "structures in random order"),
    ('N', "test in the kernel"),
    ('J', "debug access to firmware"),
];

/// Names and values of registers.
type Values = Vec<(&'static str, u64)>;

/// A moment at which registers were saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedAt {
    /// When the dump was written.
    Dump,
    /// When the exception occurred that stopped the kernel.
    Exception,
    /// When the task entered the kernel.
    User,
}

impl SavedAt {
    /// The value of `dump_registers.origin`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SavedAt::Dump => "dump",
            SavedAt::Exception => "exception",
            SavedAt::User => "user",
        }
    }
}

/// Registers of a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedRegisters {
    /// The processor; `None`: the dump does not tell which.
    pub cpu: Option<u32>,
    /// The task that ran on it.
    pub pid: Option<u32>,
    pub moment: SavedAt,
    /// Names and values.
    pub values: Values,
}

/// Where and why a kernel stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Panic {
    /// The processor that stopped it; `None`: none did.
    pub cpu: Option<u32>,
    /// The task that ran on it.
    pub pid: Option<u32>,
    /// Name of the task.
    pub comm: Option<String>,
    /// Address in the kernel at which the exception occurred.
    pub address: Option<u64>,
    /// Taints of the kernel, as bits.
    pub taint: Option<u64>,
    /// Name of the machine.
    pub host: Option<String>,
    /// As in /proc/version.
    pub version: Option<String>,
    /// Registers of the processors.
    pub registers: Vec<SavedRegisters>,
    /// Why something is missing.
    pub fault: Option<Fault>,
}

impl Kernel {
    /// Where the kernel stopped. Values that cannot be read are missing, and `fault` tells why.
    #[must_use]
    pub fn panic(&self, log: Option<&Log>) -> Panic {
        let mut found = Panic::default();
        let mut fault = None;
        let mut keep = |error: Fault| fault = fault.or(Some(error));
        let taint = self.symbol("tainted_mask").and_then(|place| self.memory.u64(place));
        found.taint = taint.map_err(&mut keep).ok();
        found.host = self.host().map_err(&mut keep).ok();
        let version = self.symbol("linux_banner").and_then(|place| self.string(place));
        found.version = version.map_err(&mut keep).ok().map(|text| text.trim_end().into());
        found.cpu = self.stopped_by().map_err(&mut keep).unwrap_or(None);
        let task = found.cpu.map(|cpu| self.current(cpu as usize));
        let task = task.and_then(|task| task.map_err(&mut keep).ok());
        if let Some(address) = task {
            let text = self.field("task_struct", "comm").and_then(|comm| self.text(address, comm));
            found.comm = text.map_err(&mut keep).ok();
            found.pid = self.member(address, "task_struct", "pid").map_err(&mut keep).ok().map(|pid| pid as u32);
        }
        found.fault = fault;
        found.registers = self.registers_of_processors();
        if let Some(address) = task {
            let by_exception = log.and_then(cause).is_some_and(|(cause, _)| cause.is_exception());
            let (cpu, pid) = (found.cpu, found.pid);
            let moments = self.registers_of_task(address, cpu, by_exception).unwrap_or_default();
            let exception = moments.iter().find(|(moment, _)| *moment == SavedAt::Exception);
            found.address = exception.and_then(|(_, values)| values.get(IP)).map(|(_, ip)| *ip);
            found.registers.extend(moments.into_iter().map(|(moment, values)| SavedRegisters { cpu, pid, moment, values }));
        }
        found
    }

    /// Name of the machine.
    pub(crate) fn host(&self) -> Result<String, Fault> {
        let inside = self.field("uts_namespace", "name")?.offset;
        self.text(self.symbol("init_uts_ns")?.wrapping_add(inside), self.field("new_utsname", "nodename")?)
    }

    /// The processor that called `panic`, or that made the dump.
    fn stopped_by(&self) -> Result<Option<u32>, Fault> {
        for name in ["panic_cpu", "crashing_cpu"] {
            if let Ok(place) = self.symbol(name) {
                let cpu = self.memory.u32(place)?.cast_signed();
                if cpu != NONE {
                    return Ok(u32::try_from(cpu).ok().filter(|cpu| (*cpu as usize) < self.cpus()));
                }
            }
        }
        Ok(None)
    }

    /// Registers in the notes of the dump. They are in the order of the processors, of which some
    /// may be missing: their stack pointers then identify the tasks.
    fn registers_of_processors(&self) -> Vec<SavedRegisters> {
        let fields = (self.field("task_struct", "pid"), self.field("task_struct", "stack"));
        let (Ok(pid), Ok(stack)) = fields else { return Vec::new() };
        let current = |cpu: usize| self.current(cpu).ok();
        let of_stack = |sp: u64| {
            (0..self.cpus()).find(|cpu| {
                let start = current(*cpu).and_then(|task| self.number(task, stack).ok());
                start.is_some_and(|start| (start..start.wrapping_add(STACK_BYTES)).contains(&sp))
            })
        };
        let all_are_here = self.registers.len() == self.cpus();
        let row = |(number, registers): (usize, &crate::format::Registers)| {
            let cpu = if all_are_here { Some(number) } else { of_stack(registers.sp) };
            let task = cpu.and_then(current);
            SavedRegisters {
                cpu: cpu.map(|cpu| cpu as u32),
                pid: task.and_then(|task| self.number(task, pid).ok()).map(|pid| pid as u32),
                moment: SavedAt::Dump,
                values: NAMES.into_iter().zip(registers.all).collect(),
            }
        };
        self.registers.iter().enumerate().map(row).collect()
    }

    /// Registers on the stack of the task that stopped the kernel: of the exception, and of its
    /// entry into the kernel.
    fn registers_of_task(&self, address: u64, cpu: Option<u32>, by_exception: bool) -> Result<Vec<(SavedAt, Values)>, Fault> {
        const OF_USER: u64 = 3;
        let stack = self.member(address, "task_struct", "stack")?;
        let bytes = self.types.size_of("pt_regs").ok_or(Fault::NoType)?;
        let saved = |place: u64| {
            let words = (0..SAVED as u64).map(|number| self.memory.u64(place.wrapping_add(8 * number)));
            Ok::<Values, Fault>(NAMES.into_iter().zip(words.collect::<Result<Vec<_>, _>>()?).collect())
        };
        let mut found = Vec::new();
        if by_exception {
            let task = Task { address, stack, cpu, ..Task::default() };
            // The innermost one belongs to the exception: on the way to the stop the kernel causes
            // no other.
            for place in self.exceptions(&task)?.into_iter().take(1) {
                found.push((SavedAt::Exception, saved(place)?));
            }
        }
        let of_user = saved(stack.wrapping_add(STACK_BYTES).wrapping_sub(bytes))?;
        if of_user.get(CS).is_some_and(|(_, segment)| segment & OF_USER == OF_USER) {
            found.push((SavedAt::User, of_user));
        }
        Ok(found)
    }
}

impl Kernel {
    /// When the kernel stopped, by the log clock: by the log, else the last time of any activity.
    pub(crate) fn stopped_ns(&self, log: Option<&Log>) -> Option<u64> {
        let reported_at = log.and_then(stop_of).map(|record| record.after_boot_ns);
        reported_at.or_else(|| {
            let logged = log.and_then(|log| log.records.last()).map(|record| record.after_boot_ns);
            let clocks = (0..self.cpus()).filter_map(|cpu| {
                let queue = self.per_cpu(self.symbol("runqueues").ok()?, cpu).ok()?;
                self.member(queue, "rq", "clock").ok()
            });
            clocks.max().max(logged)
        })
    }
}

impl Panic {
    /// The taints as letters and as words.
    #[must_use]
    pub fn taints(&self) -> Option<(String, String)> {
        let mask = self.taint?;
        let set = || TAINTS.iter().enumerate().filter(move |(bit, _)| mask >> bit & 1 == 1).map(|(_, taint)| taint);
        Some((set().map(|(letter, _)| letter).collect(), set().map(|(_, words)| *words).collect::<Vec<_>>().join(", ")))
    }
}

/// Why a kernel stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Sysrq,
    HungTask,
    OutOfMemory,
    SoftLockup,
    HardLockup,
    StackOverflow,
    HardwareError,
    InitEnded,
    NullDereference,
    BadAddress,
    Bug,
    Other,
}

impl Cause {
    /// The value of `dump_panic.cause`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Cause::Sysrq => "sysrq",
            Cause::HungTask => "hung task",
            Cause::OutOfMemory => "out of memory",
            Cause::SoftLockup => "soft lockup",
            Cause::HardLockup => "hard lockup",
            Cause::StackOverflow => "stack overflow",
            Cause::HardwareError => "hardware error",
            Cause::InitEnded => "init ended",
            Cause::NullDereference => "NULL dereference",
            Cause::BadAddress => "bad address",
            Cause::Bug => "BUG",
            Cause::Other => "other",
        }
    }

    /// Whether an exception in the interrupted code is the cause. A hard lock-up, in contrast, is
    /// found by an interrupt of the hanging processor.
    fn is_exception(self) -> bool {
        let of_code =
            [Cause::NullDereference, Cause::BadAddress, Cause::Bug, Cause::StackOverflow, Cause::SoftLockup, Cause::Other];
        of_code.contains(&self)
    }

    /// The cause by the words of the panic, if they are enough.
    fn of_panic(words: &str) -> Option<Cause> {
        let starts = |start: &str| words.starts_with(start);
        let contains = |part: &str| words.contains(part);
        Some(match () {
            () if starts("sysrq triggered crash") => Cause::Sysrq,
            () if starts("hung_task: blocked tasks") => Cause::HungTask,
            () if starts("Out of memory") || starts("out of memory") || starts("System is deadlocked on memory") => {
                Cause::OutOfMemory
            }
            () if starts("softlockup: hung tasks") => Cause::SoftLockup,
            () if contains("ard LOCKUP") => Cause::HardLockup,
            () if contains("stack overflow") || contains("corrupted stack end") || contains("stack guard page") => {
                Cause::StackOverflow
            }
            () if contains("stack-protector:") => Cause::StackOverflow,
            () if contains("achine check") || contains("achine Check") || contains("ardware error") => Cause::HardwareError,
            () if starts("Attempted to kill init") => Cause::InitEnded,
            () => return None,
        })
    }

    /// The cause by an earlier record.
    fn of_record(text: &str) -> Option<Cause> {
        // Since 6.10 some begin with this word.
        let text = text.strip_prefix("Oops: ").unwrap_or(text);
        let starts = |start: &str| text.starts_with(start);
        let contains = |part: &str| text.contains(part);
        Some(match () {
            () if starts("BUG: kernel NULL pointer dereference") => Cause::NullDereference,
            () if starts("BUG: unable to handle page fault") || starts("general protection fault") => Cause::BadAddress,
            () if starts("kernel BUG at ") => Cause::Bug,
            () if starts("INFO: task ") && contains(" blocked for more than ") => Cause::HungTask,
            () if starts("watchdog: BUG: soft lockup") => Cause::SoftLockup,
            () if contains("hard LOCKUP") => Cause::HardLockup,
            () if contains("invoked oom-killer") => Cause::OutOfMemory,
            () if contains("[Hardware Error]") => Cause::HardwareError,
            () if starts("sysrq: Trigger a crash") => Cause::Sysrq,
            () if contains("stack guard page was hit") || contains("corrupted stack end") => Cause::StackOverflow,
            () => return None,
        })
    }
}

/// The record that reports the panic: the last of this kind, because others may precede it.
pub(crate) fn stop_of(log: &Log) -> Option<&LogRecord> {
    log.records.iter().rev().find(|record| record.text.starts_with(STOPS))
}

/// Why the kernel stopped, and the record that states what went wrong: the last of its kind before
/// the panic; for hung tasks, the first that was reported in the same round. `None`: the log
/// reports no panic.
#[must_use]
pub fn cause(log: &Log) -> Option<(Cause, Option<&LogRecord>)> {
    let stop = stop_of(log)?;
    let before = || log.records.iter().rev().skip_while(|record| record.sequence >= stop.sequence);
    let words = stop.text.strip_prefix(STOPS).unwrap_or_default();
    if let Some(cause) = Cause::of_panic(words) {
        let mut records = before().filter(|record| Cause::of_record(&record.text) == Some(cause));
        let last = records.next();
        // The kernel checks all tasks in the order of their creation: the later ones mostly wait
        // for the first.
        let of_one_round = |record: &&LogRecord| cause == Cause::HungTask && record.after_boot_ns + ROUND_NS > stop.after_boot_ns;
        return Some((cause, records.take_while(of_one_round).last().or(last)));
    }
    if !words.starts_with("Fatal exception") {
        return Some((Cause::Other, None));
    }
    // The panic only says that there was an exception; an earlier record says which.
    let known = [Cause::NullDereference, Cause::BadAddress, Cause::Bug, Cause::StackOverflow];
    let reported =
        before().find_map(|record| Some((Cause::of_record(&record.text).filter(|cause| known.contains(cause))?, record)));
    Some(reported.map_or((Cause::Other, None), |(cause, record)| (cause, Some(record))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause_of(lines: &[&str]) -> Option<(Cause, Option<String>)> {
        let record = |(sequence, text): (usize, &&str)| LogRecord {
            sequence: sequence as u64,
            after_boot_ns: sequence as u64,
            level: 0,
            text: (*text).into(),
        };
        let log = Log { records: lines.iter().enumerate().map(record).collect(), unread: 0 };
        cause(&log).map(|(cause, record)| (cause, record.map(|record| record.text.clone())))
    }

    #[test]
    fn each_class_is_known_by_the_words_of_the_kernel() {
        let fatal = "Kernel panic - not syncing: Fatal exception in interrupt";
        let cases = [
            (Cause::Sysrq, "sysrq: Trigger a crash", "Kernel panic - not syncing: sysrq triggered crash"),
            (
                Cause::HungTask,
                "INFO: task cp:7 blocked for more than 120 seconds.",
                "Kernel panic - not syncing: hung_task: blocked tasks",
            ),
            (
                Cause::OutOfMemory,
                "init invoked oom-killer: gfp_mask=0x140dca",
                "Kernel panic - not syncing: Out of memory: compulsory panic_on_oom is enabled",
            ),
            (
                Cause::SoftLockup,
                "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [cat:9]",
                "Kernel panic - not syncing: softlockup: hung tasks",
            ),
            (Cause::HardLockup, "watchdog: Watchdog detected hard LOCKUP on cpu 1", "Kernel panic - not syncing: Hard LOCKUP"),
            (
                Cause::HardwareError,
                "mce: [Hardware Error]: CPU 0: Machine Check Exception: 4 Bank 5: b200000000000800",
                "Kernel panic - not syncing: Fatal machine check",
            ),
            (Cause::NullDereference, "BUG: kernel NULL pointer dereference, address: 0000000000000010", fatal),
            (Cause::BadAddress, "BUG: unable to handle page fault for address: ffffc90000a3ff00", fatal),
            (Cause::BadAddress, "Oops: general protection fault, probably for non-canonical address 0xdead000000000108", fatal),
            (Cause::Bug, "kernel BUG at mm/slub.c:435!", fatal),
            (Cause::StackOverflow, "BUG: TASK stack guard page was hit at 00000000f0e83b5c", fatal),
        ];
        for (wanted, reported, stop) in cases {
            let found = cause_of(&["Linux version 6.1", reported, "Call Trace:", stop, "---[ end ]---"]);
            assert_eq!(found, Some((wanted, Some(reported.into()))), "{reported}");
        }
    }

    #[test]
    fn what_stopped_it_is_the_last_report_and_not_one_that_it_survived() {
        let survived = "BUG: kernel NULL pointer dereference, address: 0000000000000010";
        let last = "kernel BUG at fs/ext4/inode.c:2711!";
        let stop = "Kernel panic - not syncing: Fatal exception";
        assert_eq!(cause_of(&[survived, last, stop]), Some((Cause::Bug, Some(last.into()))));
        assert_eq!(cause_of(&[survived]), None);
        let [first, second] =
            ["splicer:8", "writer:9"].map(|task| format!("INFO: task {task} blocked for more than 10 seconds."));
        let stop = "Kernel panic - not syncing: hung_task: blocked tasks";
        assert_eq!(cause_of(&[&first, &second, stop]), Some((Cause::HungTask, Some(first))));
        let other = "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)";
        assert_eq!(cause_of(&[survived, other]), Some((Cause::Other, None)));
    }

    #[test]
    fn taints_are_letters_and_words() {
        let panic = Panic { taint: Some(1 << 12 | 1 << 13 | 1 << 9), ..Panic::default() };
        let (letters, words) = panic.taints().expect("they are known");
        assert_eq!(letters, "WOE");
        assert_eq!(words, "warning, module from outside the kernel, module without signature");
        assert_eq!(Panic { taint: Some(0), ..Panic::default() }.taints(), Some((String::new(), String::new())));
    }
}
