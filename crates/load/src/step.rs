//! What to measure: one item with one setting.

use serde::{Deserialize, Serialize};

use crate::error::{LoadError, WrongStep};

/// The kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// Write files from their beginning to their end, and read them.
    Transfer,
    /// As a transfer, with a fixed total size for all processes, whatever the size of a request.
    Volume,
    /// Create, look up, list and remove files and directories.
    Metadata,
    /// Append to a file and sync each record, like the log of a database.
    Log,
    /// Read at random offsets.
    RandomRead,
    /// Read and write at random offsets next to a log.
    RandomMix,
    /// Read and write through a mapping.
    Mmap,
    /// Read at random offsets with many requests in progress (`io_uring`).
    Depth,
    /// Compute, without any file: shows how fast the machine itself is.
    Control,
}

/// The operations of workers, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    Mkdir,
    Create,
    Write,
    Append,
    Open,
    Stat,
    /// With dentries that were dropped before.
    StatCold,
    Readdir,
    Rename,
    Read,
    Remove,
    Rmdir,
    Compute,
}

/// What processes share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// A file, or a directory, for each.
    #[default]
    Own,
    /// One for all.
    Shared,
}

/// How writes reach the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sync {
    /// By write-back of the kernel.
    None,
    /// fsync once, after the last write, within the measured time.
    #[default]
    End,
    /// fdatasync after each write.
    Fdatasync,
    /// fsync after each write.
    Fsync,
    /// The file is opened with `O_DSYNC`.
    Dsync,
}

/// A list of steps, as a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub steps: Vec<Step>,
}

/// One item with one setting. Fields that are missing in a plan (JSON) have the defaults of this
/// structure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub item: Item,
    /// The operations to measure; empty: all of the item.
    #[serde(default)]
    pub operations: Vec<Operation>,
    /// Size of a request [B].
    #[serde(default = "four_kib")]
    pub length_bytes: u64,
    /// Number of workers.
    #[serde(default = "one")]
    pub processes: u32,
    /// Number of requests that each worker keeps in progress (depth).
    #[serde(default = "one")]
    pub depth: u32,
    /// Whether to open files with `O_DIRECT`.
    #[serde(default)]
    pub direct: bool,
    /// A file (directory) for each, or one for all.
    #[serde(default)]
    pub layout: Layout,
    /// How writes reach the device; `None`: `fdatasync` for a log, `end` for other items.
    #[serde(default)]
    pub sync: Option<Sync>,
    /// Total size of the files of the step [B]; `None`: what the time allows, up to 256 MiB.
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// Time after which each operation ends [ns]; `None`: when it is complete.
    #[serde(default)]
    pub time_ns: Option<u64>,
    /// Number of files of each worker (metadata).
    #[serde(default = "thousand")]
    pub files: u32,
    /// Fraction of the requests that write (`random_mix`).
    #[serde(default = "third")]
    pub write_share: f64,
    /// Whether to read everything back and compare each block with what was written.
    #[serde(default)]
    pub verify: bool,
    /// Whether the log has its full size before, so that records overwrite its contents, as in
    /// segments of a database that are reused.
    #[serde(default)]
    pub prefilled: bool,
}

/// Total size of the files if a step does not state it: enough for some seconds of most devices.
const USUAL_SIZE: u64 = 256 << 20;
/// A larger number of workers is a mistake.
const MOST_PROCESSES: u32 = 10_000;
const LONGEST_REQUEST: u64 = 1 << 30;

impl Step {
    /// Total size of the files [B].
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size_bytes.unwrap_or(USUAL_SIZE)
    }

    /// Size of the part of each worker [B], a multiple of the size of a request.
    #[must_use]
    pub fn share(&self) -> u64 {
        let share = self.size() / u64::from(self.processes);
        (share / self.length_bytes).max(1) * self.length_bytes
    }

    /// How writes of an operation reach the device. Next to a log, writes of a mix are left to write-back; those
    /// through a mapping are synced together, at the end, unless the step says otherwise.
    #[must_use]
    pub fn sync_of(&self, operation: Operation) -> Sync {
        match (self.item, operation) {
            (Item::RandomMix, Operation::Write) => Sync::None,
            (Item::Mmap, _) if self.sync != Some(Sync::None) => Sync::End,
            (_, Operation::Append) => self.sync.unwrap_or(Sync::Fdatasync),
            _ => self.sync.unwrap_or_default(),
        }
    }

    /// Space that the step needs [B].
    #[must_use]
    pub fn room(&self) -> u64 {
        match self.item {
            Item::Metadata | Item::Control => 0,
            _ => self.share() * u64::from(self.processes),
        }
    }

    /// The operations to measure.
    #[must_use]
    pub fn wanted(&self) -> Vec<Operation> {
        let all = self.item.operations();
        all.iter().copied().filter(|operation| self.operations.is_empty() || self.operations.contains(operation)).collect()
    }

    /// Check the step.
    ///
    /// # Errors
    ///
    /// [`LoadError::Step`]
    pub fn check(&self) -> Result<(), LoadError> {
        let wrong = |why| Err(LoadError::Step(why));
        if let Some(operation) = self.operations.iter().find(|operation| !self.item.operations().contains(operation)) {
            return wrong(WrongStep::Operation(self.item, *operation));
        }
        if !(1..=MOST_PROCESSES).contains(&self.processes) {
            return wrong(WrongStep::Processes { wanted: self.processes, most: MOST_PROCESSES });
        }
        if !(1..=LONGEST_REQUEST).contains(&self.length_bytes) {
            return wrong(WrongStep::Length(self.length_bytes));
        }
        if self.direct && !self.length_bytes.is_multiple_of(512) {
            return wrong(WrongStep::DirectLength(self.length_bytes));
        }
        if !(1..=4096).contains(&self.depth) {
            return wrong(WrongStep::Depth(self.depth));
        }
        if !(0.0..=1.0).contains(&self.write_share) {
            return wrong(WrongStep::WriteShare(self.write_share));
        }
        if self.time_ns == Some(0) || self.size_bytes == Some(0) || self.files == 0 {
            return wrong(WrongStep::Empty);
        }
        let needs_time = matches!(self.item, Item::Log | Item::RandomRead | Item::RandomMix | Item::Depth | Item::Control);
        if needs_time && self.time_ns.is_none() {
            return wrong(WrongStep::NoTime(self.item));
        }
        Ok(())
    }

    /// Estimated duration, including preparation [ns].
    #[must_use]
    pub fn estimate_ns(&self) -> u64 {
        const UNTIMED: u64 = 2_000_000_000;
        self.time_ns.unwrap_or(UNTIMED) * self.wanted().len().max(1) as u64 + 500_000_000
    }
}

impl Item {
    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Item::Transfer => "transfer",
            Item::Volume => "volume",
            Item::Metadata => "metadata",
            Item::Log => "log",
            Item::RandomRead => "random_read",
            Item::RandomMix => "random_mix",
            Item::Mmap => "mmap",
            Item::Depth => "depth",
            Item::Control => "control",
        }
    }

    /// Whether it reads at random from the common file, which is kept from step to step.
    #[must_use]
    pub fn uses_data(self) -> bool {
        matches!(self, Item::RandomRead | Item::RandomMix | Item::Depth)
    }

    /// Its operations, in their order.
    #[must_use]
    pub fn operations(self) -> &'static [Operation] {
        use Operation::{Append, Compute, Create, Mkdir, Open, Read, Readdir, Remove, Rename, Rmdir, Stat, StatCold, Write};
        match self {
            Item::Transfer | Item::Volume | Item::Mmap => &[Write, Read],
            Item::Metadata => &[Create, Stat, StatCold, Open, Readdir, Rename, Remove, Mkdir, Rmdir],
            Item::Log => &[Append],
            Item::RandomRead | Item::Depth => &[Read],
            Item::RandomMix => &[Read, Write, Append],
            Item::Control => &[Compute],
        }
    }
}

impl Operation {
    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Operation::Mkdir => "mkdir",
            Operation::Create => "create",
            Operation::Write => "write",
            Operation::Append => "append",
            Operation::Open => "open",
            Operation::Stat => "stat",
            Operation::StatCold => "stat_cold",
            Operation::Readdir => "readdir",
            Operation::Rename => "rename",
            Operation::Read => "read",
            Operation::Remove => "remove",
            Operation::Rmdir => "rmdir",
            Operation::Compute => "compute",
        }
    }

    /// Whether it transfers data.
    #[must_use]
    pub fn moves_data(self) -> bool {
        matches!(self, Operation::Write | Operation::Append | Operation::Read)
    }
}

impl Layout {
    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Layout::Own => "own",
            Layout::Shared => "shared",
        }
    }
}

impl Sync {
    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Sync::None => "none",
            Sync::End => "end",
            Sync::Fdatasync => "fdatasync",
            Sync::Fsync => "fsync",
            Sync::Dsync => "dsync",
        }
    }
}

fn four_kib() -> u64 {
    4096
}

fn one() -> u32 {
    1
}

fn thousand() -> u32 {
    1000
}

fn third() -> f64 {
    0.3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(json: &str) -> Step {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn what_a_plan_leaves_out_is_usual() {
        let step = step(r#"{"item": "transfer"}"#);
        assert_eq!((step.length_bytes, step.processes, step.size()), (4096, 1, 256 << 20));
        assert_eq!((step.sync_of(Operation::Write), step.layout, step.direct), (Sync::End, Layout::Own, false));
        assert_eq!(step.wanted(), [Operation::Write, Operation::Read]);
        assert!(step.check().is_ok());
    }

    #[test]
    fn a_share_is_whole_requests_and_at_least_one() {
        let shared = step(r#"{"item": "transfer", "size_bytes": 10000, "length_bytes": 3000, "processes": 2}"#);
        assert_eq!((shared.share(), shared.room()), (3000, 6000));
        let small = step(r#"{"item": "transfer", "size_bytes": 10, "length_bytes": 4096, "processes": 8}"#);
        assert_eq!(small.room(), 8 * 4096);
    }

    #[test]
    fn each_operation_reaches_the_device_in_its_own_way() {
        let mix = step(r#"{"item": "random_mix", "time_ns": 5}"#);
        assert_eq!((mix.sync_of(Operation::Write), mix.sync_of(Operation::Append)), (Sync::None, Sync::Fdatasync));
        let mix = step(r#"{"item": "random_mix", "time_ns": 5, "sync": "fsync"}"#);
        assert_eq!((mix.sync_of(Operation::Write), mix.sync_of(Operation::Append)), (Sync::None, Sync::Fsync));
        let mapped = step(r#"{"item": "mmap", "sync": "fdatasync"}"#);
        assert_eq!(mapped.sync_of(Operation::Write), Sync::End);
        let unsynced = step(r#"{"item": "mmap", "sync": "none"}"#);
        assert_eq!(unsynced.sync_of(Operation::Write), Sync::None);
    }

    #[test]
    fn operations_are_done_in_their_order_whatever_the_plan_says() {
        let step = step(r#"{"item": "metadata", "operations": ["remove", "create"]}"#);
        assert_eq!(step.wanted(), [Operation::Create, Operation::Remove]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for json in [
            r#"{"item": "log"}"#,
            r#"{"item": "log", "time_ns": 0}"#,
            r#"{"item": "transfer", "operations": ["append"]}"#,
            r#"{"item": "transfer", "direct": true, "length_bytes": 1000}"#,
            r#"{"item": "transfer", "length_bytes": 0}"#,
            r#"{"item": "transfer", "processes": 100000}"#,
            r#"{"item": "depth", "time_ns": 5, "depth": 5000}"#,
            r#"{"item": "random_mix", "time_ns": 5, "write_share": 1.5}"#,
        ] {
            assert!(step(json).check().is_err(), "{json}");
        }
    }
}
