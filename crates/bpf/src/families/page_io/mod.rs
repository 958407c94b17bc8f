//! Requests of the page cache to block devices: the table `page_io`.

pub(crate) mod requests;
mod rows;
#[cfg(test)]
pub(crate) mod tests;

use sysdock_calls::{CallRow, syscalls::Shape};
use sysdock_table::rows::PageIo;

use crate::{
    BpfError,
    conversion::Conversion,
    events::{EVENT_PAGE_IO, PAGE_IO_MEMORY, PageIoEvent, Raw},
    families::{Converter, Family, Recorded, Shrink, calls::events::Call},
};

use requests::RequestRows;

/// Collects rows of `page_io`.
#[derive(Default)]
pub(crate) struct PageCache(RequestRows<PageIo<'static>>);

impl Converter for PageCache {
    const FAMILY: Family = Family {
        name: "page_io",
        shows: "reads and writes of the disk for files",
        recorded: Recorded::Usually,
        object: programs!("page_io"),
        unused_maps: &[Shrink::Entries("inode_ids")],
        kinds: &[(EVENT_PAGE_IO, "page_io")],
        tables: &["page_io"],
        ..Family::NONE
    };

    fn is_whole(event: &Raw<'_>) -> bool {
        event.holds::<PageIoEvent>()
    }

    fn event(&mut self, event: &Raw<'_>, at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        let Some((request, _)) = event.read::<PageIoEvent>() else { return Ok(()) };
        let row = rows::row(&request, event.flags, at_ns, conversion);
        let is_direct = event.flags & PAGE_IO_MEMORY != 0 && request.tid != 0;
        Ok(self.0.push(row, is_direct.then_some(request.tid), conversion.recording)?)
    }

    #[inline]
    fn call(&mut self, call: &Call<'_>, _: Shape, row: &mut CallRow, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        if call.ring {
            return Ok(());
        }
        Ok(self.0.call(call.tid, row, conversion.recording)?)
    }

    fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        Ok(self.0.finish(conversion.recording)?)
    }
}
