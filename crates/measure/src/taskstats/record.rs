//! A record in the kernel's layout: `struct taskstats` of include/uapi/linux/taskstats.h.
//!
//! New versions add fields at the end, so that existing offsets stay valid. (Version 15 did not
//! follow that rule: it is refused.)

use sysdock_table::{Fact, facts::measure as facts};

/// The version that inserted new fields between existing ones; 16 has them at the end.
const OUT_OF_ORDER: u16 = 15;
/// From this version on, records contain the process of a thread, and mark the last one of a
/// process.
const WITH_PROCESS: u16 = 12;
/// Flag: the task was the last of its process.
const LAST_OF_PROCESS: u8 = 0x20;

const FLAGS: usize = 8;
const CPU_DELAY: usize = 24;
const BLOCK_DELAY: usize = 40;
const CPU_TIME: usize = 72;
const PID: usize = 128;
const PARENT: usize = 132;
const USER_US: usize = 152;
const SYSTEM_US: usize = 160;
const MINOR_FAULTS: usize = 168;
const MAJOR_FAULTS: usize = 176;
const MAX_RSS_KIB: usize = 200;
const READ_CHARS: usize = 216;
const WRITE_CHARS: usize = 224;
const READ_BYTES: usize = 248;
const WRITE_BYTES: usize = 256;
const VOLUNTARY: usize = 272;
const INVOLUNTARY: usize = 280;
const RECLAIM_DELAY: usize = 320;
const PROCESS: usize = 368;
/// Length that every version since 7 has: everything up to the reclaim delay.
const LEAST: usize = RECLAIM_DELAY + 8;

/// Usage of a task, up to the beginning of its exit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// CPU time, up to the last tick or switch [ns].
    pub(crate) cpu_ns: u64,
    /// Parts of the CPU time, sampled in ticks [ns].
    pub(crate) user_ticks_ns: u64,
    pub(crate) system_ticks_ns: u64,
    pub(crate) run_delay_ns: u64,
    pub(crate) block_delay_ns: u64,
    pub(crate) reclaim_delay_ns: u64,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
    pub(crate) read_chars: u64,
    pub(crate) write_chars: u64,
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
    /// Peak of the process, not a sum.
    pub(crate) max_rss_bytes: u64,
}

impl Sums {
    pub(crate) fn add(&mut self, other: &Sums) {
        self.cpu_ns += other.cpu_ns;
        self.user_ticks_ns += other.user_ticks_ns;
        self.system_ticks_ns += other.system_ticks_ns;
        self.run_delay_ns += other.run_delay_ns;
        self.block_delay_ns += other.block_delay_ns;
        self.reclaim_delay_ns += other.reclaim_delay_ns;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        self.read_chars += other.read_chars;
        self.write_chars += other.write_chars;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
        self.max_rss_bytes = self.max_rss_bytes.max(other.max_rss_bytes);
    }
}

/// The end of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Ids of the task and its process: equal if the kernel does not distinguish them.
    pub(crate) task: u32,
    pub(crate) process: u32,
    pub(crate) parent: u32,
    /// Whether its process has ended, too.
    pub(crate) is_last: bool,
    /// Whether the kernel distinguishes processes from threads.
    pub(crate) knows_process: bool,
    pub(crate) sums: Sums,
}

impl Record {
    /// Parse the bytes of the structure. `Err`: why their form is unknown.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Fact> {
        let version = bytes.first_chunk().map_or(0, |field| u16::from_ne_bytes(*field));
        if bytes.len() < LEAST || version == OUT_OF_ORDER {
            return Err(facts::unknown_version(i32::from(version), bytes.len()));
        }
        let long = |at: usize| bytes[at..].first_chunk().map_or(0, |field| u64::from_ne_bytes(*field));
        let int = |at: usize| bytes[at..].first_chunk().map_or(0, |field| u32::from_ne_bytes(*field));
        let knows_process = version >= WITH_PROCESS && bytes.len() >= PROCESS + 4;
        let task = int(PID);
        Ok(Record {
            task,
            process: if knows_process { int(PROCESS) } else { task },
            parent: int(PARENT),
            is_last: !knows_process || bytes[FLAGS] & LAST_OF_PROCESS != 0,
            knows_process,
            sums: Sums {
                cpu_ns: long(CPU_TIME),
                user_ticks_ns: long(USER_US) * 1000,
                system_ticks_ns: long(SYSTEM_US) * 1000,
                run_delay_ns: long(CPU_DELAY),
                block_delay_ns: long(BLOCK_DELAY),
                reclaim_delay_ns: long(RECLAIM_DELAY),
                minor_faults: long(MINOR_FAULTS),
                major_faults: long(MAJOR_FAULTS),
                voluntary_switches: long(VOLUNTARY),
                involuntary_switches: long(INVOLUNTARY),
                read_chars: long(READ_CHARS),
                write_chars: long(WRITE_CHARS),
                read_bytes: long(READ_BYTES),
                write_bytes: long(WRITE_BYTES),
                max_rss_bytes: long(MAX_RSS_KIB) * 1024,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of this version and length, with some fields.
    fn bytes(version: u16, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        bytes[..2].copy_from_slice(&version.to_ne_bytes());
        bytes[FLAGS] = 0x22;
        bytes[PID..PID + 4].copy_from_slice(&4243_u32.to_ne_bytes());
        bytes[PARENT..PARENT + 4].copy_from_slice(&4000_u32.to_ne_bytes());
        bytes[CPU_DELAY..CPU_DELAY + 8].copy_from_slice(&77_u64.to_ne_bytes());
        if length > PROCESS + 4 {
            bytes[PROCESS..PROCESS + 4].copy_from_slice(&4242_u32.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn older_and_longer_records_are_read() {
        let new = Record::parse(&bytes(16, 560)).expect("this kernel's");
        assert_eq!((new.task, new.process, new.parent, new.is_last), (4243, 4242, 4000, true));
        assert_eq!(Record::parse(&bytes(99, 4000)), Ok(new));
        let old = Record::parse(&bytes(9, 344)).expect("that of Linux 5.0");
        assert_eq!((old.task, old.process, old.is_last, old.knows_process), (4243, 4243, true, false));
        assert_eq!(old.sums, new.sums);
        assert_eq!(new.sums.run_delay_ns, 77);
    }

    #[test]
    fn forms_that_are_not_known_are_refused() {
        assert_eq!(Record::parse(&bytes(15, 560)), Err(facts::unknown_version(15, 560)));
        assert_eq!(Record::parse(&bytes(1, 200)), Err(facts::unknown_version(1, 200)));
        assert_eq!(Record::parse(&[]), Err(facts::unknown_version(0, 0)));
    }
}
