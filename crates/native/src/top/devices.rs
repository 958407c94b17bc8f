//! The view `device`: the kernel's counters of each block device
//! (docs.kernel.org/admin-guide/iostats.html). It costs other processes nothing.

use std::{collections::HashMap, fs, path::Path};

use super::{table::Cell, views::View};
use crate::messages::Message;

const COUNTS: &str = "/proc/diskstats";
/// Size of the kernel's unit of sectors [B], regardless of the device's.
const SECTOR: u64 = 512;

/// The view of devices.
#[derive(Default)]
pub(super) struct Devices {
    before: HashMap<String, Counts>,
}

/// Counters since the machine was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) reads: u64,
    pub(super) read_bytes: u64,
    pub(super) writes: u64,
    pub(super) written_bytes: u64,
    /// Time of all requests, from their entry in the device's queue [ms].
    pub(super) requests_ms: u64,
    /// Number of requests in progress now.
    pub(super) in_flight: u64,
    /// Time with requests in progress [ms].
    pub(super) busy_ms: u64,
    /// The same, multiplied by the number of requests in progress [ms].
    pub(super) weighted_ms: u64,
}

impl View for Devices {
    fn rows(&mut self) -> Result<Vec<Vec<Cell>>, Message> {
        let text = fs::read_to_string(COUNTS).map_err(|error| Message::bare(format!("{COUNTS}: {error}")))?;
        let now: HashMap<String, Counts> =
            text.lines().filter_map(parse).filter(|(name, counts)| is_shown(name, counts)).collect();
        let before = std::mem::replace(&mut self.before, now);
        let then = |name: &String| before.get(name).copied().unwrap_or_default();
        Ok(self.before.iter().map(|(name, counts)| row(name, counts, &then(name))).collect())
    }
}

/// Whether a device was used and is not a partition.
fn is_shown(name: &str, counts: &Counts) -> bool {
    let folder = Path::new("/sys/block").join(name.replace('/', "!"));
    counts.reads + counts.writes > 0 && folder.exists()
}

/// Parse a line of the file.
pub(super) fn parse(line: &str) -> Option<(String, Counts)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let field = |number: usize| words.get(number + 2)?.parse::<u64>().ok();
    let counts = Counts {
        reads: field(1)?,
        read_bytes: field(3)?.saturating_mul(SECTOR),
        writes: field(5)?,
        written_bytes: field(7)?.saturating_mul(SECTOR),
        requests_ms: field(4)?.saturating_add(field(8)?),
        in_flight: field(9)?,
        busy_ms: field(10)?,
        weighted_ms: field(11)?,
    };
    Some(((*words.get(2)?).to_string(), counts))
}

fn row(name: &str, now: &Counts, then: &Counts) -> Vec<Cell> {
    let done = |count: fn(&Counts) -> u64| count(now).saturating_sub(count(then));
    let (reads, writes) = (done(|counts| counts.reads), done(|counts| counts.writes));
    let busy_ms = done(|counts| counts.busy_ms);
    let mean = |sum: u64, number: u64, unit: f64| {
        if number == 0 { Cell::Missing } else { Cell::Real(sum as f64 / number as f64 / unit) }
    };
    vec![
        Cell::seconds(busy_ms * 1_000_000),
        Cell::Whole(reads),
        Cell::Whole(writes),
        Cell::Whole(done(|counts| counts.read_bytes)),
        Cell::Whole(done(|counts| counts.written_bytes)),
        mean(done(|counts| counts.requests_ms), reads + writes, 1e3),
        // Mean while the device was busy.
        mean(done(|counts| counts.weighted_ms), busy_ms, 1.0),
        Cell::Whole(now.in_flight),
        Cell::name(name.as_bytes()),
    ]
}
