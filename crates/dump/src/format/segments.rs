//! Segments of physical memory, and their locations in a file or process.

use super::PAGE;

/// A segment of physical memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) length: u64,
    /// Offset of its content.
    pub(crate) offset: u64,
}

/// Segments in order, without overlaps.
#[derive(Clone, Debug)]
pub(crate) struct Segments(Vec<Segment>);

impl Segments {
    /// Sort segments. Those that overlap an earlier one are returned separately.
    pub(crate) fn of(mut segments: Vec<Segment>) -> (Segments, Vec<Segment>) {
        segments.sort_by_key(|segment| segment.start);
        let (mut found, mut twice) = (Vec::<Segment>::new(), Vec::new());
        for segment in segments.into_iter().filter(|segment| segment.length > 0) {
            let is_after = found.last().is_none_or(|last| last.start + last.length <= segment.start);
            let fits = segment.start.checked_add(segment.length).is_some();
            if is_after && fits { found.push(segment) } else { twice.push(segment) }
        }
        (Segments(found), twice)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Offset of `length` bytes at a physical address; `None`: not all of them are in one segment.
    pub(crate) fn place(&self, address: u64, length: u64) -> Option<u64> {
        let segment = self.with(address)?;
        let inside = address - segment.start;
        (segment.length - inside >= length).then(|| segment.offset + inside)
    }

    fn with(&self, address: u64) -> Option<&Segment> {
        let next = self.0.partition_point(|segment| segment.start <= address);
        self.0.get(..next)?.last().filter(|segment| address - segment.start < segment.length)
    }

    pub(crate) fn pages(&self) -> u64 {
        self.0.iter().map(|segment| segment.length / PAGE).sum()
    }

    /// The address of the next page, from this address on.
    pub(crate) fn next_page(&self, address: u64) -> Option<u64> {
        let address = address.checked_next_multiple_of(PAGE)?;
        if self.with(address).is_some() {
            return Some(address);
        }
        let next = self.0.partition_point(|segment| segment.start < address);
        self.0.get(next).map(|segment| segment.start.next_multiple_of(PAGE))
    }
}
