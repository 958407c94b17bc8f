//! Converts what threads have executed to events.

use std::{fs, io};

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction};
use libc::user_regs_struct;
use rustc_hash::FxHashMap;
use sysdock_itrace_file::{Access, Block, Event, Note, Writer};

use super::{
    operands::{Operands, has_repeat},
    tracee::Tracee,
};
use crate::{Mapping, TaskFact};

/// Longest instruction [B].
const LONGEST: usize = 15;
/// Limit for the instructions of a block: an access names its instruction by 9 bits.
const MOST: usize = 256;
/// System calls that change mappings: mmap, mprotect, munmap, mremap, execve, execveat, shmat,
/// shmdt, pkey_mprotect.
const MAPPING_CALLS: [u64; 9] = [9, 10, 11, 25, 59, 322, 30, 67, 329];

/// Result of recording.
#[derive(Debug)]
pub struct Stepped {
    /// Threads that executed instructions.
    pub tasks: Vec<TaskFact>,
    /// Mappings of their processes.
    pub mappings: Vec<Mapping>,
    /// Number of operands whose addresses are unknown.
    pub unread: u64,
}

/// Instructions that a thread has executed since its last block ended, and the next one.
#[derive(Default)]
struct Thread {
    start: u64,
    code: Vec<u8>,
    lengths: Vec<u8>,
    accesses: Vec<u64>,
    next: Option<Next>,
    /// Whether its mappings must be read before its next instruction.
    remapped: bool,
    task: Option<u32>,
}

struct Next {
    instruction: Instruction,
    bytes: [u8; LONGEST],
    accesses: Vec<Access>,
    number_of_call: u64,
}

impl Next {
    /// The bytes of the instruction.
    fn code(&self) -> &[u8] {
        self.bytes.get(..self.instruction.len()).unwrap_or(&self.bytes)
    }
}

pub(super) struct Recorder {
    writer: Writer,
    blocks: FxHashMap<(u64, Box<[u8]>), u32>,
    decoded: FxHashMap<(u64, [u8; LONGEST]), Instruction>,
    threads: FxHashMap<i32, Thread>,
    tasks: Vec<TaskFact>,
    mappings: Vec<Mapping>,
    operands: Operands,
    /// The task of the last events.
    current: Option<u32>,
    steps: u64,
    events: u64,
    words: Vec<u64>,
}

impl Recorder {
    pub(super) fn new(writer: Writer) -> Recorder {
        Recorder {
            writer,
            blocks: FxHashMap::default(),
            decoded: FxHashMap::default(),
            threads: FxHashMap::default(),
            tasks: Vec::new(),
            mappings: Vec::new(),
            operands: Operands::new(),
            current: None,
            steps: 0,
            events: 0,
            words: Vec::new(),
        }
    }

    /// Number of instructions so far.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// The next instruction has been executed.
    pub(super) fn completed(&mut self, tracee: &Tracee, registers: &user_regs_struct) -> io::Result<()> {
        let thread = self.threads.entry(tracee.tid).or_default();
        let Some(next) = thread.next.take() else { return Ok(()) };
        let instruction = &next.instruction;
        self.steps += 1;
        if thread.lengths.is_empty() {
            thread.start = instruction.ip();
        }
        let index = thread.lengths.len() as u16;
        thread.accesses.extend(next.accesses.iter().map(|access| Event::Access(Access { instruction: index, ..*access }).pack()));
        thread.code.extend_from_slice(next.code());
        thread.lengths.push(instruction.len() as u8);
        let is_call = matches!(instruction.code(), Code::Syscall | Code::Sysenter) || instruction.code() == Code::Int_imm8;
        let ends = instruction.flow_control() != FlowControl::Next
            || registers.rip != instruction.next_ip()
            || has_repeat(instruction)
            || is_call
            || thread.lengths.len() >= MOST;
        if ends {
            self.end_block(tracee)?;
        }
        if is_call {
            let thread = self.threads.entry(tracee.tid).or_default();
            thread.remapped |= MAPPING_CALLS.contains(&next.number_of_call);
            self.note(Note::Untraced(next.number_of_call as u32));
        }
        Ok(())
    }

    /// The thread is about to execute an instruction.
    pub(super) fn next(&mut self, tracee: &Tracee, registers: &user_regs_struct) {
        self.task_of(tracee);
        let mut bytes = [0; LONGEST];
        let read = tracee.read(registers.rip, &mut bytes);
        let instruction = *self.decoded.entry((registers.rip, bytes)).or_insert_with(|| {
            Decoder::with_ip(64, bytes.get(..read).unwrap_or(&bytes), registers.rip, DecoderOptions::NONE).decode()
        });
        let mut accesses = Vec::new();
        self.operands.each(&instruction, registers, |access| accesses.push(access));
        let thread = self.threads.entry(tracee.tid).or_default();
        // An invalid instruction, and one that cannot be read, will fault.
        thread.next = (!instruction.is_invalid()).then_some(Next { instruction, bytes, accesses, number_of_call: registers.rax });
    }

    /// A signal comes instead of, or after, the next instruction.
    pub(super) fn signalled(&mut self, tracee: &Tracee, registers: &user_regs_struct, signal: i32) -> io::Result<()> {
        let stays = self
            .threads
            .get(&tracee.tid)
            .and_then(|thread| thread.next.as_ref())
            .is_some_and(|next| next.instruction.ip() == registers.rip);
        if stays {
            self.threads.entry(tracee.tid).or_default().next = None;
        } else {
            self.completed(tracee, registers)?;
        }
        self.end_block(tracee)?;
        self.note(Note::Signal(signal as u32));
        Ok(())
    }

    /// The thread runs another program.
    pub(super) fn executed(&mut self, tracee: &Tracee) {
        let thread = self.threads.entry(tracee.tid).or_default();
        thread.remapped = true;
        // It becomes a task with another name.
        thread.task = None;
    }

    /// The thread has ended, by the instruction that it was about to execute.
    pub(super) fn ended(&mut self, tid: i32) {
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        if let Some(next) = thread.next.take() {
            // `exit` was executed, but never returned.
            if next.instruction.code() == Code::Syscall {
                self.steps += 1;
                thread.code.extend_from_slice(next.code());
                if thread.lengths.is_empty() {
                    thread.start = next.instruction.ip();
                }
                thread.lengths.push(next.instruction.len() as u8);
                self.last_of(thread, Some(next.number_of_call));
                return;
            }
        }
        self.last_of(thread, None);
    }

    fn last_of(&mut self, mut thread: Thread, number_of_call: Option<u64>) {
        // A write error is reported by the next write, or by `finish`.
        let _ = self.put_block(&mut thread);
        if let Some(number) = number_of_call {
            self.note(Note::Untraced(number as u32));
        }
    }

    /// Return the result, and the error if the event file is not complete.
    pub(super) fn finish(mut self) -> (Stepped, Option<io::Error>) {
        let rest = std::mem::take(&mut self.threads);
        let written = rest.into_values().try_for_each(|mut thread| self.put_block(&mut thread)).and_then(|()| self.flush());
        let failure = written.and_then(|()| self.writer.finish().map(|_| ())).err();
        (Stepped { tasks: self.tasks, mappings: self.mappings, unread: self.operands.unread }, failure)
    }

    /// Ensure that the task and its mappings are known.
    fn task_of(&mut self, tracee: &Tracee) {
        let thread = self.threads.entry(tracee.tid).or_default();
        if thread.task.is_none() {
            let comm = fs::read_to_string(format!("/proc/{}/comm", tracee.tid)).unwrap_or_default();
            let known = self.tasks.iter().any(|task| task.tgid == tracee.tgid);
            thread.task = Some(self.tasks.len() as u32);
            thread.remapped |= !known;
            self.tasks.push(TaskFact {
                id: Some(self.tasks.len() as u32),
                address: None,
                pid: tracee.tid,
                tgid: tracee.tgid,
                comm: comm.trim_end().into(),
                maps: None,
            });
        }
        if thread.remapped {
            thread.remapped = false;
            let maps = fs::read_to_string(format!("/proc/{}/maps", tracee.tid)).unwrap_or_default();
            let found = Mapping::parse(&maps, tracee.tgid, self.events + self.words.len() as u64);
            for mapping in found {
                let is_known = self.mappings.iter().rev().any(|known| known.same_place(&mapping));
                if !is_known {
                    self.mappings.push(mapping);
                }
            }
        }
    }

    fn end_block(&mut self, tracee: &Tracee) -> io::Result<()> {
        let Some(mut thread) = self.threads.remove(&tracee.tid) else { return Ok(()) };
        let done = self.put_block(&mut thread);
        self.threads.insert(tracee.tid, thread);
        done
    }

    fn put_block(&mut self, thread: &mut Thread) -> io::Result<()> {
        if thread.lengths.is_empty() {
            return Ok(());
        }
        if self.current != thread.task {
            self.current = thread.task;
            self.words.extend(thread.task.map(|task| Event::Note(Note::Task(task)).pack()));
        }
        let key = (thread.start, thread.code.as_slice().into());
        let id = *self.blocks.entry(key).or_insert_with(|| {
            self.writer.define(&Block {
                address: thread.start,
                code: thread.code.as_slice().into(),
                lengths: thread.lengths.as_slice().into(),
            })
        });
        self.words.push(Event::Block(id).pack());
        self.words.append(&mut thread.accesses);
        thread.code.clear();
        thread.lengths.clear();
        if self.words.len() >= 4096 { self.flush() } else { Ok(()) }
    }

    fn note(&mut self, note: Note) {
        self.words.push(Event::Note(note).pack());
    }

    fn flush(&mut self) -> io::Result<()> {
        self.events += self.words.len() as u64;
        self.writer.push(&self.words)?;
        self.words.clear();
        Ok(())
    }
}
