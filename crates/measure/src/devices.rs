//! Work of block devices during a run, for all processes.
//!
//! Columns of `/sys/class/block/NAME/stat`: Documentation/block/stat.rst of the kernel.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use serde::Serialize;
use sysdock_table::{Fact, facts::measure as facts};

use crate::{
    MeasureError,
    missing::{Missing, unreadable},
};

const SECTOR: u64 = 512;

/// Requests of a block device that completed during a run, of all processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceUse {
    /// The name that was requested.
    pub name: String,
    /// Number of read requests.
    pub reads: Option<u64>,
    /// Bytes read.
    pub read_bytes: Option<u64>,
    /// Number of reads that were merged into another request.
    pub merged_reads: Option<u64>,
    /// Number of write requests; some kernels (6.18) count each flush as one without bytes, too.
    pub writes: Option<u64>,
    /// Bytes written.
    pub write_bytes: Option<u64>,
    /// Number of writes that were merged into another request.
    pub merged_writes: Option<u64>,
    /// Number of requests to flush the write cache. The kernel does not count them for partitions.
    pub flushes: Option<u64>,
    /// Number of requests to discard blocks.
    pub discards: Option<u64>,
    /// Time with at least one request in progress [ns], in the kernel's ticks of a millisecond or
    /// more.
    pub busy_ns: Option<u64>,
}

/// An existing device.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    name: String,
    folder: PathBuf,
}

/// Its counters, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Counters(Vec<u64>);

impl Device {
    /// Find a device by name, or by the path of its file.
    pub(crate) fn find(name: &str) -> Result<Self, MeasureError> {
        let by_number = |path: &str| {
            let status = fs::metadata(path).ok().filter(|status| status.file_type().is_block_device())?;
            let (major, minor) = (libc::major(status.rdev()), libc::minor(status.rdev()));
            Some(PathBuf::from(format!("/sys/dev/block/{major}:{minor}")))
        };
        let folder = match name.starts_with('/') {
            true => by_number(name),
            // sysfs writes a slash in a name as an exclamation mark.
            false => Some(Path::new("/sys/class/block").join(name.replace('/', "!"))),
        };
        let is_there = |folder: &PathBuf| !name.is_empty() && !name.starts_with('.') && folder.join("stat").is_file();
        match folder.filter(is_there) {
            Some(folder) => Ok(Device { name: name.into(), folder }),
            None => Err(MeasureError::NoSuchDevice(name.into())),
        }
    }

    pub(crate) fn read(&self) -> Result<Counters, Fact> {
        let path = self.folder.join("stat");
        let text = fs::read_to_string(&path).map_err(|error| unreadable(path.display(), error))?;
        let iostats = fs::read_to_string(self.disk().join("queue/iostats"));
        if iostats.is_ok_and(|text| text.trim() == "0") {
            return Err(facts::device_counting_off(self.name.as_str()));
        }
        Ok(Counters(text.split_ascii_whitespace().map_while(|number| number.parse().ok()).collect()))
    }

    fn is_partition(&self) -> bool {
        self.folder.join("partition").exists()
    }

    /// The folder of the whole disk, which contains the queue.
    fn disk(&self) -> PathBuf {
        if self.is_partition() { self.folder.join("..") } else { self.folder.clone() }
    }

    /// `Err`: why flushes are not counted.
    fn counts_flushes(&self) -> Result<(), Fact> {
        if self.is_partition() {
            Err(facts::flushes_of_disks_only())
        } else if !self.folder.join("mq").exists() {
            Err(facts::no_flushes_of_stacked_devices())
        } else {
            Ok(())
        }
    }

    /// The work between two readings. Unknown values are recorded in `missing`.
    pub(crate) fn between(
        &self,
        before: &Result<Counters, Fact>,
        after: &Result<Counters, Fact>,
        missing: &mut Missing,
    ) -> DeviceUse {
        let column = |number: usize| {
            let (before, after) = (before.as_ref().map_err(Clone::clone)?, after.as_ref().map_err(Clone::clone)?);
            match (before.0.get(number), after.0.get(number)) {
                (Some(before), Some(after)) => Ok(after.wrapping_sub(*before)),
                _ => Err(facts::not_counted()),
            }
        };
        let mut field = |field: &str, value: Result<u64, Fact>| missing.known(format!("devices.{}.{field}", self.name), value);
        DeviceUse {
            name: self.name.clone(),
            reads: field("reads", column(0)),
            merged_reads: field("merged_reads", column(1)),
            read_bytes: field("read_bytes", column(2).map(|sectors| sectors * SECTOR)),
            writes: field("writes", column(4)),
            merged_writes: field("merged_writes", column(5)),
            write_bytes: field("write_bytes", column(6).map(|sectors| sectors * SECTOR)),
            busy_ns: field("busy_ns", column(9).map(|ms| ms * 1_000_000)),
            discards: field("discards", column(11)),
            flushes: field("flushes", self.counts_flushes().and_then(|()| column(15))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_device_is_said_to_be_none() {
        for name in ["", "..", "no-such-disk", "/dev/null", "/nowhere", "../../proc"] {
            assert!(matches!(Device::find(name), Err(MeasureError::NoSuchDevice(unknown)) if unknown == name), "{name}");
        }
    }

    #[test]
    fn columns_are_those_of_the_kernels_page() {
        let device = Device { name: "x".into(), folder: "/nowhere".into() };
        let before = Ok(Counters(vec![0; 17]));
        let after = Ok(Counters((1..=17).collect()));
        let mut missing = Missing::default();
        let used = device.between(&before, &after, &mut missing);
        assert_eq!((used.reads, used.merged_reads, used.read_bytes), (Some(1), Some(2), Some(3 * 512)));
        assert_eq!((used.writes, used.merged_writes, used.write_bytes), (Some(5), Some(6), Some(7 * 512)));
        assert_eq!((used.busy_ns, used.discards, used.flushes), (Some(10_000_000), Some(12), None));
        assert_eq!(missing.0.keys().collect::<Vec<_>>(), ["devices.x.flushes"]);
    }

    #[test]
    fn an_older_kernel_has_fewer_columns() {
        let device = Device { name: "x".into(), folder: "/nowhere".into() };
        let eleven = Ok(Counters(vec![4; 11]));
        let mut missing = Missing::default();
        let used = device.between(&eleven, &eleven, &mut missing);
        assert_eq!((used.reads, used.busy_ns, used.discards), (Some(0), Some(0), None));
        assert_eq!(missing.0["devices.x.discards"], facts::not_counted());
    }
}
