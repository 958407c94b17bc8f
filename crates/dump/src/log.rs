//! The log of the kernel (`dmesg`): the ring buffer of kernel/printk/printk_ringbuffer.c, since
//! 5.10.

use crate::{error::Fault, kernel::Kernel};

/// Limit for the number of records of a ring: 2 to the power of this.
const MOST_BITS: u32 = 24;
const STATE_SHIFT: u32 = 62;
const COMMITTED: u64 = 1;
const FINALIZED: u64 = 2;

/// A record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Number of the record since boot.
    pub sequence: u64,
    /// When it was written [ns since boot].
    pub after_boot_ns: u64,
    /// From 0, emergency, to 7, debugging.
    pub level: u8,
    pub text: String,
}

/// The log.
#[derive(Debug, Default)]
pub struct Log {
    /// In order.
    pub records: Vec<LogRecord>,
    /// Number of records that are not whole, or not in the dump.
    pub unread: u64,
}

/// Addresses and sizes of the ring, from VMCOREINFO.
struct Ring {
    bits: u32,
    descriptors: u64,
    infos: u64,
    data: u64,
    data_bits: u32,
}

impl Kernel {
    /// Read the log.
    ///
    /// # Errors
    /// A [`Fault`]: there is no ring of this kind, or its head is not in the dump.
    pub fn log(&self) -> Result<Log, Fault> {
        let offset = |member: &str| self.info.offset(member).ok_or(Fault::NoType);
        let pointer = self.info.symbol("prb").ok_or(Fault::NoType)?;
        let buffer = self.memory.u64(pointer)?;
        let descriptors = buffer.wrapping_add(offset("printk_ringbuffer.desc_ring")?);
        let text = buffer.wrapping_add(offset("printk_ringbuffer.text_data_ring")?);
        let at = |start: u64, member: &str| Ok::<u64, Fault>(start.wrapping_add(offset(member)?));
        let ring = Ring {
            bits: self.memory.u32(at(descriptors, "prb_desc_ring.count_bits")?)?,
            descriptors: self.memory.u64(at(descriptors, "prb_desc_ring.descs")?)?,
            infos: self.memory.u64(at(descriptors, "prb_desc_ring.infos")?)?,
            data: self.memory.u64(at(text, "prb_data_ring.data")?)?,
            data_bits: self.memory.u32(at(text, "prb_data_ring.size_bits")?)?,
        };
        if ring.bits > MOST_BITS || ring.data_bits > 32 {
            return Err(Fault::Damaged);
        }
        let head = self.memory.u64(at(descriptors, "prb_desc_ring.head_id")?)?;
        let tail = self.memory.u64(at(descriptors, "prb_desc_ring.tail_id")?)?;
        let count = head.wrapping_sub(tail).min((1 << ring.bits) - 1);
        let mut log = Log::default();
        for number in 0..=count {
            match self.record(&ring, tail.wrapping_add(number) & !(3 << STATE_SHIFT)) {
                Ok(Some(record)) => log.records.push(record),
                Ok(None) => {}
                Err(_) => log.unread += 1,
            }
        }
        Ok(log)
    }

    /// `None`: the record was not completed, or its text was overwritten.
    fn record(&self, ring: &Ring, id: u64) -> Result<Option<LogRecord>, Fault> {
        let offset = |member: &str| self.info.offset(member).ok_or(Fault::NoType);
        let size = |name: &str| self.info.size(name).ok_or(Fault::NoType);
        let index = id & ((1 << ring.bits) - 1);
        let descriptor = ring.descriptors.wrapping_add(index * size("prb_desc")?);
        let state = self.memory.u64(descriptor.wrapping_add(offset("prb_desc.state_var")?))?;
        if state & !(3 << STATE_SHIFT) != id || !matches!(state >> STATE_SHIFT, COMMITTED | FINALIZED) {
            return Ok(None);
        }
        let place = descriptor.wrapping_add(offset("prb_desc.text_blk_lpos")?);
        let begin = self.memory.u64(place.wrapping_add(offset("prb_data_blk_lpos.begin")?))?;
        let next = self.memory.u64(place.wrapping_add(offset("prb_data_blk_lpos.next")?))?;
        let info = ring.infos.wrapping_add(index * size("printk_info")?);
        let read = |member: &str, bytes: usize| self.memory.number(info.wrapping_add(offset(member)?), bytes);
        let length = read("printk_info.text_len", 2)?;
        // The byte after that of the facility: five bits of flags, three of the level.
        let level = self.memory.number(info.wrapping_add(offset("printk_info.text_len")? + 3), 1)? as u8 >> 5;
        let text = if begin & 1 == 1 || length == 0 { Vec::new() } else { self.text_of(ring, begin, next, length)? };
        let text = String::from_utf8_lossy(&text).into_owned();
        let (sequence, after_boot_ns) = (read("printk_info.seq", 8)?, read("printk_info.ts_nsec", 8)?);
        Ok(Some(LogRecord { sequence, after_boot_ns, level, text }))
    }

    /// The text of a record. Its block begins with the number of the record; one that would wrap is
    /// at the beginning of the ring.
    fn text_of(&self, ring: &Ring, begin: u64, next: u64, length: u64) -> Result<Vec<u8>, Fault> {
        const NUMBER_BYTES: u64 = 8;
        let size = 1_u64 << ring.data_bits;
        let wraps = begin >> ring.data_bits != next >> ring.data_bits && next & (size - 1) != 0;
        let start = if wraps { 0 } else { begin & (size - 1) };
        let room = if wraps { next & (size - 1) } else { next.wrapping_sub(begin) };
        if start + room > size || room < NUMBER_BYTES {
            return Err(Fault::Damaged);
        }
        self.memory.bytes(ring.data.wrapping_add(start + NUMBER_BYTES), length.min(room - NUMBER_BYTES))
    }
}
