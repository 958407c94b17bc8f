//! Single instructions: disassembled, with the executing task, the function, and the accessed
//! memory.

use std::path::Path;

use iced_x86::{Formatter, IntelFormatter};
use sysdock_itrace_file::Access;

use crate::{
    code::{Code, Instructions},
    convert::{ItraceError, Trace},
    following::{At, Follower, Frame, Sink, Steps, Transition},
    images::Images,
};

/// Selection of instructions; a condition that is `None` always holds.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// From this step on.
    pub first_step: u64,
    /// Up to, but not including, this step.
    pub end_step: Option<u64>,
    /// Only of this thread: its id or its name.
    pub task: Option<String>,
    /// `user`, `library` or `kernel`.
    pub mode: Option<String>,
    /// Only of files whose path contains this.
    pub image: Option<String>,
    /// Only of this function.
    pub function: Option<String>,
    /// At, or with access to, an address from the first one up to, but not including, the second
    /// one.
    pub addresses: Option<(u64, u64)>,
}

/// An executed instruction.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Executed<'a> {
    /// Number of its step, the first one of its iterations.
    pub step: u64,
    /// Id of the thread, if known.
    pub pid: Option<i32>,
    /// Name of the thread.
    pub task: Option<&'a str>,
    /// `user`, `library` or `kernel`.
    pub mode: &'static str,
    /// The file.
    pub image: &'a str,
    /// The function.
    pub function: &'a str,
    /// Address of the instruction.
    pub address: u64,
    /// Disassembled in Intel syntax.
    pub instruction: &'a str,
    /// Addresses that it read.
    pub loads: &'a [u64],
    /// Addresses that it wrote.
    pub stores: &'a [u64],
}

/// Call `take` with each selected instruction, in order, until it returns false. Damaged sections
/// are left out; returns their number.
///
/// # Errors
/// [`ItraceError`].
pub fn each_instruction(folder: &Path, chosen: &Chosen, take: &mut dyn FnMut(&Executed<'_>) -> bool) -> Result<u64, ItraceError> {
    let trace = Trace::open(folder, None)?;
    let codes = trace.codes();
    let images = Images::new(&trace.facts, folder);
    let mut follower = Follower::new(&trace.reader.blocks, &codes, images, &trace.facts);
    let mut steps = Blocks::default();
    let mut text = Text { formatter: IntelFormatter::new(), line: String::new(), loads: Vec::new(), stores: Vec::new() };
    let mut ended = false;
    let (damaged, _) = trace.sections(|words| {
        for &word in words {
            follower.take(word, &mut steps);
            for done in std::mem::take(&mut steps.done) {
                let is_after = chosen.end_step.is_some_and(|end| done.at.step >= end);
                if is_after || !text.show(&trace, &follower, chosen, &done, take) {
                    ended = true;
                    return false;
                }
            }
        }
        true
    });
    if !ended {
        follower.finish(&mut steps);
        let _ = steps.done.iter().all(|done| text.show(&trace, &follower, chosen, done, take));
    }
    Ok(damaged)
}

/// An executed block.
struct Done {
    at: At,
    executed: u32,
    accesses: Vec<Access>,
}

/// Collects executed blocks.
#[derive(Default)]
struct Blocks {
    accesses: Vec<Access>,
    done: Vec<Done>,
}

impl Sink for Blocks {
    fn block(&mut self, at: At, _: &Code, executed: u32, _: Steps) {
        self.done.push(Done { at, executed, accesses: std::mem::take(&mut self.accesses) });
    }

    fn access(&mut self, _: At, access: &Access) {
        self.accesses.push(*access);
    }

    fn transition(&mut self, _: u32, _: u64, _: u32, _: u32, _: Transition, _: u32) {}
    fn ended(&mut self, _: u32, _: &Frame, _: u32, _: bool) {}
    fn switched(&mut self, _: u32, _: u32, _: u64) {}
    fn untraced(&mut self, _: u32, _: u64, _: u32) {}
    fn signal(&mut self, _: u32, _: u64, _: u32) {}
    fn is_cut(&self, _: u32) -> bool {
        false
    }
    fn marker(&mut self, _: u32) {}
}

/// Buffers that are reused for each line.
struct Text {
    formatter: IntelFormatter,
    line: String,
    loads: Vec<u64>,
    stores: Vec<u64>,
}

impl Text {
    /// Returns false if no more are wanted.
    fn show(
        &mut self,
        trace: &Trace,
        follower: &Follower<'_>,
        chosen: &Chosen,
        done: &Done,
        take: &mut dyn FnMut(&Executed<'_>) -> bool,
    ) -> bool {
        let images = &follower.images;
        let fact = follower.tasks[done.at.task as usize].fact.map(|fact| &trace.facts.tasks[fact]);
        let function = images.functions[done.at.function as usize].name.as_str();
        let image = images.images[done.at.image as usize].path.as_str();
        let (pid, task) = (fact.map(|fact| fact.pid), fact.map(|fact| fact.comm.as_str()));
        let same = |wanted: &Option<String>, found: Option<&str>| wanted.as_deref().is_none_or(|wanted| found == Some(wanted));
        let number = pid.map(|pid| pid.to_string());
        let of_task = same(&chosen.task, task) || same(&chosen.task, number.as_deref());
        let of_image = chosen.image.as_ref().is_none_or(|part| image.contains(part.as_str()));
        if !of_task || !of_image || !same(&chosen.function, Some(function)) || !same(&chosen.mode, Some(done.at.mode.name())) {
            return true;
        }
        let block = &trace.reader.blocks[done.at.block as usize];
        // Iterations belong to the last instruction.
        let steps = done.at.step..;
        for (step, (index, instruction)) in steps.zip(Instructions::of(block).take(done.executed as usize).enumerate()) {
            let of_this = |store: bool| {
                let mine = move |access: &&Access| access.store == store && usize::from(access.instruction) == index;
                done.accesses.iter().filter(mine).map(|access| access.address)
            };
            self.loads.clear();
            self.loads.extend(of_this(false));
            self.stores.clear();
            self.stores.extend(of_this(true));
            let is_wanted = step >= chosen.first_step
                && chosen.end_step.is_none_or(|end| step < end)
                && chosen.addresses.is_none_or(|(first, end)| {
                    let within = |address: &u64| (first..end).contains(address);
                    within(&instruction.ip()) || self.loads.iter().chain(&self.stores).any(within)
                });
            if is_wanted {
                self.line.clear();
                self.formatter.format(&instruction, &mut self.line);
                let executed = Executed {
                    step,
                    pid,
                    task,
                    mode: done.at.mode.name(),
                    image,
                    function,
                    address: instruction.ip(),
                    instruction: &self.line,
                    loads: &self.loads,
                    stores: &self.stores,
                };
                if !take(&executed) {
                    return false;
                }
            }
        }
        true
    }
}
