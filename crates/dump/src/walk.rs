//! Walks along lists and trees of the kernel, which always end.

use rustc_hash::FxHashSet;

use crate::{error::Fault, format::u64_at, kernel::Kernel};

/// More entries than any list of a kernel has.
const MOST: usize = 8_000_000;

/// The entries of a list, and why the walk ended before the list did.
pub(crate) struct Walk {
    /// Addresses of the structures, in order.
    pub(crate) entries: Vec<u64>,
    pub(crate) fault: Option<Fault>,
}

/// Indexes with their entries, and why the walk ended before all were seen.
pub(crate) type Indexed = (Vec<(u64, u64)>, Option<Fault>);

impl Kernel {
    /// Along a `list_head` at `head` to structures that contain their own at `offset`.
    pub(crate) fn list(&self, head: u64, offset: u64) -> Walk {
        let mut entries = Vec::new();
        let fault = self.each_of_list(head, offset, |entry| entries.push(entry));
        Walk { entries, fault }
    }

    /// As [`Kernel::list`], but each structure is passed to `take` as soon as it is found. Returns
    /// why the walk ended before the list did.
    pub(crate) fn each_of_list(&self, head: u64, offset: u64, mut take: impl FnMut(u64)) -> Option<Fault> {
        let mut seen = FxHashSet::default();
        let mut at = head;
        loop {
            at = match self.memory.u64(at) {
                Ok(next) if next == head => return None,
                Ok(next) => next,
                Err(fault) => return Some(fault),
            };
            if !seen.insert(at) {
                return Some(Fault::Cycle);
            }
            if seen.len() > MOST {
                return Some(Fault::TooLong);
            }
            take(at.wrapping_sub(offset));
        }
    }

    /// From a structure to the one that its pointer at `offset` points to, and so on until a null
    /// pointer.
    pub(crate) fn chain(&self, start: u64, offset: u64) -> Walk {
        let mut walk = Walk { entries: Vec::new(), fault: None };
        let mut seen = FxHashSet::default();
        let mut at = start;
        while at != 0 && walk.fault.is_none() {
            if !seen.insert(at) {
                walk.fault = Some(Fault::Cycle);
                break;
            }
            walk.entries.push(at);
            match self.memory.u64(at.wrapping_add(offset)) {
                Ok(next) if seen.len() <= MOST => at = next,
                Ok(_) => walk.fault = Some(Fault::TooLong),
                Err(fault) => walk.fault = Some(fault),
            }
        }
        walk
    }

    /// Over a red-black tree (`rb_root`) at `root`, in order, to structures that contain their node
    /// at `offset`.
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

    /// The entries of an `xarray` at this address (or of a structure based on one:
    /// `radix_tree_root`, `idr`), each with its index. Entries that are numbers rather than
    /// pointers are left out.
    pub(crate) fn xarray(&self, xarray: u64) -> Result<Indexed, Fault> {
        let (head, shift, slots) =
            (self.field("xarray", "xa_head")?, self.field("xa_node", "shift")?, self.field("xa_node", "slots")?);
        let mut entries = Vec::new();
        let mut seen = FxHashSet::default();
        // The entry, its first index, and the distance between entries of the level [bits].
        let mut waiting = vec![(self.number(xarray, head)?, 0_u64, u32::MAX)];
        while let Some((entry, index, above)) = waiting.pop() {
            match entry & 3 {
                _ if entry == 0 => {}
                0 => entries.push((index, entry)),
                // An inner node; small numbers of this kind are marks of the xarray itself.
                2 if entry > 4096 => {
                    let node = entry - 2;
                    let shift = match self.number(node, shift) {
                        Ok(shift) if (shift as u32) < above.min(64) => shift as u32,
                        Ok(_) => return Ok((entries, Some(Fault::Damaged))),
                        Err(fault) => return Ok((entries, Some(fault))),
                    };
                    if !seen.insert(node) || seen.len() > MOST {
                        return Ok((entries, Some(Fault::Cycle)));
                    }
                    let found = match self.memory.bytes(node.wrapping_add(slots.offset), slots.size as u64) {
                        Ok(found) => found,
                        Err(fault) => return Ok((entries, Some(fault))),
                    };
                    let children = found.chunks_exact(8).map(|slot| u64_at(slot, 0)).enumerate();
                    let below = children.map(|(place, entry)| (entry, index.wrapping_add((place as u64) << shift), shift));
                    waiting.extend(below.rev());
                }
                _ => {}
            }
        }
        Ok((entries, None))
    }
}
