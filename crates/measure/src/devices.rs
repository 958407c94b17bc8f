//! What block devices did meanwhile, for any process.
//!
//! Columns of `/sys/class/block/NAME/stat`: Documentation/block/stat.rst of the kernel.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use serde::Serialize;

use crate::{MeasureError, missing::Missing};

const SECTOR: u64 = 512;

/// Requests of a block device that were completed during a run, by any process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceUse {
    /// As it was requested.
    pub name: String,
    /// Read requests.
    pub reads: Option<u64>,
    /// Bytes that they read.
    pub read_bytes: Option<u64>,
    /// Reads that were merged into another request before.
    pub merged_reads: Option<u64>,
    /// Write requests; of some kernels (6.18) each flush is one of no bytes, too.
    pub writes: Option<u64>,
    /// Bytes that they wrote.
    pub write_bytes: Option<u64>,
    /// Writes that were merged into another request before.
    pub merged_writes: Option<u64>,
    /// Requests to empty the write cache. Of a partition the kernel does not count them.
    pub flushes: Option<u64>,
    /// Requests to give up blocks.
    pub discards: Option<u64>,
    /// Time with at least one request in progress [ns]; the kernel has ticks of a millisecond or more.
    pub busy_ns: Option<u64>,
}

/// A device that is there.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    name: String,
    folder: PathBuf,
}

/// Its counters, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Counters(Vec<u64>);

impl Device {
    /// By name, or by the path of its file.
    pub(crate) fn find(name: &str) -> Result<Self, MeasureError> {
        let by_number = |path: &str| {
            let status = fs::metadata(path).ok().filter(|status| status.file_type().is_block_device())?;
            let (major, minor) = (libc::major(status.rdev()), libc::minor(status.rdev()));
            Some(PathBuf::from(format!("/sys/dev/block/{major}:{minor}")))
        };
        let folder = match name.starts_with('/') {
            true => by_number(name),
            // Where a name has a slash, sysfs writes an exclamation mark.
            false => Some(Path::new("/sys/class/block").join(name.replace('/', "!"))),
        };
        let is_there = |folder: &PathBuf| !name.is_empty() && !name.starts_with('.') && folder.join("stat").is_file();
        match folder.filter(is_there) {
            Some(folder) => Ok(Device { name: name.into(), folder }),
            None => Err(MeasureError::NoSuchDevice(name.into())),
        }
    }

    pub(crate) fn read(&self) -> Result<Counters, String> {
        let path = self.folder.join("stat");
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let iostats = fs::read_to_string(self.disk().join("queue/iostats"));
        if iostats.is_ok_and(|text| text.trim() == "0") {
            return Err(format!("{}: counting is switched off (queue/iostats)", self.name));
        }
        Ok(Counters(text.split_ascii_whitespace().map_while(|number| number.parse().ok()).collect()))
    }

    fn is_partition(&self) -> bool {
        self.folder.join("partition").exists()
    }

    /// The folder of the whole disk, which has the queue.
    fn disk(&self) -> PathBuf {
        if self.is_partition() { self.folder.join("..") } else { self.folder.clone() }
    }

    /// Why flushes are not counted, if so.
    fn counts_flushes(&self) -> Result<(), String> {
        if self.is_partition() {
            Err("the kernel counts flushes for whole disks only".into())
        } else if !self.folder.join("mq").exists() {
            Err("the kernel does not count flushes of devices that pass on what they get".into())
        } else {
            Ok(())
        }
    }

    /// What was done between two readings; what is not known is noted.
    pub(crate) fn between(
        &self,
        before: &Result<Counters, String>,
        after: &Result<Counters, String>,
        missing: &mut Missing,
    ) -> DeviceUse {
        let column = |number: usize| {
            let (before, after) = (before.as_ref().map_err(Clone::clone)?, after.as_ref().map_err(Clone::clone)?);
            match (before.0.get(number), after.0.get(number)) {
                (Some(before), Some(after)) => Ok(after.wrapping_sub(*before)),
                _ => Err("this kernel does not count them".to_string()),
            }
        };
        let mut field = |field: &str, value: Result<u64, String>| missing.known(format!("devices.{}.{field}", self.name), value);
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
        assert!(missing.0.contains_key("devices.x.discards"));
    }
}
