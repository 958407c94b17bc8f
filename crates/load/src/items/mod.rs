//! What the workers do: one file for each kind of item.

mod control;
mod depth;
mod files;
mod log;
mod mapped;
mod metadata;
mod random;
mod transfer;

use std::{io, path::PathBuf};

pub(crate) use files::DATA;
pub(crate) use log::MIX_RECORD_BYTES;

use crate::{
    Item, Operation, Step,
    board::{Header, Slot},
    data::Pool,
    meter::Meter,
};

/// What is measured between two barriers.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    /// Those that go on at the same time: each has a lane.
    pub(crate) operations: Vec<Operation>,
    /// Nothing counts before this time has passed [ns]: a throttled device saves up requests while it has none.
    pub(crate) warm_ns: u64,
}

/// What a worker is given.
pub(crate) struct WorkerContext<'a> {
    /// Which one, from 0 on.
    pub(crate) worker: u32,
    /// The folder that the step works in.
    pub(crate) folder: PathBuf,
    pub(crate) step: &'a Step,
    pub(crate) pool: &'a Pool,
    /// Different for each step.
    pub(crate) seed: u64,
    pub(crate) header: &'a Header,
    /// Those of all workers.
    pub(crate) slots: &'a [Slot],
    /// Bytes of the common file that are there already [B].
    pub(crate) data_bytes: u64,
}

impl WorkerContext<'_> {
    /// Its own part of the board.
    pub(crate) fn slot(&self) -> &Slot {
        &self.slots[self.worker as usize]
    }
}

/// A worker's part of an item. Methods run in the process of the worker.
pub(crate) trait Work {
    /// Make ready what the phase needs, before anything is measured.
    fn prepare(&mut self, phase: &Phase) -> io::Result<()>;

    /// Do it, until it is done or the meter says that it is to end.
    fn run(&mut self, phase: &Phase, meter: &mut Meter<'_>) -> io::Result<()>;
}

/// The phases of a step.
pub(crate) fn phases(step: &Step) -> Vec<Phase> {
    let warm_ns = step.time_ns.map_or(0, |time| (time / 10).min(200_000_000));
    match step.item {
        Item::RandomRead | Item::Log | Item::Depth => vec![Phase { operations: step.wanted(), warm_ns }],
        Item::RandomMix => vec![Phase { operations: step.item.operations().to_vec(), warm_ns }],
        _ => step.wanted().into_iter().map(|operation| Phase { operations: vec![operation], warm_ns: 0 }).collect(),
    }
}

/// Workers of a step: its processes, and one for the log alongside a mix.
pub(crate) fn workers(step: &Step) -> u32 {
    step.processes + u32::from(step.item == Item::RandomMix)
}

/// What a worker is to do.
pub(crate) fn work<'a>(place: WorkerContext<'a>) -> Box<dyn Work + 'a> {
    match place.step.item {
        Item::Transfer | Item::Volume => Box::new(transfer::Transfer::new(place)),
        Item::Metadata => Box::new(metadata::Metadata::new(place)),
        Item::Log => Box::new(log::Log::new(place)),
        Item::RandomMix if place.worker == place.step.processes => Box::new(log::Log::new(place)),
        Item::RandomRead | Item::RandomMix => Box::new(random::RandomRequests::new(place)),
        Item::Mmap => Box::new(mapped::Mapped::new(place)),
        Item::Depth => Box::new(depth::Depth::new(place)),
        Item::Control => Box::new(control::Control::new(place)),
    }
}
