//! Counts executions of user instructions, and adds them up by source line.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use sysdock_itrace_file::Block;

use crate::{
    code::Code,
    following::{At, Follower, Steps},
    images::Mode,
};

/// Executions of the blocks of a process.
#[derive(Default)]
struct Executions {
    /// By block: number of executions from its beginning to its end, each instruction once.
    whole: Vec<u64>,
    /// Other executions, by block and number of executed instructions: how many, and their total
    /// steps.
    others: FxHashMap<(u32, u32), (u64, u64)>,
}

/// Executions of blocks in one request.
#[derive(Default)]
pub(crate) struct ExecutionCounts {
    /// Few processes; the current one is found without hashing.
    by_process: Vec<(i32, Executions)>,
}

/// Function (by number), path of the source, and line.
pub(crate) type Line = (u32, String, u32);

impl ExecutionCounts {
    /// Count an execution of a block.
    #[inline]
    pub(crate) fn add(&mut self, at: &At, code: &Code, executed: u32, steps: Steps) {
        // Lines of the kernel are unknown.
        if at.mode == Mode::Kernel {
            return;
        }
        let place = self.by_process.iter().position(|(process, _)| *process == at.process).unwrap_or_else(|| {
            self.by_process.push((at.process, Executions::default()));
            self.by_process.len() - 1
        });
        let process = &mut self.by_process[place].1;
        if executed == code.count && steps.single == u64::from(executed) {
            if process.whole.len() <= at.block as usize {
                process.whole.resize(at.block as usize + 1, 0);
            }
            process.whole[at.block as usize] += 1;
        } else {
            let known = process.others.entry((at.block, executed)).or_default();
            *known = (known.0 + 1, known.1 + steps.single);
        }
    }

    /// The steps of each known line. The counts are empty afterwards.
    pub(crate) fn take_lines(&mut self, follower: &Follower<'_>) -> BTreeMap<Line, u64> {
        let mut lines = BTreeMap::new();
        for (process, executions) in std::mem::take(&mut self.by_process) {
            let whole = executions.whole.iter().enumerate().filter(|(_, times)| **times > 0);
            let whole = whole.map(|(block, &times)| {
                let block = block as u32;
                let count = follower.blocks[block as usize].lengths.len() as u32;
                (block, count, times, times * u64::from(count))
            });
            let others = executions.others.iter().map(|(&(block, executed), &(times, steps))| (block, executed, times, steps));
            for (block, executed, times, steps) in whole.chain(others) {
                let Some(function) = follower.function_of(process, block) else { continue };
                for (offset, steps) in
                    steps_of(&follower.blocks[block as usize], follower.repeated(block), executed, times, steps)
                {
                    if let Some((path, line)) = follower.images.line(process, block, offset) {
                        *lines.entry((function, path.to_owned(), line)).or_default() += steps;
                    }
                }
            }
        }
        lines
    }
}

/// Steps of the first `executed` instructions of a block, by their offsets. A surplus or deficit
/// relative to one step each time belongs to the instruction that repeats, or to the first one
/// (which was counted before, if a fault interrupted it).
fn steps_of(block: &Block, repeated: Option<u16>, executed: u32, times: u64, steps: u64) -> Vec<(u64, u64)> {
    let mut found = Vec::with_capacity(executed as usize);
    let mut offset = 0;
    for &length in block.lengths.iter().take(executed as usize) {
        found.push((offset, times));
        offset += u64::from(length);
    }
    let odd = repeated.map(usize::from).filter(|index| *index < found.len()).unwrap_or(0);
    let plain = times * found.len() as u64;
    if let Some((_, own)) = found.get_mut(odd) {
        *own = (*own + steps).saturating_sub(plain);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_those_of_instructions() {
        let block = Block { address: 0x1000, lengths: vec![1, 2, 3].into(), code: vec![0; 6].into() };
        assert_eq!(steps_of(&block, None, 3, 5, 15), [(0, 5), (1, 5), (3, 5)]);
        assert_eq!(steps_of(&block, None, 2, 1, 2), [(0, 1), (1, 1)]);
        assert_eq!(steps_of(&block, Some(1), 3, 1, 12), [(0, 1), (1, 10), (3, 1)], "a string instruction repeats");
        assert_eq!(steps_of(&block, None, 3, 1, 2), [(0, 0), (1, 1), (3, 1)], "the first one was counted before");
        assert_eq!(steps_of(&block, None, 0, 4, 0), []);
    }
}
