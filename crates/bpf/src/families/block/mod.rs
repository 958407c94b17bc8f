//! Requests to block devices, from queuing to completion: the table `block_requests`.

mod rows;
#[cfg(test)]
mod tests;

use sysdock_calls::{CallRow, syscalls::Shape};
use sysdock_table::rows::BlockRequests;

use crate::{
    BpfError,
    conversion::Conversion,
    events::{BLOCK_MEMORY, BlockEvent, EVENT_BLOCK, Raw},
    families::{Converter, Family, Recorded, Shrink, calls::events::Call, page_io::requests::RequestRows},
};

/// Collects rows of `block_requests`.
#[derive(Default)]
pub(crate) struct Block(RequestRows<BlockRequests<'static>>);

impl Converter for Block {
    const FAMILY: Family = Family {
        name: "block",
        shows: "requests to block devices: their time in the queue and in the device",
        recorded: Recorded::OnDemand,
        object: programs!("block"),
        // Before 6.5 no tracepoint reports that a request was created.
        left_out: &[&["inserted", "wanted"], &["started"]],
        unused_maps: &[Shrink::Entries("inode_ids")],
        kinds: &[(EVENT_BLOCK, "block_requests")],
        tables: &["block_requests"],
        ..Family::NONE
    };

    fn is_whole(event: &Raw<'_>) -> bool {
        event.holds::<BlockEvent>()
    }

    fn event(&mut self, event: &Raw<'_>, at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        let Some((request, _)) = event.read::<BlockEvent>() else { return Ok(()) };
        let row = rows::row(&request, at_ns, conversion);
        let is_direct = request.flags & BLOCK_MEMORY != 0 && request.tid != 0;
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
