//! Kernel stacks of tasks. The stack of a running task is known if the dump has the registers of
//! its processor: from an interrupt that was handled on a stack of the processor to the code that
//! it interrupted.

use std::{
    num::NonZero,
    ops::Range,
    panic::resume_unwind,
    thread::{Builder, available_parallelism, scope},
};

use rustc_hash::FxHashMap;
use sysdock_symbols::btf::Field;

use crate::{
    error::Fault,
    format::{PAGE, Registers},
    kernel::Kernel,
    orc::{Base, Kind, Orc},
    tasks::{MOST_THREADS, Task},
};

/// More frames than any stack of 16 KiB has.
const MOST_FRAMES: usize = 512;
/// Size of a task's stack [B].
pub(crate) const STACK_BYTES: u64 = 16 << 10;
/// Number of tasks up to which one thread reads them: further threads would cost more than they
/// gain.
const FEW_TASKS: usize = 2048;
/// User addresses are below this one.
const KERNEL: u64 = 1 << 63;

/// Where an execution continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    address: u64,
    /// Whether it was interrupted there, rather than having called.
    is_exact: bool,
}

impl Place {
    /// An address within the instruction: a call may be the last instruction of its function, and
    /// the return address is then in the next one.
    fn instruction(self) -> u64 {
        if self.is_exact { self.address } else { self.address.wrapping_sub(1) }
    }
}

/// A stack: places from the innermost on, and why there are no more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Stack {
    pub(crate) places: Vec<Place>,
    /// `None`: the last address is where the kernel was entered, or where the task began.
    pub(crate) fault: Option<Fault>,
}

/// One line of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where the execution continues.
    pub address: u64,
    /// An address within the instruction that was interrupted, or that called.
    pub instruction: u64,
    /// The function, and the offset in it; `None`: no symbol is there.
    pub function: Option<(String, u64)>,
    /// The module of the function; `None`: the kernel itself.
    pub module: Option<String>,
}

/// The different stacks, and which task has which.
#[derive(Debug, Default)]
pub struct Stacks {
    /// Each stack once, in the order of the first task that has it; with why it ends early.
    pub stacks: Vec<(Vec<Frame>, Option<Fault>)>,
    /// For each task the index of its stack; `None`: it was running, or has no stack any more.
    pub of_tasks: Vec<Option<usize>>,
    /// For each task the function in which it waits, as in /proc/PID/wchan.
    pub waits: Vec<Option<String>>,
}

/// The part of the kernel's layout that unwinding needs.
struct Layout {
    saved_bp: Field,
    saved_ip: Field,
    saved_bytes: u64,
    registers: [Field; 4],
    /// Code of the scheduler, in which all waiting tasks are.
    scheduler: Vec<(u64, u64)>,
    on_cpu: Option<Field>,
    /// The saved stack pointer of a task that is on no processor.
    sp: Field,
}

impl Layout {
    fn of(kernel: &Kernel) -> Result<Layout, Fault> {
        let register = |name: &str| kernel.field("pt_regs", name);
        let pair = |start: &str, end: &str| Some((kernel.symbols.address(start)?, kernel.symbols.address(end)?));
        let scheduler = [pair("__sched_text_start", "__sched_text_end"), pair("__lock_text_start", "__lock_text_end")];
        Ok(Layout {
            saved_bp: kernel.field("inactive_task_frame", "bp")?,
            saved_ip: kernel.field("inactive_task_frame", "ret_addr")?,
            saved_bytes: kernel.types.size_of("inactive_task_frame").ok_or(Fault::NoType)?,
            registers: [register("ip")?, register("sp")?, register("bp")?, register("cs")?],
            scheduler: scheduler.into_iter().flatten().collect(),
            on_cpu: kernel.field("task_struct", "on_cpu").ok(),
            sp: kernel.field("task_struct", "thread.sp")?,
        })
    }
}

/// A range of memory that was copied from the dump.
struct Piece {
    start: u64,
    bytes: Vec<u8>,
}

impl Piece {
    fn of(kernel: &Kernel, range: Range<u64>) -> Result<Piece, Fault> {
        let bytes = kernel.memory.bytes(range.start, range.end.wrapping_sub(range.start))?;
        Ok(Piece { start: range.start, bytes })
    }

    fn u64(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        self.bytes.get(at..at.checked_add(8)?)?.first_chunk().map(|eight| u64::from_le_bytes(*eight))
    }

    /// Whether a stack pointer belongs to it: that of an empty stack is its end.
    fn holds(&self, sp: u64) -> bool {
        sp.checked_sub(self.start).is_some_and(|far| far <= self.bytes.len() as u64)
    }
}

/// The stack of a task, and those on which its processor handles interrupts.
struct Copied {
    own: Piece,
    /// Only for running tasks.
    others: Vec<Piece>,
}

impl Copied {
    fn u64(&self, address: u64) -> Result<u64, Fault> {
        let found = self.own.u64(address).or_else(|| self.others.iter().find_map(|piece| piece.u64(address)));
        found.ok_or(Fault::NotMapped)
    }

    /// The stack that a stack pointer belongs to. 0: the task's own, also for one just below it,
    /// after an overflow.
    fn piece(&self, sp: u64) -> Option<usize> {
        if self.own.holds(sp) || (self.own.start.wrapping_sub(PAGE)..self.own.start).contains(&sp) {
            Some(0)
        } else {
            self.others.iter().position(|piece| piece.holds(sp)).map(|place| place + 1)
        }
    }

    /// The end of the task's own stack.
    fn end(&self) -> u64 {
        self.own.start + self.own.bytes.len() as u64
    }
}

impl Kernel {
    /// The stacks of these tasks.
    ///
    /// # Errors
    /// A [`Fault`]: this kernel has no ORC tables, or they are not in the dump.
    pub fn stacks(&self, tasks: &[Task]) -> Result<Stacks, Fault> {
        let layout = Layout::of(self)?;
        let mut known: FxHashMap<Stack, usize> = FxHashMap::default();
        let mut waits: FxHashMap<u64, Option<String>> = FxHashMap::default();
        let mut found = Stacks::default();
        for stack in self.unwound(tasks, &layout)? {
            let waited = stack.as_ref().and_then(|stack| {
                let outside =
                    |place: &&Place| !layout.scheduler.iter().any(|(start, end)| (*start..*end).contains(&place.address));
                stack.places.iter().find(outside)
            });
            found.waits.push(waited.and_then(|place| {
                let instruction = place.instruction();
                let name = || self.function(instruction).map(|(name, ..)| name.to_string());
                waits.entry(instruction).or_insert_with(name).clone()
            }));
            found.of_tasks.push(stack.map(|stack| {
                let next = known.len();
                *known.entry(stack).or_insert_with_key(|stack| {
                    found.stacks.push((self.frames(&stack.places), stack.fault));
                    next
                })
            }));
        }
        Ok(found)
    }

    /// The stack of each task, in several threads if there are many.
    fn unwound(&self, tasks: &[Task], layout: &Layout) -> Result<Vec<Option<Stack>>, Fault> {
        let threads = available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
        let mut parts = tasks.chunks(tasks.len().div_ceil(threads).max(FEW_TASKS));
        let own = parts.next().unwrap_or_default();
        scope(|scope| {
            let others: Vec<_> = parts
                .map(|part| {
                    let read = self.twin().map(|twin| move || twin.unwound_alone(part, layout));
                    (part, read.and_then(|read| Builder::new().spawn_scoped(scope, read).ok()))
                })
                .collect();
            let mut found = self.unwound_alone(own, layout)?;
            for (part, thread) in others {
                found.extend(match thread {
                    Some(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic))?,
                    // No other thread could be started.
                    None => self.unwound_alone(part, layout)?,
                });
            }
            Ok(found)
        })
    }

    fn unwound_alone(&self, tasks: &[Task], layout: &Layout) -> Result<Vec<Option<Stack>>, Fault> {
        let orc = Orc::read(self)?;
        Ok(tasks.iter().map(|task| self.stack(task, &orc, layout, &mut Vec::new())).collect())
    }

    fn frames(&self, places: &[Place]) -> Vec<Frame> {
        let frame = |place: &Place| {
            let (address, instruction) = (place.address, place.instruction());
            let found = self.function(instruction);
            Frame {
                address,
                instruction,
                function: found.map(|(name, far, _)| (name.to_string(), far + (address - instruction))),
                module: found.and_then(|(_, _, module)| module.map(Into::into)),
            }
        };
        places.iter().map(frame).collect()
    }

    /// Addresses of the registers that exceptions in the kernel have saved on the stack of a task,
    /// the innermost first.
    pub(crate) fn exceptions(&self, task: &Task) -> Result<Vec<u64>, Fault> {
        let mut passed = Vec::new();
        let stack = self.stack(task, &Orc::read(self)?, &Layout::of(self)?, &mut passed).unwrap_or_default();
        // Since 6.14 it only calls the other one.
        let panics =
            |place: &Place| self.function(place.instruction()).is_some_and(|(name, ..)| matches!(name, "panic" | "vpanic"));
        // A processor that stopped the kernel still handles interrupts, which came later.
        let later = stack.places.iter().rposition(panics).unwrap_or(0);
        Ok(passed.into_iter().filter(|(frames, _)| *frames > later).map(|(_, place)| place).collect())
    }

    /// The stacks on which a processor handles interrupts and exceptions, as far as known.
    fn stacks_of_processor(&self, cpu: usize) -> Vec<Range<u64>> {
        const EXCEPTIONS: [&str; 6] = ["DF_stack", "NMI_stack", "DB_stack", "MCE_stack", "VC_stack", "VC2_stack"];
        let variable = |name: &str| self.per_cpu(self.symbol(name)?, cpu);
        // From 6.2 to 6.14 it is a member of a structure.
        let top = variable("hardirq_stack_ptr").or_else(|_| {
            Ok::<u64, Fault>(variable("pcpu_hot")?.wrapping_add(self.field("pcpu_hot", "hardirq_stack_ptr")?.offset))
        });
        // It points to the last word, which contains the stack pointer at entry.
        let end = top.and_then(|place| self.memory.u64(place)).map(|top| top.wrapping_add(8));
        let mut found: Vec<Range<u64>> = end.iter().map(|end| end.wrapping_sub(STACK_BYTES)..*end).collect();
        if let Ok(start) = variable("cea_exception_stacks").and_then(|place| self.memory.u64(place)) {
            let fields = EXCEPTIONS.into_iter().filter_map(|name| self.field("cea_exception_stacks", name).ok());
            let range = |field: Field| start.wrapping_add(field.offset)..start.wrapping_add(field.offset + field.size as u64);
            found.extend(fields.map(range));
        }
        found.retain(|range| range.start >= KERNEL && range.start < range.end);
        found
    }

    /// `None`: the task has no stack any more, or it ran, and the dump does not have its registers.
    /// `passed`: addresses of registers that exceptions have saved, and the number of frames before
    /// each.
    fn stack(&self, task: &Task, orc: &Orc<'_>, layout: &Layout, passed: &mut Vec<(usize, u64)>) -> Option<Stack> {
        let runs = layout.on_cpu.and_then(|on_cpu| self.number(task.address, on_cpu).ok());
        if task.stack == 0 {
            return None;
        }
        if runs == Some(1) {
            return self.stack_of_running(task, orc, layout, passed);
        }
        let end = task.stack.wrapping_add(STACK_BYTES);
        let sp = self.number(task.address, layout.sp).unwrap_or(0);
        if !(task.stack..end).contains(&sp) {
            return Some(Stack { places: Vec::new(), fault: Some(Fault::NotMapped) });
        }
        let mut stack = Stack::default();
        let unwound = Piece::of(self, sp..end).and_then(|own| {
            let copied = Copied { own, others: Vec::new() };
            let first = Position::saved(&copied, sp, layout)?;
            unwind(&copied, first, orc, layout, (&mut stack.places, passed))
        });
        stack.fault = unwound.err();
        Some(stack)
    }

    /// The stack of a running task, from the registers of its processor on.
    fn stack_of_running(&self, task: &Task, orc: &Orc<'_>, layout: &Layout, passed: &mut Vec<(usize, u64)>) -> Option<Stack> {
        let own = task.stack..task.stack.wrapping_add(STACK_BYTES);
        let others = task.cpu.map_or_else(Vec::new, |cpu| self.stacks_of_processor(cpu as usize));
        let is_here = |sp: u64| own.contains(&sp) || others.iter().any(|other| other.contains(&sp));
        let registers = self.registers.iter().find(|registers| is_here(registers.sp))?;
        let mut stack = Stack::default();
        let unwound = Piece::of(self, own.clone()).and_then(|own| {
            // Not all of them exist on each machine.
            let others = others.iter().filter_map(|other| Piece::of(self, other.clone()).ok()).collect();
            let copied = Copied { own, others };
            let first = Position { ip: registers.ip, sp: registers.sp, bp: registers.bp, is_exact: true, registers: None };
            unwind(&copied, first, orc, layout, (&mut stack.places, &mut *passed)).or_else(|fault| {
                let found = self.caller_of_kexec(&copied, registers, orc, layout).map_err(|_| fault)?;
                stack.places.truncate(1);
                stack.places.extend(found);
                Ok(())
            })
        });
        stack.fault = unwound.err();
        Some(stack)
    }

    /// The caller of a kernel that was starting another one. Its saved registers need not be
    /// consistent (`crash_setup_regs`): the caller is the first address on the stack from which
    /// unwinding reaches the entry into the kernel.
    fn caller_of_kexec(
        &self,
        stack: &Copied,
        registers: &Registers,
        orc: &Orc<'_>,
        layout: &Layout,
    ) -> Result<Vec<Place>, Fault> {
        let is_kexec = self.function(registers.ip).is_some_and(|(name, ..)| name == "__crash_kexec");
        // A stack pointer on another stack may be far below this one.
        if !is_kexec || !stack.own.holds(registers.sp) {
            return Err(Fault::NoType);
        }
        for place in (registers.sp..stack.end()).step_by(8) {
            let ip = stack.u64(place)?;
            if self.image.contains(&ip) && self.function(ip).is_some() {
                let first = Position { ip, sp: place + 8, bp: registers.bp, is_exact: false, registers: None };
                let mut places = Vec::new();
                if unwind(stack, first, orc, layout, (&mut places, &mut Vec::new())).is_ok() && places.len() > 1 {
                    return Ok(places);
                }
            }
        }
        Err(Fault::NoType)
    }
}

/// State of an execution.
struct Position {
    ip: u64,
    sp: u64,
    bp: u64,
    /// Whether `ip` was interrupted, rather than being a return address.
    is_exact: bool,
    /// Address of all registers, if they were saved.
    registers: Option<u64>,
}

impl Position {
    /// State of a task that is on no processor, from the frame that `switch_to` leaves.
    fn saved(stack: &Copied, sp: u64, layout: &Layout) -> Result<Position, Fault> {
        let (bp, ip) = (stack.u64(sp + layout.saved_bp.offset)?, stack.u64(sp + layout.saved_ip.offset)?);
        Ok(Position { ip, sp: sp + layout.saved_bytes, bp, is_exact: false, registers: None })
    }
}

/// From a state to where the kernel was entered, or where the task began.
fn unwind(
    stack: &Copied,
    first: Position,
    orc: &Orc<'_>,
    layout: &Layout,
    (places, passed): (&mut Vec<Place>, &mut Vec<(usize, u64)>),
) -> Result<(), Fault> {
    let mut at = first;
    let mut left = Vec::new();
    while places.len() < MOST_FRAMES {
        // Also if the kernel itself continued at an address outside of its own.
        passed.extend(at.registers.map(|place| (places.len(), place)));
        if at.ip < KERNEL {
            return Ok(());
        }
        places.push(Place { address: at.ip, is_exact: at.is_exact });
        match caller(stack, &at, orc, layout)? {
            Some(next) => {
                check_order(stack, at.sp, next.sp, &mut left)?;
                at = next;
            }
            None => return Ok(()),
        }
    }
    Err(Fault::TooLong)
}

/// Stacks grow downwards: the frame of the caller is at a higher address, or on a stack that had no
/// frame before.
fn check_order(stack: &Copied, at: u64, next: u64, left: &mut Vec<usize>) -> Result<(), Fault> {
    let (here, there) = (stack.piece(at), stack.piece(next));
    let is_further = match there {
        Some(other) if here.is_some() && here != there => {
            left.extend(here);
            !left.contains(&other)
        }
        _ => next > at,
    };
    if is_further { Ok(()) } else { Err(Fault::Cycle) }
}

/// The frame of the caller; `None`: there is none in the kernel.
fn caller(stack: &Copied, at: &Position, orc: &Orc<'_>, layout: &Layout) -> Result<Option<Position>, Fault> {
    const USER: u64 = 3;
    let entry = orc.entry(if at.is_exact { at.ip } else { at.ip - 1 }).ok_or(Fault::NoType)?;
    if entry.kind == Kind::End {
        return Ok(None);
    }
    let above = match entry.sp {
        (Base::Sp, offset) => at.sp.wrapping_add_signed(offset),
        (Base::Bp, offset) => at.bp.wrapping_add_signed(offset),
        (Base::AtSp, offset) => stack.u64(at.sp)?.wrapping_add_signed(offset),
        (Base::AtBp, offset) => stack.u64(at.bp.wrapping_add_signed(offset))?,
        (Base::Unknown | Base::Other | Base::Caller, _) => return Err(Fault::NoType),
    };
    let bp = match entry.bp {
        (Base::Caller, offset) => stack.u64(above.wrapping_add_signed(offset))?,
        (Base::Bp, offset) => stack.u64(at.bp.wrapping_add_signed(offset))?,
        _ => at.bp,
    };
    let [ip, sp, saved_bp, cs] = layout.registers;
    let is_of_user = |registers: u64| Ok::<bool, Fault>(stack.u64(registers.wrapping_add(cs.offset))? & USER == USER);
    let next = match entry.kind {
        Kind::Call => {
            let ip = stack.u64(above.wrapping_sub(8))?;
            // Kernel code returns to kernel code: whatever else is there is no return address.
            if ip < KERNEL {
                return Err(Fault::NotMapped);
            }
            Position { ip, sp: above, bp, is_exact: false, registers: None }
        }
        Kind::Registers if is_of_user(above)? => return Ok(None),
        Kind::Registers => {
            let read = |field: Field| stack.u64(above.wrapping_add(field.offset));
            Position { ip: read(ip)?, sp: read(sp)?, bp: read(saved_bp)?, is_exact: true, registers: Some(above) }
        }
        // The registers that the processor saves at an interrupt: from `ip` on.
        Kind::SomeRegisters if is_of_user(above.wrapping_sub(ip.offset))? => return Ok(None),
        Kind::SomeRegisters => {
            let start = above.wrapping_sub(ip.offset);
            Position { ip: stack.u64(above)?, sp: stack.u64(start.wrapping_add(sp.offset))?, bp, is_exact: true, registers: None }
        }
        Kind::End | Kind::Unknown => return Err(Fault::NoType),
    };
    Ok(Some(next))
}
