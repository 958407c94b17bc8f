//! A plugin of qemu that records each executed block, and each access to memory: of a guest with
//! one processor, into an event file by a thread of its own (`output.rs`); or of a program under
//! qemu-user, into memory that another process reads (`user.rs`, `shared.rs`).
//!
//! States: *idle* (blocks are searched for markers when they are translated; nothing is recorded,
//! at no cost), *recording* (from the first marker on, or at once), *over* (after the last marker,
//! the limit, or an error: registered callbacks do nothing any more, because qemu 7.2 stops when
//! they are unregistered).
//!
//! A marker is `nopl DISP(%rax)` with a displacement of [`MARKER`] and a value of 16 bits: real
//! processors do nothing there.
//!
//! Blocks that are left early: each instruction counts itself before it executes, and the next
//! block compares the sum with the length of the previous one. There are three reasons:
//!
//! - An instruction faults. It is counted, but not completed: it is executed again, or never.
//! - An instruction reads or writes registers of a device. qemu leaves the block, translates that
//!   instruction alone, calls back for its access only, and continues after it. That access belongs
//!   to another block than the one that was entered.
//! - The last instruction crosses the end of a page. qemu has not translated it, though it lists it
//!   among those of the block (perhaps with a part of its code), and begins the next block there.
//!
//! Code that qemu calls must not unwind. Functions that can fail (translation, beginning, end)
//! catch panics, and end the recording.

mod messages;
mod options;
mod output;
mod qemu;
mod shared;
mod user;
mod words;

use std::cell::UnsafeCell;
use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Instant;

use rustc_hash::FxHashMap;
use serde_json::json;
use sysdock_itrace_file::ring::{Head, Why, block_message};
use sysdock_itrace_file::{Access, Block, Event, Facts, Note};

use messages::PluginError;
use options::Options;
use output::{Output, Status, cpu_ns, print};
use qemu::{Functions, Id, Info, Insn, NO_REGS, READ_WRITE, Tb};
use shared::Shared;
use user::{User, Way};
use words::Words;

/// Upper half of the displacement of a marker.
pub const MARKER: u32 = 0x5d0c_0000;
/// The version of the interface that the plugin requires; see `qemu.rs`.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static mut qemu_plugin_version: c_int = 1;

/// Bits for the index of an instruction in the data of each of its accesses.
const INDEX_BITS: u32 = 9;
const NO_BLOCK: u32 = u32::MAX;

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = choose_version;

extern "C" fn choose_version() {
    if qemu::is_version_4() {
        unsafe { qemu_plugin_version = 4 };
    }
}

/// The state that callbacks use most.
struct Hot {
    is_recording: bool,
    words: Words,
    counter: *const u64,
    /// Number of instructions that had been begun when the last block was entered.
    begun: u64,
    /// The last block, and its number of instructions.
    block: u32,
    length: u32,
    /// Whether an instruction of it accessed a device.
    touched_device: bool,
    /// Value of the counter at which recording ends.
    end_at: u64,
    kinds: Kinds,
    /// Whether blocks may be signal handlers.
    watches: bool,
    /// Where another process sees the last block. Null: there is none.
    live: *const Head,
}

/// Properties of accesses, by the value that qemu passes with each: a cache, as each query takes
/// two calls.
struct Kinds(Box<[u8; KINDS]>);

/// More than any value that is passed: flags, and 4 bits for the address space.
const KINDS: usize = 1 << 18;

#[derive(Clone, Copy)]
struct Kind {
    store: bool,
    size_log2: u8,
}

impl Kinds {
    #[inline(always)]
    fn of(&mut self, info: u32) -> Kind {
        let mut known = self.0[info as usize % KINDS];
        if known == 0 || info as usize >= KINDS {
            known = self.query(info);
        }
        Kind { store: known & 8 != 0, size_log2: known & 7 }
    }

    #[cold]
    fn query(&mut self, info: u32) -> u8 {
        let (size_log2, store) = unsafe { (qemu::qemu_plugin_mem_size_shift(info), qemu::qemu_plugin_mem_is_store(info)) };
        let known = 0x80 | u8::from(store) << 3 | size_log2 as u8 & 7;
        self.0[info as usize % KINDS] = known;
        known
    }
}

struct Recorder {
    hot: Hot,
    own_counter: u64,
    id: Id,
    options: Options,
    functions: Functions,
    output: Option<Output>,
    status: Option<Status>,
    /// State for qemu-user.
    user: Option<User>,
    new_blocks: Vec<Block>,
    known: FxHashMap<Block, u32>,
    /// Address and lengths of the instructions of each block.
    blocks: Vec<(u64, Box<[u8]>)>,
    /// Addresses of the kernel's tasks that have run.
    tasks: BTreeSet<u64>,
    began_at: Option<Instant>,
    began_cpu_ns: u64,
    begun_before: u64,
    is_over: bool,
}

/// The only recorder. Only the thread of the guest's one processor uses it once that runs; before
/// and after, qemu's main thread does.
struct RecorderCell(UnsafeCell<Option<Recorder>>);

unsafe impl Sync for RecorderCell {}

static RECORDER: RecorderCell = RecorderCell(UnsafeCell::new(None));

#[inline(always)]
fn recorder() -> Option<&'static mut Recorder> {
    // Safe: see `RecorderCell`. No caller keeps it while another one runs.
    unsafe { (*RECORDER.0.get()).as_mut() }
}

/// Run code that may panic.
fn guarded(act: impl FnOnce(&mut Recorder)) {
    let Some(recorder) = recorder() else { return };
    if catch_unwind(AssertUnwindSafe(|| act(recorder))).is_err() {
        recorder.end_early(Why::Failed);
        print("failed; the guest continues without it");
    }
}

/// Called by qemu when it starts.
///
/// # Safety
///
/// Arguments are as in qemu-plugin.h.
#[unsafe(no_mangle)]
#[allow(private_interfaces)]
pub unsafe extern "C" fn qemu_plugin_install(id: Id, info: *const Info, argc: c_int, argv: *const *const c_char) -> c_int {
    let install = || -> Result<(), PluginError> {
        let words = (0..argc as usize).map(|index| unsafe { CStr::from_ptr(*argv.add(index)) }.to_string_lossy().into_owned());
        let words: Vec<String> = words.collect();
        let options = Options::parse(words.iter().map(String::as_str))?;
        let info = unsafe { &*info };
        if unsafe { CStr::from_ptr(info.target_name) } != c"x86_64" {
            return Err(PluginError::Processor);
        }
        if info.system_emulation && info.smp_vcpus != 1 {
            return Err(PluginError::Processors(info.smp_vcpus));
        }
        if info.system_emulation == options.shared.is_some() {
            return Err(PluginError::OutputOfOtherKind);
        }
        let functions = Functions::find().ok_or(PluginError::OldQemu)?;
        let recorder = Recorder::new(id, options, functions)?;
        let is_user = recorder.user.is_some();
        unsafe { *RECORDER.0.get() = Some(recorder) };
        if is_user {
            unsafe { libc::pthread_atfork(None, None, Some(user::in_child)) };
        }
        Ok(())
    };
    match catch_unwind(install) {
        Ok(Ok(())) => {
            unsafe { register(id) };
            0
        }
        Ok(Err(cause)) => {
            print(&cause.text());
            1
        }
        Err(_) => 1,
    }
}

unsafe fn register(id: Id) {
    unsafe {
        qemu::qemu_plugin_register_vcpu_init_cb(id, on_vcpu);
        qemu::qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
        qemu::qemu_plugin_register_atexit_cb(id, on_exit, std::ptr::null_mut());
        if recorder().is_some_and(|recorder| recorder.user.is_some()) {
            qemu::qemu_plugin_register_vcpu_syscall_cb(id, on_call);
            qemu::qemu_plugin_register_vcpu_syscall_ret_cb(id, on_call_end);
        }
    }
}

extern "C" fn on_vcpu(_: Id, vcpu: c_uint) {
    guarded(|recorder| {
        if vcpu != 0 {
            // A second thread: its parent ends the recording.
            return;
        }
        let own = recorder.own_counter();
        recorder.hot.counter = recorder.functions.counter(vcpu, own);
        if recorder.options.from_start {
            recorder.begin();
        }
    });
}

extern "C" fn on_translation(_: Id, tb: *mut Tb) {
    guarded(|recorder| unsafe {
        if recorder.hot.is_recording {
            recorder.instrument(tb);
        } else if !recorder.is_over {
            recorder.find_markers(tb);
        }
    });
}

/// The first marker, while nothing is recorded.
extern "C" fn on_first_marker(_: c_uint, _: *mut c_void) {
    guarded(|recorder| {
        if !recorder.is_over && recorder.began_at.is_none() {
            // Only code that is translated from now on calls back, so existing translations are
            // dropped.
            unsafe { qemu::qemu_plugin_reset(recorder.id, on_reset) };
        }
    });
}

extern "C" fn on_reset(id: Id) {
    guarded(|recorder| {
        unsafe { register(id) };
        recorder.begin();
    });
}

extern "C" fn on_exit(_: Id, _: *mut c_void) {
    guarded(|recorder| {
        recorder.end("exit");
        if let Some(output) = recorder.output.take() {
            output.join();
        }
    });
}

extern "C" fn on_call(_: Id, vcpu: c_uint, number: i64, a: u64, b: u64, c: u64, d: u64, _: u64, _: u64, _: u64, _: u64) {
    guarded(|recorder| {
        if vcpu == 0 && recorder.hot.is_recording {
            user::begins(recorder, number, [a, b, c, d]);
        }
    });
}

extern "C" fn on_call_end(_: Id, vcpu: c_uint, _: i64, result: i64) {
    guarded(|recorder| {
        if vcpu == 0 && recorder.hot.is_recording {
            user::ends(recorder, result);
        }
    });
}

extern "C" fn on_block(vcpu: c_uint, data: *mut c_void) {
    let Some(recorder) = recorder() else { return };
    let hot = &mut recorder.hot;
    if !hot.is_recording || vcpu != 0 {
        return;
    }
    let packed = data as u64;
    let begun = unsafe { *hot.counter };
    let executed = begun - hot.begun;
    let was_left = executed < u64::from(hot.length);
    if was_left {
        recorder.left(executed as usize, (packed >> 16) as u32);
    }
    if recorder.hot.watches {
        guarded(|recorder| user::entered(recorder, (packed >> 16) as u32, was_left));
    }
    let hot = &mut recorder.hot;
    hot.begun = begun;
    if begun >= hot.end_at {
        guarded(|recorder| recorder.end("limit"));
        return;
    }
    hot.block = (packed >> 16) as u32;
    hot.length = (packed & 0xffff) as u32;
    hot.touched_device = false;
    hot.words.push(u64::from(hot.block));
    if !hot.live.is_null() {
        let live = unsafe { &*hot.live };
        live.begun.store(begun, Ordering::Relaxed);
        live.block.store(packed, Ordering::Relaxed);
    }
    if hot.words.is_full() {
        guarded(Recorder::flush);
    }
}

extern "C" fn on_access(vcpu: c_uint, info: u32, address: u64, data: *mut c_void) {
    let Some(recorder) = recorder() else { return };
    let hot = &mut recorder.hot;
    if !hot.is_recording || vcpu != 0 {
        return;
    }
    let packed = data as u64;
    let mut instruction = (packed & ((1 << INDEX_BITS) - 1)) as u16;
    if (packed >> INDEX_BITS) as u32 != hot.block {
        let Some(index) = recorder.index_of((packed >> INDEX_BITS) as u32, instruction) else { return };
        instruction = index;
        recorder.hot.touched_device = true;
    }
    let hot = &mut recorder.hot;
    let kind = hot.kinds.of(info);
    hot.words.push(Event::Access(Access { address, store: kind.store, size_log2: kind.size_log2, instruction }).pack());
    if hot.words.is_full() {
        guarded(Recorder::flush);
    }
}

/// Linux switches tasks: it saves the stack pointer in one, and loads it from the other.
extern "C" fn on_switch(_: c_uint, _: u32, address: u64, data: *mut c_void) {
    guarded(|recorder| {
        if recorder.hot.is_recording {
            recorder.tasks.insert(address.wrapping_sub(data as u64));
        }
    });
}

/// A marker, while recording.
extern "C" fn on_marker(_: c_uint, data: *mut c_void) {
    guarded(|recorder| {
        if !recorder.hot.is_recording {
            return;
        }
        let value = data as usize as u32;
        recorder.note(Note::Marker(value));
        if value == recorder.options.last {
            recorder.end("marker");
        }
    });
}

impl Recorder {
    fn new(id: Id, options: Options, functions: Functions) -> Result<Recorder, PluginError> {
        let cannot = |cause| PluginError::Io(options.out.clone(), cause);
        let mut header = Facts::new();
        if let Some(path) = &options.header {
            let text = std::fs::read(path).map_err(|cause| PluginError::Io(path.clone(), cause))?;
            header = serde_json::from_slice(&text).map_err(|cause| PluginError::Header(path.clone(), cause))?;
        }
        header.insert("backend".into(), "vm".into());
        let (mut output, mut status, mut user) = (None, None, None);
        if let Some(descriptor) = options.shared {
            user = Some(User::new(Shared::map(descriptor)?));
        } else if options.count_only {
            status = Some(Status::create(&options.out).map_err(cannot)?);
        } else {
            output = Some(Output::start(&options.out, &header).map_err(cannot)?);
        }
        let hot = Hot {
            is_recording: false,
            words: user.as_ref().map_or_else(Words::own, |user| Words::shared(user.shared.ring)),
            counter: std::ptr::null(),
            begun: 0,
            block: NO_BLOCK,
            length: 0,
            touched_device: false,
            end_at: u64::MAX,
            kinds: Kinds(Box::new([0; KINDS])),
            watches: false,
            live: user.as_ref().map_or(std::ptr::null(), |user| std::ptr::from_ref(user.shared.ring.head())),
        };
        Ok(Recorder {
            hot,
            own_counter: 0,
            id,
            options,
            functions,
            output,
            status,
            user,
            new_blocks: Vec::new(),
            known: FxHashMap::default(),
            blocks: Vec::new(),
            tasks: BTreeSet::new(),
            began_at: None,
            began_cpu_ns: 0,
            begun_before: 0,
            is_over: false,
        })
    }

    /// Address of the instruction counter, if qemu has none of its own.
    fn own_counter(&mut self) -> *mut u64 {
        match &self.user {
            // Visible to another process after this one was killed.
            Some(user) => user.shared.ring.head().counter.as_ptr(),
            None => &raw mut self.own_counter,
        }
    }

    fn note(&mut self, note: Note) {
        self.hot.words.push(Event::Note(note).pack());
        if self.hot.words.is_full() {
            self.flush();
        }
    }

    /// Send a message.
    fn send(&mut self, message: &[u64]) {
        if !self.hot.words.has_room(message.len()) {
            self.flush();
        }
        message.iter().for_each(|&word| self.hot.words.push(word));
    }

    fn begin(&mut self) {
        let begun = unsafe { *self.hot.counter };
        self.hot.begun = begun;
        self.hot.end_at = begun.saturating_add(self.options.limit);
        self.begun_before = begun;
        self.began_at = Some(Instant::now());
        self.began_cpu_ns = cpu_ns();
        if !self.options.from_start {
            self.hot.words.push(Event::Note(Note::Marker(self.options.first)).pack());
        }
        self.hot.is_recording = true;
    }

    fn flush(&mut self) {
        if let Some(user) = &self.user {
            match user.shared.next() {
                Some(words) => self.hot.words = words,
                None => {
                    self.hot.is_recording = false;
                    self.is_over = true;
                }
            }
            return;
        }
        let words = std::mem::replace(&mut self.hot.words, Words::of(Vec::new())).into_vec();
        let Some(output) = &mut self.output else {
            self.hot.words = Words::own();
            return;
        };
        let blocks = std::mem::take(&mut self.new_blocks);
        self.hot.words = Words::of(output.send(blocks, words));
        if output.has_failed() {
            self.hot.is_recording = false;
            self.is_over = true;
        }
    }

    /// The recording is complete; the guest continues.
    fn end(&mut self, reason: &str) {
        if self.is_over {
            return;
        }
        if self.user.is_some() {
            return self.end_user(reason);
        }
        self.is_over = true;
        self.hot.is_recording = false;
        let took = self.began_at.map_or(0, |began| began.elapsed().as_nanos() as u64);
        let tasks: Vec<String> = self.tasks.iter().map(|address| format!("{address:#x}")).collect();
        let cpu = cpu_ns().saturating_sub(self.began_cpu_ns);
        let counted = if self.hot.counter.is_null() { 0 } else { (unsafe { *self.hot.counter }) - self.begun_before };
        self.flush();
        let waited = self.output.as_ref().map_or(0, |output| output.waited_ns);
        let facts = json!({ "reason": reason, "began": self.began_at.is_some(), "instructions": counted, "ns": took, "cpu_ns": cpu, "waited_ns": waited, "tasks": tasks });
        let facts = facts.as_object().cloned().unwrap_or_default();
        if let Some(output) = &mut self.output {
            output.end(facts);
        } else if let Some(status) = &mut self.status {
            status.put("done", &facts);
        }
    }

    /// The program under qemu-user has ended, or is no longer recorded.
    fn end_user(&mut self, reason: &str) {
        let executed = if self.hot.counter.is_null() { 0 } else { (unsafe { *self.hot.counter }) - self.hot.begun };
        if self.hot.is_recording && reason == "exit" && executed < u64::from(self.hot.length) {
            // A signal prevented the instruction that it was about to execute.
            self.note(Note::Left(executed.saturating_sub(1) as u16));
        }
        self.end_early(if reason == "limit" { Why::Limit } else { Why::Exit });
    }

    /// Stop recording.
    fn end_early(&mut self, why: Why) {
        self.is_over = true;
        self.hot.is_recording = false;
        if let Some(user) = &self.user {
            user.shared.end(why);
        }
    }

    /// The last block was left early, after this many instructions had been begun; `next` follows.
    #[cold]
    fn left(&mut self, begun: usize, next: u32) {
        let place_of_next = self.blocks.get(next as usize).map(|(address, _)| *address);
        let goes_on = place_of_next.is_some() && place_of_next == self.place_of(self.hot.block, begun);
        let done = if goes_on || self.hot.touched_device { begun } else { begun.saturating_sub(1) };
        self.hot.words.push(Event::Note(Note::Left(done as u16)).pack());
    }

    /// The address of an instruction.
    fn place_of(&self, block: u32, instruction: usize) -> Option<u64> {
        let (start, lengths) = self.blocks.get(block as usize)?;
        Some(start + lengths.iter().take(instruction).map(|&length| u64::from(length)).sum::<u64>())
    }

    /// The index in the last block of an instruction of another block.
    fn index_of(&self, block: u32, instruction: u16) -> Option<u16> {
        let at = self.place_of(block, usize::from(instruction))?;
        let (start, lengths) = self.blocks.get(self.hot.block as usize)?;
        let mut place = *start;
        for (index, &length) in lengths.iter().enumerate() {
            if place == at {
                return Some(index as u16);
            }
            place += u64::from(length);
        }
        None
    }

    unsafe fn find_markers(&self, tb: *mut Tb) {
        let mut code = Vec::with_capacity(16);
        for index in 0..unsafe { qemu::qemu_plugin_tb_n_insns(tb) } {
            let insn = unsafe { qemu::qemu_plugin_tb_get_insn(tb, index) };
            // Most instructions have another length.
            if unsafe { qemu::qemu_plugin_insn_size(insn) } != 7 {
                continue;
            }
            code.clear();
            unsafe { self.functions.code(insn, &mut code) };
            if marker_of(&code) == Some(self.options.first) && !self.options.from_start {
                unsafe { qemu::qemu_plugin_register_vcpu_insn_exec_cb(insn, on_first_marker, NO_REGS, std::ptr::null_mut()) };
            }
        }
    }

    unsafe fn instrument(&mut self, tb: *mut Tb) {
        let count = unsafe { qemu::qemu_plugin_tb_n_insns(tb) };
        let address = unsafe { qemu::qemu_plugin_tb_vaddr(tb) };
        let (mut code, mut lengths) = (Vec::with_capacity(count * 4), Vec::with_capacity(count));
        let insns: Vec<*mut Insn> = (0..count).map(|index| unsafe { qemu::qemu_plugin_tb_get_insn(tb, index) }).collect();
        let (mut markers, mut switches) = (Vec::new(), Vec::new());
        for &insn in &insns {
            let at = code.len();
            lengths.push(unsafe { self.functions.code(insn, &mut code) });
            if let Some(value) = marker_of(&code[at..]) {
                markers.push((insn, value));
            } else if let Some(offset) = switch_of(&code[at..])
                && address >> 63 != 0
            {
                switches.push((insn, offset));
            }
        }
        user::begin(self, address, &code);
        let own = self.own_counter();
        if self.options.count_only {
            // A block that is left early counts as a whole.
            insns.first().iter().for_each(|&&insn| unsafe { self.functions.count(insn, own, count as u64) });
        } else {
            insns.iter().for_each(|&insn| unsafe { self.functions.count(insn, own, 1) });
        }
        for (insn, offset) in switches {
            let data = offset as usize as *mut c_void;
            unsafe { qemu::qemu_plugin_register_vcpu_mem_cb(insn, on_switch, NO_REGS, READ_WRITE, data) };
        }
        for (insn, value) in markers {
            unsafe { qemu::qemu_plugin_register_vcpu_insn_exec_cb(insn, on_marker, NO_REGS, value as usize as *mut c_void) };
        }
        if self.options.count_only {
            return;
        }
        let id = self.define(Block { address, code: code.into(), lengths: lengths.into() });
        // Both in one word, so that a callback reads no memory for them.
        let data = (u64::from(id) << 16 | count as u64) as usize as *mut c_void;
        unsafe { qemu::qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, NO_REGS, data) };
        if self.options.control_flow {
            return;
        }
        for (index, &insn) in insns.iter().enumerate() {
            let data = (u64::from(id) << INDEX_BITS | index as u64) as usize as *mut c_void;
            unsafe { qemu::qemu_plugin_register_vcpu_mem_cb(insn, on_access, NO_REGS, READ_WRITE, data) };
        }
    }

    fn define(&mut self, block: Block) -> u32 {
        if let Some(&id) = self.known.get(&block) {
            return id;
        }
        let id = self.blocks.len() as u32;
        self.blocks.push((block.address, block.lengths.clone()));
        if let Some(user) = &mut self.user {
            let end = block.address.wrapping_add(block.code.len() as u64);
            let last = block.code.len() - block.lengths.last().map_or(0, |&length| usize::from(length));
            user.ways.push((end, Way::of(&block.code[last..], end)));
            self.send(&block_message(&block));
        } else {
            self.new_blocks.push(block.clone());
        }
        self.known.insert(block, id);
        id
    }
}

/// The value of a marker.
fn marker_of(code: &[u8]) -> Option<u32> {
    let displacement = code.strip_prefix(&[0x0f, 0x1f, 0x80])?;
    let displacement = u32::from_le_bytes(displacement.try_into().ok()?);
    (displacement & 0xffff_0000 == MARKER).then_some(displacement & 0xffff)
}

/// The offset of the stack pointer in a task, if the instruction is one of the two of
/// `__switch_to_asm` that access it: `mov %rsp,OFFSET(%rdi)` and `mov OFFSET(%rsi),%rsp`. No other
/// code of a kernel contains them.
fn switch_of(code: &[u8]) -> Option<u32> {
    let offset = code.strip_prefix(&[0x48, 0x89, 0xa7]).or_else(|| code.strip_prefix(&[0x48, 0x8b, 0xa6]))?;
    Some(u32::from_le_bytes(offset.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{marker_of, switch_of};

    #[test]
    fn a_change_of_tasks_is_seen() {
        assert_eq!(switch_of(&[0x48, 0x89, 0xa7, 0x18, 0x15, 0, 0]), Some(0x1518));
        assert_eq!(switch_of(&[0x48, 0x89, 0xa6, 0x18, 0x15, 0, 0]), None);
    }

    #[test]
    fn markers_are_distinguished_from_other_nops() {
        assert_eq!(marker_of(&[0x0f, 0x1f, 0x80, 7, 0, 0x0c, 0x5d]), Some(7));
        assert_eq!(marker_of(&[0x0f, 0x1f, 0x80, 0, 0, 0, 0]), None);
        assert_eq!(marker_of(&[0x0f, 0x1f, 0x40, 0]), None);
    }
}
