//! Follows the events of a trace: which task executes, in which mode and function, and which
//! function called which.
//!
//! A task has a stack of frames. The last instruction of a block determines how the next one
//! follows it:
//!
//! * a call pushes a frame; a return goes back to the frame whose call precedes the return address;
//! * a jump to another function ends one frame and begins another with the same caller (a tail
//!   call);
//! * if kernel code follows user code, or a block begins an entry of the kernel that was not jumped
//!   to, an entry frame is pushed: a system call, an interrupt or a fault. Leaving the kernel goes
//!   back below it;
//! * code of mitigations that replaces a return or an indirect jump (*thunks*) has a frame of its
//!   own, and its effect on the stack is that of the instruction that it replaces.
//!
//! Frames that existed before the first event are unknown: a return beyond them begins a new frame.

use rustc_hash::FxHashMap;
use sysdock_itrace_file::{Access, Block, Event, Note};

use crate::{
    TraceFacts,
    code::{Code, Exit},
    images::{Images, Mode, Role},
};

/// How a frame was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// It existed before, or its creation is unknown.
    Window,
    Call,
    /// Without a new return address.
    Jump,
    SystemCall,
    Interrupt,
    Exception,
    /// A handler of a signal.
    Signal,
}

impl How {
    pub(crate) fn name(self) -> &'static str {
        match self {
            How::Window => "before",
            How::Call => "call",
            How::Jump => "jump",
            How::SystemCall => "system_call",
            How::Interrupt => "interrupt",
            How::Exception => "exception",
            How::Signal => "signal",
        }
    }
}

/// One execution of a function, or a part of it.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) call: u64,
    pub(crate) caller: Option<u64>,
    pub(crate) function: u32,
    pub(crate) how: How,
    pub(crate) first_step: u64,
    pub(crate) own: u64,
    pub(crate) total: u64,
    /// Index in [`Follower::paths`]: its function and those that led to it.
    pub(crate) path: u32,
    /// Whether no outer frame belongs to the same function.
    pub(crate) outermost: bool,
    return_to: Option<u64>,
    is_entry: bool,
    thunk: Option<Role>,
    /// The end of a repeated string instruction that may continue, and whether it has accessed
    /// nothing so far.
    repeating: Option<(u64, bool)>,
    /// For an entry: the block before it, if that was executed to its end.
    interrupted: Option<u32>,
    /// The function of the system call that was entered, once it is known.
    pub(crate) entered: Option<u32>,
}

/// A function, and the path of calls that led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Path {
    pub(crate) parent: Option<u32>,
    pub(crate) task: u32,
    pub(crate) function: u32,
}

/// The role of a block in an address space.
#[derive(Clone, Copy, Debug)]
struct BlockRole {
    function: u32,
    image: u32,
    mode: Mode,
    role: Role,
    /// Whether it is the first block of its function.
    is_start: bool,
    /// Whether its function shows which system call a task is in.
    names_call: bool,
}

/// A task, and its position.
#[derive(Debug)]
pub(crate) struct Task {
    /// Address of its `task_struct`, if that identifies the executing task.
    pub(crate) address: Option<u64>,
    /// Index in the facts.
    pub(crate) fact: Option<usize>,
    /// Its process, as far as known, whose mappings apply.
    tgid: i32,
    frames: Vec<Frame>,
    last: Option<Last>,
    /// The function of the current system call, as far as it was seen: for a call that was in
    /// progress before the trace, it is seen when the call ends.
    call: Option<u32>,
    pub(crate) steps: u64,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    block: u32,
    whole: bool,
    mode: Mode,
}

/// Number of steps in a block, counted in both ways.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steps {
    /// Each iteration of a repeated string instruction counts.
    pub(crate) single: u64,
    /// Each such instruction counts once.
    pub(crate) collapsed: u64,
}

/// Receives what happened. Steps are counted from the beginning of the trace.
pub(crate) trait Sink {
    /// A block was executed.
    fn block(&mut self, at: At, block: &Code, executed: u32, steps: Steps);
    /// Memory was accessed.
    fn access(&mut self, at: At, access: &Access);
    /// Another function executes now.
    fn transition(&mut self, task: u32, step: u64, from: u32, to: u32, how: Transition, depth: u32);
    /// A frame ended; `returned`: by a return, rather than by the end of the trace or the request.
    fn ended(&mut self, task: u32, frame: &Frame, depth: u32, returned: bool);
    /// Another task executes now.
    fn switched(&mut self, from: u32, to: u32, step: u64);
    /// The kernel was entered, and its work is not in the trace.
    fn untraced(&mut self, task: u32, step: u64, number: u32);
    /// A signal was delivered.
    fn signal(&mut self, task: u32, step: u64, number: u32);
    /// Whether a request begins or ends where a task enters, or has left, a system call: then new
    /// frames begin before it is reported.
    fn is_cut_by_call(&self, _task: u32, _call: &str, _leaves: bool) -> bool {
        false
    }
    /// A task enters, or has left, such a system call.
    fn cut_by_call(&mut self, _task: u32, _call: &str, _leaves: bool) {}
    /// Whether a request begins or ends with a marker: then new frames begin before it is reported.
    fn is_cut(&self, value: u32) -> bool;
    /// The program executed a marker.
    fn marker(&mut self, value: u32);
}

/// The executing task, and its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) task: u32,
    /// Id of its process; below 0 if it is unknown.
    pub(crate) process: i32,
    pub(crate) mode: Mode,
    pub(crate) image: u32,
    pub(crate) function: u32,
    /// Number of the block in the dictionary.
    pub(crate) block: u32,
    /// Number of its first step.
    pub(crate) step: u64,
}

impl At {
    /// Whether both belong to the same segment.
    pub(crate) fn is_in_segment_of(&self, other: &At) -> bool {
        (self.task, self.mode, self.image) == (other.task, other.mode, other.image)
    }
}

/// How one function follows another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    Call,
    Return,
    Jump,
    /// Into the kernel.
    Enter,
    /// Out of the kernel.
    Leave,
}

impl Transition {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Transition::Call => "call",
            Transition::Return => "return",
            Transition::Jump => "jump",
            Transition::Enter => "enter",
            Transition::Leave => "leave",
        }
    }
}

/// The block that is being executed.
#[derive(Clone, Copy)]
struct Current {
    block: u32,
    place: BlockRole,
    left: Option<u32>,
    /// Number of accesses of its repeated string instruction.
    repeats: u32,
    switch_to: Option<u64>,
    /// Whether its first instruction was counted before, when it faulted.
    again: bool,
}

impl Current {
    fn at(&self, task: u32, process: i32, step: u64) -> At {
        let BlockRole { function, image, mode, .. } = self.place;
        At { task, process, mode, image, function, block: self.block, step }
    }
}

/// Follows tasks.
pub(crate) struct Follower<'b> {
    pub(crate) blocks: &'b [Block],
    codes: &'b [Code],
    pub(crate) images: Images,
    pub(crate) tasks: Vec<Task>,
    by_address: FxHashMap<u64, u32>,
    task: u32,
    /// The role of each block, by process; for the kernel, 0.
    places: FxHashMap<i32, Vec<Option<BlockRole>>>,
    current: Option<Current>,
    next_call: u64,
    /// The block before a fault, if the next block follows the fault.
    resumes: Option<u32>,
    /// Paths of calls that occurred.
    pub(crate) paths: Vec<Path>,
    known_paths: FxHashMap<Path, u32>,
    pub(crate) steps: Steps,
    pub(crate) events: u64,
    /// Number of returns in the kernel whose frame was found, and of those whose frame was not,
    /// although it began in the trace.
    pub(crate) kernel_returns: [u64; 2],
    facts: &'b TraceFacts,
}

impl<'b> Follower<'b> {
    pub(crate) fn new(blocks: &'b [Block], codes: &'b [Code], images: Images, facts: &'b TraceFacts) -> Follower<'b> {
        let mut follower = Follower {
            blocks,
            codes,
            images,
            tasks: Vec::new(),
            by_address: FxHashMap::default(),
            task: 0,
            places: FxHashMap::default(),
            current: None,
            next_call: 0,
            resumes: None,
            paths: Vec::new(),
            known_paths: FxHashMap::default(),
            steps: Steps::default(),
            events: 0,
            kernel_returns: [0; 2],
            facts,
        };
        if facts.tasks.iter().any(|task| task.id.is_some()) {
            for index in 0..facts.tasks.len() {
                follower.add_task(None, Some(index));
            }
        } else {
            // The first executing task is identified when the first other task executes.
            follower.add_task(None, None);
        }
        follower
    }

    pub(crate) fn take(&mut self, word: u64, sink: &mut impl Sink) {
        match Event::unpack(word) {
            Some(Event::Block(block)) => {
                self.end_block(sink);
                self.enter(block, sink);
            }
            Some(Event::Access(access)) => self.access(&access, sink),
            Some(Event::Note(Note::Left(count))) => {
                if let Some(current) = &mut self.current {
                    current.left = Some(u32::from(count));
                }
            }
            Some(Event::Note(note)) => {
                self.end_block(sink);
                self.note(note, sink);
            }
            None => {}
        }
        self.events += 1;
    }

    /// Called after the last event.
    pub(crate) fn finish(&mut self, sink: &mut impl Sink) {
        self.end_block(sink);
        self.end_frames(sink);
    }

    fn note(&mut self, note: Note, sink: &mut impl Sink) {
        match note {
            Note::Task(task) if (task as usize) < self.tasks.len() => self.switch(task, sink),
            Note::Untraced(number) => sink.untraced(self.task, self.steps.single, number),
            Note::Signal(number) => sink.signal(self.task, self.steps.single, number),
            Note::Marker(value) => {
                if sink.is_cut(value) {
                    self.end_frames(sink);
                }
                sink.marker(value);
            }
            _ => {}
        }
    }

    fn access(&mut self, access: &Access, sink: &mut impl Sink) {
        let Some(current) = &mut self.current else { return };
        let at = current.at(self.task, self.tasks[self.task as usize].tgid, self.steps.single);
        let code = &self.codes[current.block as usize];
        if code.repeat.is_some_and(|repeat| repeat.instruction == access.instruction) {
            current.repeats += 1;
        }
        if let Some((_, offset)) = code.switch.filter(|(instruction, _)| *instruction == access.instruction && !access.store) {
            current.switch_to = Some(access.address.wrapping_sub(offset));
        } else if let Some((_, offset)) =
            code.switch.filter(|(instruction, _)| *instruction == access.instruction + 1 && access.store)
        {
            // The store just before identifies the task that the processor leaves.
            let task = &mut self.tasks[self.task as usize];
            if task.address.is_none() && task.fact.is_none() {
                let address = access.address.wrapping_sub(offset);
                task.address = Some(address);
                self.by_address.insert(address, self.task);
                self.name_task(self.task);
            }
        }
        sink.access(at, access);
    }

    /// Count the block that was executed.
    fn end_block(&mut self, sink: &mut impl Sink) {
        let Some(current) = self.current.take() else { return };
        let code = &self.codes[current.block as usize];
        let executed = current.left.map_or(code.count, |left| left.min(code.count));
        let task = &mut self.tasks[self.task as usize];
        let Some(frame) = task.frames.last_mut() else { return };
        let mut steps = Steps { single: u64::from(executed), collapsed: u64::from(executed) };
        match code.repeat.filter(|repeat| executed > u32::from(repeat.instruction)) {
            Some(repeat) => {
                let iterations = u64::from(current.repeats / repeat.accesses);
                let before = frame.repeating.filter(|(end, _)| repeat.instruction == 0 && *end == code.end);
                match before {
                    Some((_, was_empty)) => {
                        steps.collapsed -= 1;
                        // The last execution may only find that no iteration is left. The first one
                        // may end by a fault before it accesses anything.
                        steps.single = steps.single + iterations - 1 - u64::from(was_empty && iterations > 0);
                    }
                    None => steps.single += iterations.max(1) - 1,
                }
                let is_empty = iterations == 0 && before.is_none_or(|(_, was_empty)| was_empty);
                frame.repeating = Some((code.end, is_empty));
            }
            None => frame.repeating = None,
        }
        if current.again && executed > 0 {
            steps.single -= 1;
            steps.collapsed -= 1;
        }
        frame.own += steps.single;
        frame.total += steps.single;
        task.steps += steps.single;
        task.last = Some(Last { block: current.block, whole: executed == code.count, mode: current.place.mode });
        let at = current.at(self.task, task.tgid, self.steps.single);
        sink.block(at, code, executed, steps);
        self.steps.single += steps.single;
        self.steps.collapsed += steps.collapsed;
        if let Some(address) = current.switch_to {
            let next = self.by_address.get(&address).copied().unwrap_or_else(|| self.add_task(Some(address), None));
            self.switch(next, sink);
        }
    }

    fn add_task(&mut self, address: Option<u64>, fact: Option<usize>) -> u32 {
        let number = self.tasks.len() as u32;
        self.tasks.push(Task { address, fact, tgid: 0, frames: Vec::new(), last: None, call: None, steps: 0 });
        if let Some(address) = address {
            self.by_address.insert(address, number);
        }
        self.name_task(number);
        number
    }

    /// Identify a task.
    fn name_task(&mut self, number: u32) {
        let task = &mut self.tasks[number as usize];
        if let Some(address) = task.address {
            let is_it = |text: &String| u64::from_str_radix(text.trim_start_matches("0x"), 16) == Ok(address);
            task.fact = self.facts.tasks.iter().position(|fact| fact.address.as_ref().is_some_and(is_it));
        }
        // Unknown processes have negative numbers, and code of their own.
        task.tgid = task.fact.map_or(-1 - number as i32, |fact| self.facts.tasks[fact].tgid);
    }

    fn switch(&mut self, next: u32, sink: &mut impl Sink) {
        if next != self.task {
            sink.switched(self.task, next, self.steps.single);
            self.task = next;
        }
    }

    /// The functions found for all blocks.
    pub(crate) fn found_places(&self) -> crate::Places {
        let of_process = |places: &Vec<Option<BlockRole>>| {
            let known = places.iter().enumerate();
            known.filter_map(|(block, place)| Some((block as u32, place.as_ref()?.function))).collect::<Vec<_>>()
        };
        self.images.places(self.places.iter().map(|(tgid, places)| (*tgid, of_process(places))).collect())
    }

    /// Index of the instruction of a block that repeats.
    pub(crate) fn repeated(&self, block: u32) -> Option<u16> {
        self.codes[block as usize].repeat.map(|repeat| repeat.instruction)
    }

    /// The function of a block in a process, as found.
    pub(crate) fn function_of(&self, process: i32, block: u32) -> Option<u32> {
        self.places.get(&process)?.get(block as usize)?.as_ref().map(|place| place.function)
    }

    fn place(&mut self, block: u32) -> BlockRole {
        let code = &self.codes[block as usize];
        let tgid = if code.is_kernel() { 0 } else { self.tasks[self.task as usize].tgid };
        let places = self.places.entry(tgid).or_default();
        if places.len() <= block as usize {
            places.resize(self.codes.len(), None);
        }
        if let Some(place) = places[block as usize] {
            return place;
        }
        let function = self.images.function_of(block, &self.blocks[block as usize], tgid, self.events);
        let known = &self.images.functions[function as usize];
        let place = BlockRole {
            function,
            image: known.image,
            mode: self.images.images[known.image as usize].mode,
            role: known.role,
            is_start: known.start == code.address,
            names_call: ["__x64_sys_", "__ia32_sys_", "__do_sys_ni"].iter().any(|prefix| known.name.starts_with(prefix)),
        };
        self.places.entry(tgid).or_default()[block as usize] = Some(place);
        place
    }

    /// A block begins.
    fn enter(&mut self, block: u32, sink: &mut impl Sink) {
        let place = self.place(block);
        let from = self.tasks[self.task as usize].frames.last().map(|frame| frame.function);
        self.resumes = None;
        let how = self.move_frames(block, place, sink);
        if how == Some(Transition::Leave)
            && let Some(function) = self.tasks[self.task as usize].call.take()
        {
            self.cut_by_call(function, true, sink);
        }
        let depth = self.tasks[self.task as usize].frames.len() as u32;
        if let (Some(from), Some(how)) = (from, how) {
            sink.transition(self.task, self.steps.single, from, self.top().function, how, depth);
        }
        // The first function from the table of system calls names the call.
        if place.names_call {
            self.tasks[self.task as usize].call = Some(place.function);
            if place.is_start && self.name_entry(place.function) {
                self.cut_by_call(place.function, false, sink);
            }
        }
        // A recorder cannot see whether a fault in the last instruction of a block came before its
        // end.
        let code = &self.codes[block as usize];
        let again = code.repeat.is_none() && self.resumes.is_some_and(|before| self.codes[before as usize].last == code.address);
        self.current = Some(Current { block, place, left: None, repeats: 0, switch_to: None, again });
    }

    /// Whether the function is the first one that shows which system call was entered.
    fn name_entry(&mut self, function: u32) -> bool {
        let frames = &mut self.tasks[self.task as usize].frames;
        let Some(entry) = frames.iter_mut().rev().find(|frame| frame.is_entry) else { return false };
        let is_first = entry.entered.is_none();
        entry.entered.get_or_insert(function);
        is_first
    }

    fn cut_by_call(&mut self, function: u32, leaves: bool, sink: &mut impl Sink) {
        let call = entry_name(&self.images.functions[function as usize].name).to_owned();
        if sink.is_cut_by_call(self.task, &call, leaves) {
            self.end_frames(sink);
            sink.cut_by_call(self.task, &call, leaves);
        }
    }

    #[expect(clippy::expect_used, reason = "a block that begins gets a frame before anything asks for it")]
    fn top(&self) -> &Frame {
        self.tasks[self.task as usize].frames.last().expect("a block has a frame")
    }

    fn move_frames(&mut self, block: u32, place: BlockRole, sink: &mut impl Sink) -> Option<Transition> {
        let address = self.codes[block as usize].address;
        let Some(last) = self.tasks[self.task as usize].last.filter(|_| !self.tasks[self.task as usize].frames.is_empty()) else {
            self.push(place, How::Window, None);
            return None;
        };
        let code = &self.codes[last.block as usize];
        let (exit, end) = (if last.whole { code.exit } else { Exit::Next }, code.end);
        if place.mode == Mode::Kernel && last.mode != Mode::Kernel {
            self.push_entry(place, last);
            return Some(Transition::Enter);
        }
        if place.mode != Mode::Kernel && last.mode == Mode::Kernel {
            self.leave(place, sink);
            return Some(Transition::Leave);
        }
        if place.mode == Mode::Kernel {
            let is_entry = matches!(place.role, Role::Interrupt | Role::Exception) && place.is_start;
            if is_entry && (!last.whole || !matches!(exit, Exit::Call | Exit::Jump))
                || is_entry && self.top().function != place.function && exit == Exit::Jump && address != end
            {
                self.push_entry(place, last);
                return Some(Transition::Enter);
            }
            if exit == Exit::Leave {
                self.pop_entry(sink);
                return Some(self.settle(place, sink).unwrap_or(Transition::Leave));
            }
        }
        self.within(exit, end, address, place, sink)
    }

    /// Follow a block by one on the same side: both are of the kernel, or neither.
    fn within(&mut self, exit: Exit, end: u64, address: u64, place: BlockRole, sink: &mut impl Sink) -> Option<Transition> {
        let is_thunk = matches!(place.role, Role::ReturnThunk | Role::IndirectThunk);
        match (self.top().thunk, is_thunk) {
            (Some(_), true) => return None,
            (Some(Role::ReturnThunk), false) => {
                self.pop(sink, true);
                return Some(self.go_back(address, place, sink));
            }
            (Some(_), false) => {
                self.replace(place, sink);
                return Some(Transition::Jump);
            }
            (None, true) if exit == Exit::Call => {
                self.push(place, How::Call, Some(end));
                self.mark_thunk(place.role);
                return Some(Transition::Call);
            }
            (None, true) if place.role == Role::ReturnThunk => {
                self.push(place, How::Jump, None);
                self.mark_thunk(place.role);
                return Some(Transition::Jump);
            }
            (None, true) => {
                self.replace(place, sink);
                self.mark_thunk(place.role);
                return Some(Transition::Jump);
            }
            (None, false) => {}
        }
        match exit {
            // A call of the next instruction only obtains its own address.
            Exit::Call if address != end || place.is_start => {
                self.push(place, How::Call, Some(end));
                Some(Transition::Call)
            }
            Exit::Return => Some(self.go_back(address, place, sink)),
            _ => self.settle(place, sink),
        }
    }

    fn mark_thunk(&mut self, role: Role) {
        if let Some(frame) = self.tasks[self.task as usize].frames.last_mut() {
            frame.thunk = Some(role);
        }
    }

    /// Return to an address.
    fn go_back(&mut self, address: u64, place: BlockRole, sink: &mut impl Sink) -> Transition {
        let frames = &self.tasks[self.task as usize].frames;
        let within = frames.iter().rev().take_while(|frame| !frame.is_entry);
        let found = within.clone().position(|frame| frame.return_to == Some(address));
        let in_window = within.clone().last().is_some_and(|frame| frame.how == How::Window);
        if place.mode == Mode::Kernel && (found.is_some() || !in_window) {
            self.kernel_returns[usize::from(found.is_none())] += 1;
        }
        match found {
            Some(above) => {
                for _ in 0..=above {
                    self.pop(sink, true);
                }
                if self.tasks[self.task as usize].frames.is_empty() {
                    self.push(place, How::Window, None);
                }
                self.settle(place, sink);
            }
            // Beyond what the trace has seen; or a return that is used as a jump.
            None if self.top().function != place.function => {
                let how = if in_window && !self.top().is_entry { How::Window } else { How::Jump };
                let (return_to, is_entry) = (self.top().return_to, self.top().is_entry);
                if is_entry {
                    self.push(place, how, None);
                } else {
                    self.pop(sink, true);
                    self.push(place, how, return_to);
                }
            }
            None => {}
        }
        Transition::Return
    }

    /// Make the executing function that of the top frame. If it differs, a frame was left by a
    /// jump.
    fn settle(&mut self, place: BlockRole, sink: &mut impl Sink) -> Option<Transition> {
        if self.top().function == place.function {
            return None;
        }
        if self.top().is_entry {
            self.push(place, How::Jump, None);
        } else {
            self.replace(place, sink);
        }
        Some(Transition::Jump)
    }

    fn replace(&mut self, place: BlockRole, sink: &mut impl Sink) {
        let (return_to, is_entry, how) = (self.top().return_to, self.top().is_entry, self.top().how);
        self.pop(sink, true);
        self.push(place, if how == How::Window { How::Window } else { How::Jump }, return_to);
        if let Some(frame) = self.tasks[self.task as usize].frames.last_mut() {
            frame.is_entry = is_entry;
        }
    }

    /// Go back below the last entry of the kernel.
    fn pop_entry(&mut self, sink: &mut impl Sink) {
        while let Some(frame) = self.tasks[self.task as usize].frames.last() {
            let is_entry = frame.is_entry;
            self.pop(sink, true);
            if is_entry {
                break;
            }
        }
        if self.tasks[self.task as usize].frames.is_empty() {
            // It was entered before the trace began.
            self.tasks[self.task as usize].last = None;
        }
    }

    /// The kernel is left for user code.
    fn leave(&mut self, place: BlockRole, sink: &mut impl Sink) {
        let is_kernel = |follower: &Self, frame: &Frame| {
            let image = follower.images.functions[frame.function as usize].image;
            follower.images.images[image as usize].mode == Mode::Kernel
        };
        while self.tasks[self.task as usize].frames.last().is_some_and(|frame| is_kernel(self, frame)) {
            self.pop(sink, true);
        }
        let frames = &self.tasks[self.task as usize].frames;
        match frames.iter().rev().position(|frame| frame.function == place.function) {
            Some(0) => {}
            // A signal handler has ended, or called `longjmp`.
            Some(above) => (0..above).for_each(|_| self.pop(sink, true)),
            None if frames.is_empty() => self.push(place, How::Window, None),
            None => self.push(place, How::Signal, None),
        }
    }

    fn push_entry(&mut self, place: BlockRole, last: Last) {
        self.push(place, entry_of(place.role), None);
        if let Some(frame) = self.tasks[self.task as usize].frames.last_mut() {
            frame.interrupted = Some(last.block).filter(|_| last.whole);
        }
    }

    fn push(&mut self, place: BlockRole, how: How, return_to: Option<u64>) {
        let frames = &mut self.tasks[self.task as usize].frames;
        let path = Path { parent: frames.last().map(|frame| frame.path), task: self.task, function: place.function };
        let path = *self.known_paths.entry(path).or_insert_with(|| {
            self.paths.push(path);
            self.paths.len() as u32 - 1
        });
        frames.push(Frame {
            path,
            outermost: frames.iter().all(|frame| frame.function != place.function),
            call: self.next_call,
            caller: frames.last().map(|frame| frame.call),
            function: place.function,
            how,
            first_step: self.steps.single,
            own: 0,
            total: 0,
            return_to,
            is_entry: matches!(how, How::SystemCall | How::Interrupt | How::Exception),
            thunk: None,
            repeating: None,
            interrupted: None,
            entered: None,
        });
        self.next_call += 1;
    }

    fn pop(&mut self, sink: &mut impl Sink, returned: bool) {
        let task = &mut self.tasks[self.task as usize];
        let Some(frame) = task.frames.pop() else { return };
        if frame.is_entry {
            self.resumes = frame.interrupted.filter(|_| frame.how == How::Exception);
        }
        if let Some(caller) = task.frames.last_mut() {
            caller.total += frame.total;
        }
        sink.ended(self.task, &frame, task.frames.len() as u32, returned);
    }

    /// End all frames without a return, and begin new ones.
    fn end_frames(&mut self, sink: &mut impl Sink) {
        let resumes = self.resumes;
        for number in 0..self.tasks.len() as u32 {
            let mut kept = self.tasks[number as usize].frames.clone();
            let current = std::mem::replace(&mut self.task, number);
            while !self.tasks[number as usize].frames.is_empty() {
                self.pop(sink, false);
            }
            self.task = current;
            for (index, frame) in kept.iter_mut().enumerate() {
                frame.call = self.next_call + index as u64;
                frame.caller = index.checked_sub(1).map(|before| self.next_call + before as u64);
                (frame.own, frame.total, frame.first_step) = (0, 0, self.steps.single);
            }
            self.next_call += kept.len() as u64;
            self.tasks[number as usize].frames = kept;
        }
        // No frame has returned.
        self.resumes = resumes;
    }
}

/// Name of an entry: `__x64_sys_read` is read, `asm_exc_page_fault` page_fault,
/// `asm_sysvec_apic_timer_interrupt` apic_timer_interrupt.
pub(crate) fn entry_name(function: &str) -> &str {
    let prefixes = ["__x64_sys_", "__ia32_sys_", "__do_sys_", "asm_exc_", "asm_sysvec_", "asm_"];
    prefixes.iter().find_map(|prefix| function.strip_prefix(prefix)).unwrap_or(function)
}

fn entry_of(role: Role) -> How {
    match role {
        Role::SystemCall => How::SystemCall,
        Role::Interrupt => How::Interrupt,
        _ => How::Exception,
    }
}
