//! Writes the events of a program under qemu-user, which the plugin passes through shared memory
//! (`crates/itrace-plugin/src/user.rs`).
//!
//! The program may write to that memory, too: nothing in it is trusted.

use std::{
    collections::BTreeSet,
    fs::File,
    io,
    os::{
        fd::{AsRawFd, RawFd},
        unix::process::ExitStatusExt,
    },
    process::{Child, ExitStatus},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use memmap2::MmapMut;
use rustix::fs::{MemfdFlags, memfd_create};
use sysdock_itrace_file::{
    Block, Event, Note, Writer,
    ring::{Piece, RING_BYTES, Ring, Why, next_piece},
};

use crate::{Mapping, TaskFact};

/// Interval between checks for new events: short compared with the time in which the memory is
/// filled.
const PAUSE: Duration = Duration::from_millis(1);
/// How long a program may take to end after a signal.
const PATIENCE: Duration = Duration::from_secs(2);
/// SIGILL, SIGBUS, SIGFPE, SIGSEGV: signals of an instruction that could not be executed.
const FAULTS: [i32; 4] = [libc::SIGILL, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV];
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Memory that a program inherits when it starts.
pub struct SharedMemory {
    file: File,
    map: MmapMut,
}

impl SharedMemory {
    /// Allocate memory. Programs that are started inherit its descriptor.
    ///
    /// # Errors
    /// The operating system has none.
    pub fn create() -> io::Result<SharedMemory> {
        let file = File::from(memfd_create("sysdock-itrace", MemfdFlags::empty())?);
        file.set_len(RING_BYTES as u64)?;
        // SAFETY: only the program could truncate the file. It is not trusted, but the plugin
        // closes the descriptor before the program's first instruction.
        let map = unsafe { MmapMut::map_mut(&file)? };
        Ok(SharedMemory { file, map })
    }

    /// The descriptor for the program.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

/// Facts about a program that has ended.
#[derive(Debug)]
pub struct Emulated {
    /// Exit status.
    pub status: ExitStatus,
    /// The mappings in which code was executed.
    pub mappings: Vec<Mapping>,
    /// Its only task.
    pub tasks: Vec<TaskFact>,
    /// Why its recording ended earlier; `Exit` or `None`: it did not.
    pub why: Option<Why>,
    /// Number of child processes, which are not recorded.
    pub children: u32,
    /// Whether it executed another program.
    pub executed: bool,
    /// Whether it was ended on request.
    pub cancelled: bool,
    /// Number of instructions in the blocks that were entered.
    pub steps: u64,
}

/// Why the rest of a program is not recorded.
#[derive(Debug)]
pub enum Failure {
    /// The program has overwritten its events.
    Overwritten,
    /// The event file cannot be written.
    Write(io::Error),
}

struct Known {
    address: u64,
    instructions: u32,
    ends_in_call: bool,
}

/// Takes events and writes them.
pub struct Collector {
    memory: SharedMemory,
    writer: Writer,
    /// The first error; all later events are dropped, so that the program can continue.
    failure: Option<Failure>,
    pid: i32,
    blocks: Vec<Known>,
    last: Option<u32>,
    mappings: Vec<Mapping>,
    events: u64,
    steps: u64,
    words: Vec<u64>,
}

impl Collector {
    /// `pid`: id of the program.
    #[must_use]
    pub fn new(memory: SharedMemory, writer: Writer, pid: i32) -> Collector {
        let mut collector = Collector {
            memory,
            writer,
            failure: None,
            pid,
            blocks: Vec::new(),
            last: None,
            mappings: Vec::new(),
            events: 0,
            steps: 0,
            words: Vec::new(),
        };
        collector.write(&[Event::Note(Note::Task(0)).pack()]);
        collector
    }

    /// Collect until the program ends. When `cancel` is set, it gets SIGTERM, and SIGKILL later. An
    /// error of the event file is returned alongside the facts.
    ///
    /// # Errors
    /// The program cannot be waited for.
    pub fn run(
        mut self,
        mut child: Child,
        comm: &str,
        cancel: &AtomicBool,
        mut report: impl FnMut(u64),
    ) -> io::Result<(Emulated, Option<Failure>)> {
        let mut end_requested: Option<Instant> = None;
        let status = loop {
            // Checked before taking events: otherwise later ones would be lost.
            let status = child.try_wait()?;
            let mut found = false;
            while self.take(status.is_some()) {
                found = true;
                report(self.steps);
            }
            if let Some(status) = status {
                break status;
            }
            if cancel.load(Ordering::Relaxed) {
                self.request_end(&mut end_requested);
            }
            if !found {
                thread::sleep(PAUSE);
            }
        };
        let cancelled = end_requested.is_some() || cancel.load(Ordering::Relaxed);
        self.end(status);
        let ring = self.ring();
        let head = ring.head();
        let emulated = Emulated {
            status,
            why: Why::of(head.ended.load(Ordering::Acquire)),
            children: head.children.load(Ordering::Relaxed),
            executed: head.executes.load(Ordering::Relaxed) != 0,
            cancelled,
            steps: self.steps,
            tasks: vec![TaskFact { id: Some(0), pid: self.pid, tgid: self.pid, comm: comm.into(), ..TaskFact::default() }],
            mappings: self.used_mappings(),
        };
        let failure = self.failure.take();
        let failure = failure.or_else(|| self.writer.finish().err().map(Failure::Write));
        Ok((emulated, failure))
    }

    fn ring(&self) -> Ring {
        // SAFETY: valid as long as the map, which lives as long as `self`.
        unsafe { Ring::at(self.memory.map.as_ptr().cast_mut()) }
    }

    fn request_end(&self, end_requested: &mut Option<Instant>) {
        let signal = match end_requested {
            None => libc::SIGTERM,
            Some(since) if since.elapsed() > PATIENCE => libc::SIGKILL,
            Some(_) => return,
        };
        *end_requested = Some(Instant::now());
        // SAFETY: the id of a child that was not waited for yet.
        unsafe { libc::kill(self.pid, signal) };
    }

    /// Take one slot. `partial`: also one that was being filled when the program ended.
    fn take(&mut self, partial: bool) -> bool {
        let mut words = std::mem::take(&mut self.words);
        words.clear();
        let found = self.ring().take(partial, &mut words);
        let mut rest = words.as_slice();
        while !rest.is_empty() && self.failure.is_none() {
            let Some((piece, count)) = next_piece(rest) else {
                self.found_overwritten();
                break;
            };
            match piece {
                Piece::Events(count) => self.take_events(rest.get(..count).unwrap_or_default()),
                Piece::Block(block) => self.define(&block),
                Piece::Maps(text) => self.map(&text),
            }
            rest = rest.get(count..).unwrap_or_default();
        }
        self.words = words;
        found
    }

    fn found_overwritten(&mut self) {
        self.failure = Some(Failure::Overwritten);
    }

    fn take_events(&mut self, words: &[u64]) {
        for &word in words {
            match Event::unpack(word) {
                Some(Event::Block(number)) => {
                    let Some(block) = self.blocks.get(number as usize) else { return self.found_overwritten() };
                    self.last = Some(number);
                    self.steps += u64::from(block.instructions);
                }
                Some(Event::Access(_) | Event::Note(_)) => {}
                None => return self.found_overwritten(),
            }
        }
        self.write(words);
    }

    fn write(&mut self, words: &[u64]) {
        self.events += words.len() as u64;
        if self.failure.is_none()
            && let Err(error) = self.writer.push(words)
        {
            self.failure = Some(Failure::Write(error));
        }
    }

    fn define(&mut self, block: &Block) {
        self.writer.define(block);
        self.blocks.push(Known {
            address: block.address,
            instructions: block.lengths.len() as u32,
            ends_in_call: block.code.ends_with(&SYSCALL),
        });
    }

    fn map(&mut self, text: &str) {
        for mapping in Mapping::parse(text, self.pid, self.events) {
            if !self.mappings.iter().rev().any(|known| known.same_place(&mapping)) {
                self.mappings.push(mapping);
            }
        }
    }

    /// The mappings of the program: qemu's own files are in the same address space.
    fn used_mappings(&mut self) -> Vec<Mapping> {
        let addresses: BTreeSet<u64> = self.blocks.iter().map(|block| block.address).collect();
        let mut mappings = std::mem::take(&mut self.mappings);
        mappings.retain(|mapping| mapping.start < mapping.end && addresses.range(mapping.start..mapping.end).next().is_some());
        mappings
    }

    /// The program has ended. A signal that ended it came before an instruction, or in the middle
    /// of a block.
    fn end(&mut self, status: ExitStatus) {
        let ring = self.ring();
        let head = ring.head();
        let why = Why::of(head.ended.load(Ordering::Acquire));
        let Some(signal) = status.signal().filter(|_| why.is_none_or(|why| why == Why::Exit)) else { return };
        if why.is_none()
            && let Some(count) = self.left(head.block.load(Ordering::Relaxed), signal)
        {
            self.write(&[Event::Note(Note::Left(count)).pack()]);
        }
        self.write(&[Event::Note(Note::Signal(signal.cast_unsigned())).pack()]);
    }

    /// The number of instructions after which the last block was left, if it was left early.
    fn left(&self, shown: u64, signal: i32) -> Option<u16> {
        let last = self.last.filter(|last| u64::from(*last) == shown >> 16)?;
        let block = self.blocks.get(last as usize)?;
        let ring = self.ring();
        let head = ring.head();
        let begun = head.counter.load(Ordering::Relaxed).checked_sub(head.begun.load(Ordering::Relaxed))?;
        if begun < u64::from(block.instructions) {
            return Some(begun.saturating_sub(1) as u16);
        }
        let is_fault = FAULTS.contains(&signal) && !block.ends_in_call;
        is_fault.then(|| block.instructions.saturating_sub(1) as u16)
    }
}
