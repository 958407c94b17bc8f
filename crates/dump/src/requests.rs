//! Requests that disks had not completed (blk-mq). Each disk has a queue, and shares the numbers
//! (tags) of requests with other disks of its device. A request for every number exists always;
//! those in use have a state, or a bit in the map of numbers.

use rustc_hash::FxHashSet;
use sysdock_symbols::btf::Field;

use crate::{error::Fault, format::u64_at, kernel::Kernel};

/// Limit for the numbers of requests, and queues of a device (block/blk-mq.h, `BLK_MQ_MAX_DEPTH`,
/// and a queue for each processor).
const MOST_TAGS: u64 = 1 << 16;
const MOST_QUEUES: u64 = 1 << 13;
/// Limit for the number of disks.
const MOST_DISKS: usize = 1 << 14;

/// State of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestState {
    /// It has a number, but was not passed to the driver.
    Waiting,
    /// The driver has it.
    InFlight,
    /// It is done, but its completion has not been reported.
    Complete,
}

impl RequestState {
    /// The value of `dump_requests.state`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RequestState::Waiting => "waiting",
            RequestState::InFlight => "in flight",
            RequestState::Complete => "complete",
        }
    }
}

/// A request. Values that could not be read are `None`, and `fault` tells why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Name of the disk.
    pub disk: String,
    /// When it was created, by the monotonic clock; `None`: the kernel did not record it.
    pub made_ns: Option<u64>,
    /// When it was passed to the driver.
    pub issued_ns: Option<u64>,
    /// For example `read`.
    pub operation: String,
    /// First sector, in units of 512 bytes.
    pub sector: Option<u64>,
    /// Remaining bytes.
    pub bytes: Option<u64>,
    pub state: RequestState,
    /// Its number; `None`: it has none of the driver.
    pub tag: Option<u32>,
    /// Number of the device's queue.
    pub queue: Option<u32>,
    /// Why something is missing.
    pub fault: Option<Fault>,
}

/// The requests, and the disks that could not be read.
#[derive(Debug, Default)]
pub struct Requests {
    /// Ordered by disk.
    pub requests: Vec<Request>,
    /// Disks with missing requests, and why.
    pub broken: Vec<(String, Fault)>,
}

/// Offsets of the members of a request.
struct Layout {
    queue: Field,
    hardware_queue: Field,
    flags: Field,
    tag: Field,
    internal_tag: Field,
    length: Field,
    sector: Field,
    made: Option<Field>,
    issued: Option<Field>,
    state: Field,
    number: Field,
    operations: Vec<(String, u32)>,
}

impl Layout {
    fn of(kernel: &Kernel) -> Result<Layout, Fault> {
        let request = |path: &str| kernel.field("request", path);
        Ok(Layout {
            queue: request("q")?,
            hardware_queue: request("mq_hctx")?,
            flags: request("cmd_flags")?,
            tag: request("tag")?,
            internal_tag: request("internal_tag")?,
            length: request("__data_len")?,
            sector: request("__sector")?,
            made: request("start_time_ns").ok(),
            issued: request("io_start_time_ns").ok(),
            state: request("state")?,
            number: kernel.field("blk_mq_hw_ctx", "queue_num")?,
            operations: kernel.types.enumerators("req_op"),
        })
    }

    fn operation(&self, flags: u64) -> String {
        const OPERATION: u64 = 0xff;
        let number = flags & OPERATION;
        let named = self.operations.iter().find(|(_, value)| u64::from(*value) == number);
        named
            .and_then(|(name, _)| name.strip_prefix("REQ_OP_"))
            .map_or_else(|| number.to_string(), |name| name.to_lowercase().replace('_', " "))
    }
}

/// A disk: its name, and its queue of requests.
struct Disk {
    name: String,
    queue: u64,
}

impl Kernel {
    /// Requests that the disks had not completed.
    ///
    /// # Errors
    /// A [`Fault`]: the disks, or the layout of requests, are unknown.
    pub fn requests(&self) -> Result<Requests, Fault> {
        let layout = Layout::of(self)?;
        let mut found = Requests::default();
        let disks = self.disks(&mut found.broken)?;
        for disk in &disks {
            let first = found.requests.len();
            if let Err(fault) = self.requests_of(disk, &layout, &mut found.requests) {
                found.broken.push((format!("requests of disk {}", disk.name), fault));
            }
            let of_disk = found.requests.get_mut(first..).unwrap_or_default();
            of_disk.sort_by_key(|request| (request.made_ns, request.sector));
        }
        Ok(found)
    }

    /// All disks. Each block device has an inode in a file system of their own; those of one disk
    /// point to the same disk.
    fn disks(&self, broken: &mut Vec<(String, Fault)>) -> Result<Vec<Disk>, Fault> {
        let block = self.memory.u64(self.symbol("blockdev_superblock")?)?;
        let head = block.wrapping_add(self.field("super_block", "s_inodes")?.offset);
        let inode = self.field("bdev_inode", "vfs_inode")?.offset;
        let (device, disk) = (self.field("bdev_inode", "bdev")?.offset, self.field("block_device", "bd_disk")?);
        let (name, queue) = (self.field("gendisk", "disk_name")?, self.field("gendisk", "queue")?);
        let walk = self.list(head, self.field("inode", "i_sb_list")?.offset);
        broken.extend(walk.fault.map(|fault| ("the list of disks".into(), fault)));
        let (mut found, mut seen) = (Vec::new(), FxHashSet::default());
        for entry in walk.entries {
            let place = entry.wrapping_sub(inode).wrapping_add(device);
            let read = self.number(place, disk).and_then(|disk| {
                // The file system's own inode belongs to no disk.
                if disk == 0 || !seen.insert(disk) {
                    return Ok(None);
                }
                Ok(Some(Disk { name: self.text(disk, name)?, queue: self.number(disk, queue)? }))
            });
            match read {
                Ok(_) if found.len() == MOST_DISKS => {
                    broken.push(("the list of disks".into(), Fault::TooLong));
                    break;
                }
                Ok(disk) => found.extend(disk),
                Err(fault) => broken.push(("a disk".into(), fault)),
            }
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    fn requests_of(&self, disk: &Disk, layout: &Layout, found: &mut Vec<Request>) -> Result<(), Fault> {
        let set = self.member(disk.queue, "request_queue", "tag_set")?;
        // Disks that consist of others, such as those of LVM, have no requests of their own.
        if set == 0 {
            return Ok(());
        }
        let (pointers, queues) =
            (self.member(set, "blk_mq_tag_set", "tags")?, self.member(set, "blk_mq_tag_set", "nr_hw_queues")?);
        if queues > MOST_QUEUES {
            return Err(Fault::TooLong);
        }
        let mut tables: Vec<u64> =
            (0..queues).map(|queue| self.memory.u64(pointers.wrapping_add(8 * queue))).collect::<Result<_, _>>()?;
        // With a scheduler, requests have numbers of their own until they are passed to the driver.
        tables.extend(self.scheduler_tables(disk.queue)?);
        let mut seen = FxHashSet::default();
        for table in tables {
            if table != 0 && seen.insert(table) {
                self.requests_in(table, disk, layout, found)?;
            }
        }
        Ok(())
    }

    fn scheduler_tables(&self, queue: u64) -> Result<Vec<u64>, Fault> {
        let contexts = self.member(queue, "request_queue", "queue_ctx")?;
        let hardware = self.field("blk_mq_ctx", "hctxs")?;
        let mut found = Vec::new();
        for cpu in 0..self.cpus() {
            let context = self.per_cpu(contexts, cpu)?;
            for kind in 0..(hardware.size / 8) as u64 {
                let hardware = self.memory.u64(context.wrapping_add(hardware.offset + 8 * kind))?;
                if hardware != 0 {
                    found.push(self.member(hardware, "blk_mq_hw_ctx", "sched_tags")?);
                }
            }
        }
        Ok(found)
    }

    fn requests_in(&self, table: u64, disk: &Disk, layout: &Layout, found: &mut Vec<Request>) -> Result<(), Fault> {
        let (count, array) = (self.member(table, "blk_mq_tags", "nr_tags")?, self.member(table, "blk_mq_tags", "static_rqs")?);
        if count > MOST_TAGS {
            return Err(Fault::TooLong);
        }
        let requests = self.memory.bytes(array, count * 8)?;
        let reserved = self.member(table, "blk_mq_tags", "nr_reserved_tags")?;
        let used = self.used_tags(table, count).unwrap_or_default();
        for (tag, pointer) in requests.chunks_exact(8).enumerate() {
            let request = u64_at(pointer, 0);
            if request == 0 || self.number(request, layout.queue)? != disk.queue {
                continue;
            }
            let is_used = (tag as u64).checked_sub(reserved).is_some_and(|tag| used.contains(&tag));
            let state = match self.number(request, layout.state)? {
                1 => RequestState::InFlight,
                2 => RequestState::Complete,
                _ if is_used => RequestState::Waiting,
                _ => continue,
            };
            found.push(self.request(request, state, disk, layout));
        }
        Ok(())
    }

    /// Numbers in use: bits that are set, and not marked to be cleared (include/linux/sbitmap.h).
    fn used_tags(&self, table: u64, count: u64) -> Result<FxHashSet<u64>, Fault> {
        let map = self.field("blk_mq_tags", "bitmap_tags.sb")?.offset;
        let map = table.wrapping_add(map);
        let (words, shift) = (self.member(map, "sbitmap", "map")?, self.member(map, "sbitmap", "shift")?.min(6));
        let (word, cleared) = (self.field("sbitmap_word", "word")?, self.field("sbitmap_word", "cleared")?);
        let step = self.types.size_of("sbitmap_word").ok_or(Fault::NoType)?;
        let mut used = FxHashSet::default();
        for number in 0..count.div_ceil(1 << shift) {
            let place = words.wrapping_add(number * step);
            let bits = self.number(place, word)? & !self.number(place, cleared)?;
            used.extend((0..1 << shift).filter(|bit| bits >> bit & 1 == 1).map(|bit| (number << shift) + bit));
        }
        Ok(used)
    }

    fn request(&self, address: u64, state: RequestState, disk: &Disk, layout: &Layout) -> Request {
        let mut fault = None;
        let mut number = |field: Field| self.number(address, field).inspect_err(|error| fault = fault.or(Some(*error))).ok();
        let mut time = |field: Option<Field>| number(field?).filter(|ns| *ns > 0);
        let (made_ns, issued_ns) = (time(layout.made), time(layout.issued));
        let tag = number(layout.tag).map(|tag| tag as u32);
        let internal = number(layout.internal_tag).map(|tag| tag as u32);
        let operation = number(layout.flags).map_or("?".into(), |flags| layout.operation(flags));
        let (sector, bytes) = (number(layout.sector), number(layout.length));
        let hardware = number(layout.hardware_queue).filter(|queue| *queue != 0);
        let queue = hardware.map(|queue| self.number(queue, layout.number));
        let fault = fault.or(queue.and_then(Result::err));
        let queue = queue.and_then(Result::ok).map(|number| number as u32);
        let is_number = |tag: &u32| *tag != u32::MAX;
        Request {
            disk: disk.name.clone(),
            made_ns,
            issued_ns: issued_ns.filter(|_| state != RequestState::Waiting),
            operation,
            sector,
            bytes,
            state,
            tag: tag.filter(is_number).or(internal.filter(is_number)),
            queue,
            fault,
        }
    }
}
