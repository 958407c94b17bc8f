//! Searches memory for bytes.

use crate::{error::Fault, format::PAGE, kernel::Kernel};

/// Result of a search.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Physical addresses, in order.
    pub(crate) places: Vec<u64>,
    /// Whether there are more than were requested.
    pub(crate) has_more: bool,
    /// Number of pages that could not be read.
    pub(crate) unread_pages: u64,
    /// Number of pages of users, which were left out.
    pub(crate) user_pages: u64,
}

impl Kernel {
    /// Search the pages in the dump, also across the end of one if the next follows in physical
    /// memory.
    pub(crate) fn search(&self, wanted: &[u8], most: usize) -> Found {
        let mut found = Found::default();
        let mut before: (u64, Vec<u8>) = (u64::MAX, Vec::new());
        let mut page = vec![0; PAGE as usize];
        let mut next = self.memory.physical.next_page(0);
        while let Some(address) = next {
            next = address.checked_add(PAGE).and_then(|after| self.memory.physical.next_page(after));
            if self.is_of_user(address) {
                found.user_pages += 1;
                continue;
            }
            if self.memory.physical.read(address, &mut page).is_err() {
                found.unread_pages += 1;
                continue;
            }
            // The end of the previous page, if this one follows it.
            let mut bytes = if before.0 == address { std::mem::take(&mut before.1) } else { Vec::new() };
            let start = address - bytes.len() as u64;
            bytes.extend_from_slice(&page);
            for place in places_of(wanted, &bytes) {
                if found.places.len() == most {
                    found.has_more = true;
                    return found;
                }
                found.places.push(start + place as u64);
            }
            let keep = bytes.len().min(wanted.len() - 1);
            before = (address + PAGE, bytes.split_off(bytes.len() - keep));
        }
        found
    }

    /// Whether these bytes may be shown: those of users only on request.
    pub(crate) fn visible(&self, address: u64, length: u64) -> Result<(), Fault> {
        let last = address.saturating_add(length.saturating_sub(1));
        for page in (address / PAGE)..=(last / PAGE).min(address / PAGE + (64 << 20) / PAGE) {
            let physical = self.memory.physical_of(page * PAGE)?;
            if self.is_of_user(physical) {
                return Err(Fault::OfUser);
            }
        }
        Ok(())
    }

    fn is_of_user(&self, physical: u64) -> bool {
        self.users.as_ref().is_some_and(|users| users.has(self, physical))
    }
}

/// Offsets of `wanted`, which is not empty, in `bytes`.
fn places_of<'b>(wanted: &'b [u8], bytes: &'b [u8]) -> impl Iterator<Item = usize> + 'b {
    let first = wanted.first();
    let starts = bytes.iter().enumerate().filter(move |(_, byte)| Some(*byte) == first).map(|(place, _)| place);
    starts.filter(move |place| bytes.get(*place..).is_some_and(|rest| rest.starts_with(wanted)))
}
