//! How often each instruction of users was executed, and of which source lines these are.

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
    /// By block: times that it was executed from its beginning to its end, each instruction once.
    whole: Vec<u64>,
    /// Others, by block and by how many of its instructions were executed: times, and steps in all of them.
    others: FxHashMap<(u32, u32), (u64, u64)>,
}

/// Counts blocks of one request.
#[derive(Default)]
pub(crate) struct ExecutionCounts {
    /// Few; the one that executes is found without hashing.
    by_process: Vec<(i32, Executions)>,
}

/// A line of a function, by number; the path of its source.
pub(crate) type Line = (u32, String, u32);

impl ExecutionCounts {
    /// A block was executed.
    #[inline]
    pub(crate) fn add(&mut self, at: &At, code: &Code, executed: u32, steps: Steps) {
        // Of the kernel, no lines are known.
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

    /// Steps of each line that is known; empties the counts.
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

/// Steps of the first `executed` instructions of a block, by their offsets. What is more or less than once each time is of the instruction that
/// repeats, or of the first one (which was counted before, where a fault interrupted it).
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
