//! The work of the workers: one file for each kind of item.

mod control;
mod depth;
mod files;
mod log;
mod mapped;
mod metadata;
mod random;
mod transfer;

use std::io;

pub(crate) use files::DATA;
pub(crate) use log::MIX_RECORD_BYTES;

use crate::{
    Item, Operation, Step,
    board::{Header, Slot},
    data::Pool,
    meter::Meter,
};

/// The operations that are measured between two barriers.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    /// Operations that run at the same time: each has a lane.
    pub(crate) operations: Vec<Operation>,
    /// Operations count only after this time [ns]: a throttled device accumulates credit while it
    /// is idle.
    pub(crate) warm_ns: u64,
}

/// What a worker is given.
pub(crate) struct WorkerContext<'a> {
    /// Number of the worker, from 0 on.
    pub(crate) worker: u32,
    pub(crate) step: &'a Step,
    pub(crate) pool: &'a Pool,
    /// Different for each step.
    pub(crate) seed: u64,
    pub(crate) header: &'a Header,
    /// Slots of all workers.
    pub(crate) slots: &'a [Slot],
    /// Size of the common file that exists already [B].
    pub(crate) data_bytes: u64,
}

impl WorkerContext<'_> {
    /// Its own slot.
    pub(crate) fn slot(&self) -> &Slot {
        &self.slots[self.worker as usize]
    }
}

/// A worker's part of an item. Methods run in the process of the worker, whose working directory is
/// the folder of the run.
pub(crate) trait Work {
    /// Prepare the phase, before anything is measured.
    fn prepare(&mut self, phase: &Phase) -> io::Result<()>;

    /// Do the work, until it is done or the meter ends it.
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

/// Number of workers of a step: its processes, and one for the log next to a mix.
pub(crate) fn workers(step: &Step) -> u32 {
    step.processes + u32::from(step.item == Item::RandomMix)
}

/// The work of a worker.
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
