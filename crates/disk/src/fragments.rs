//! Counts the fragments of a file.

use crate::extent::{Extent, flag};

/// Counts fragments by the rule of `filefrag` (e2fsprogs 1.47, `filefrag_fiemap`): an extent
/// continues the previous one if it begins where that ended, or as far from it on the device as in
/// the file.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    count: u32,
    last: Option<Extent>,
}

impl Fragments {
    pub(crate) fn add(&mut self, extent: &Extent) {
        let goes_on = self.last.is_some_and(|last| {
            let in_file = last.physical.wrapping_add(extent.logical.wrapping_sub(last.logical));
            let is_after = extent.physical == last.physical.wrapping_add(last.length);
            let has_place = (extent.flags | last.flags) & flag::NOWHERE == 0;
            has_place && last.device == extent.device && (extent.physical == in_file || is_after)
        });
        if !goes_on {
            self.count = self.count.saturating_add(1);
        }
        self.last = Some(*extent);
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }
}

/// Counts fragments as `e2fsck` does: two consecutive extents count as one fragment if only the
/// file's own metadata is between them.
pub(crate) struct Forgiving;

impl Forgiving {
    /// `is_own` tells whether a range of the device, given by its ends, contains nothing but
    /// metadata of the file.
    pub(crate) fn count(extents: &[Extent], is_own: impl Fn(u64, u64) -> bool) -> u32 {
        let mut fragments = Fragments::default();
        let mut forgiven = 0;
        for extent in extents {
            let (before, last) = (fragments.count, fragments.last);
            fragments.add(extent);
            let is_joined = before > 0
                && fragments.count > before
                && last.is_some_and(|last| is_own(last.physical.saturating_add(last.length), extent.physical));
            forgiven += u32::from(is_joined);
        }
        fragments.count - forgiven
    }
}
