//! Walks along lists and trees of the kernel, which end also where those do not.

use rustc_hash::FxHashSet;

use crate::{error::Fault, kernel::Kernel};

/// More entries than any list of a kernel has.
const MOST: usize = 8_000_000;

/// The entries of a list, and why the walk ended before the list did.
pub(crate) struct Walk {
    /// Addresses of the structures, in order.
    pub(crate) entries: Vec<u64>,
    pub(crate) fault: Option<Fault>,
}

impl Kernel {
    /// Along a `list_head` at `head` to structures in which their own lies at `offset`.
    pub(crate) fn list(&self, head: u64, offset: u64) -> Walk {
        let mut walk = Walk { entries: Vec::new(), fault: None };
        let mut seen = FxHashSet::default();
        let mut at = head;
        loop {
            at = match self.memory.u64(at) {
                Ok(next) if next == head => return walk,
                Ok(next) => next,
                Err(fault) => {
                    walk.fault = Some(fault);
                    return walk;
                }
            };
            let fault = if !seen.insert(at) { Some(Fault::Cycle) } else { (seen.len() > MOST).then_some(Fault::TooLong) };
            if fault.is_some() {
                walk.fault = fault;
                return walk;
            }
            walk.entries.push(at.wrapping_sub(offset));
        }
    }

    /// Over a red-black tree (`rb_root`) at `root`, in order, to structures in which their node lies at `offset`.
    pub(crate) fn tree(&self, root: u64, offset: u64) -> Result<Walk, Fault> {
        let (left, right) = (self.field("rb_node", "rb_left")?, self.field("rb_node", "rb_right")?);
        let mut walk = Walk { entries: Vec::new(), fault: None };
        let mut seen = FxHashSet::default();
        let mut above = Vec::new();
        let mut at = self.memory.u64(root)?;
        // Down to the left, then the node itself, then down to the right of it.
        while walk.fault.is_none() && (at != 0 || !above.is_empty()) {
            let step = if at != 0 {
                above.push(at);
                if seen.insert(at) { self.number(at, left) } else { Err(Fault::Cycle) }
            } else {
                let node = above.pop().unwrap_or(0);
                walk.entries.push(node.wrapping_sub(offset));
                self.number(node, right)
            };
            match step {
                Ok(next) if seen.len() <= MOST => at = next,
                Ok(_) => walk.fault = Some(Fault::TooLong),
                Err(fault) => walk.fault = Some(fault),
            }
        }
        Ok(walk)
    }
}
