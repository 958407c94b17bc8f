//! The clocks of a kernel (kernel/time/timekeeping.c, kernel/sched/clock.c), for comparing a dump
//! with other recordings.
//!
//! Three clocks matter. Start times of tasks are *boot time*, which includes suspension. The log
//! and the scheduler use their own *log clock*, which is never corrected. The *wall clock* is what
//! other recordings have. The timekeeper knows the wall clock and boot time at its last tick; the
//! log clock at the same moment is computed from the same cycles if both clocks count them, else
//! from the kernel's last comparison.

use sysdock_table::{Fact, facts::clock as facts};

use crate::{error::Fault, kernel::Kernel};

/// Offsets between the three clocks of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The wall clock at boot [ns since the epoch].
    pub epoch_of_boot_ns: i64,
    /// Boot time when the monotonic clock was 0: the time in suspension.
    pub boot_of_monotonic_ns: i64,
    /// Boot time when the log clock was 0.
    pub boot_of_log_ns: i64,
    /// Boot time at the last tick of the timekeeper.
    pub last_tick_ns: i64,
    /// How the log clock was compared.
    pub log: LogClock,
}

/// How well the offset of the log clock is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogClock {
    /// Both clocks count the same cycles.
    SameCycles,
    /// The log uses the wall clock, from tick to tick.
    ByTicks,
    /// By the kernel's last comparison, which may be some time ago.
    ComparedOnce,
}

impl LogClock {
    /// What it means for times of the log, as a note in the recording.
    #[must_use]
    pub fn note(self) -> Fact {
        match self {
            LogClock::SameCycles => facts::same_cycles(),
            LogClock::ByTicks => facts::tick_to_tick(),
            LogClock::ComparedOnce => facts::drifted(),
        }
    }
}

impl Clock {
    /// A time of the log, or of the scheduler, since the epoch.
    #[must_use]
    pub fn epoch_of_log(&self, ns: u64) -> i64 {
        self.epoch_of_boot(self.boot_of_log(ns))
    }

    /// A time of the log, or of the scheduler, as boot time.
    #[must_use]
    pub fn boot_of_log(&self, ns: u64) -> i64 {
        self.boot_of_log_ns.wrapping_add(ns.cast_signed())
    }

    /// A time of the monotonic clock as boot time.
    #[must_use]
    pub fn boot_of_monotonic(&self, ns: u64) -> i64 {
        self.boot_of_monotonic_ns.wrapping_add(ns.cast_signed())
    }

    /// A boot time, since the epoch.
    #[must_use]
    pub fn epoch_of_boot(&self, ns: i64) -> i64 {
        self.epoch_of_boot_ns.wrapping_add(ns)
    }
}

/// The timekeeper at its last tick.
struct Tick {
    clocksource: String,
    cycles: u64,
    wall_ns: i64,
    to_wall_ns: i64,
    to_boot_ns: i64,
}

impl Kernel {
    /// The clocks when the kernel stopped.
    ///
    /// # Errors
    /// A [`Fault`]: the timekeeper cannot be read, or is inconsistent.
    pub fn clock(&self) -> Result<Clock, Fault> {
        let tick = self.tick()?;
        let monotonic = tick.wall_ns.wrapping_sub(tick.to_wall_ns);
        let (ahead, log) = self.log_clock(&tick, monotonic)?;
        Ok(Clock {
            epoch_of_boot_ns: tick.to_wall_ns.wrapping_sub(tick.to_boot_ns),
            boot_of_monotonic_ns: tick.to_boot_ns,
            boot_of_log_ns: tick.to_boot_ns.wrapping_sub(ahead),
            last_tick_ns: monotonic.wrapping_add(tick.to_boot_ns),
            log,
        })
    }

    fn tick(&self) -> Result<Tick, Fault> {
        const NS: u64 = 1_000_000_000;
        // Limits for the shift of a clocksource, and for the seconds of a date.
        const MOST_SHIFT: u64 = 63;
        const MOST_SECONDS: u64 = 1 << 33;
        // Before 6.13 the structure around it has no name, and begins with a counter.
        let inside = self.any_field("tk_data", &["timekeeper"]).map(|field| field.offset);
        let inside = inside
            .or_else(|_| self.types.size_of("seqcount_raw_spinlock").map(|size| size.next_multiple_of(8)).ok_or(Fault::NoType))?;
        let keeper = self.symbol("tk_core")?.wrapping_add(inside);
        let read = |path: &str| self.number(keeper, self.field("timekeeper", path)?);
        let name = self.number(read("tkr_mono.clock")?, self.field("clocksource", "name")?)?;
        let (seconds, shift) = (read("xtime_sec")?, read("tkr_mono.shift")?);
        if seconds > MOST_SECONDS || shift > MOST_SHIFT {
            return Err(Fault::Damaged);
        }
        Ok(Tick {
            clocksource: self.string(name)?,
            cycles: read("tkr_mono.cycle_last")?,
            wall_ns: (seconds * NS).wrapping_add(read("tkr_mono.xtime_nsec")? >> shift).cast_signed(),
            to_wall_ns: read("offs_real")?.cast_signed(),
            to_boot_ns: read("offs_boot")?.cast_signed(),
        })
    }

    /// How far the log clock was ahead of the monotonic clock.
    fn log_clock(&self, tick: &Tick, monotonic: i64) -> Result<(i64, LogClock), Fault> {
        let variable = |name: &str| Ok::<i64, Fault>(self.memory.u64(self.symbol(name)?)?.cast_signed());
        let stable = self.number(self.symbol("__sched_clock_stable")?, self.field("static_key", "enabled")?)? as u32;
        let compared = variable("__gtod_offset")?;
        if stable.cast_signed() <= 0 {
            return Ok((compared, LogClock::ByTicks));
        }
        // In a guest of KVM the scheduler uses the host's clock, even if the timekeeper counts
        // cycles.
        let of_host = variable("kvm_sched_clock_offset").unwrap_or(0);
        let counted = match tick.clocksource.as_str() {
            "kvm-clock" if of_host != 0 => Some(tick.cycles.cast_signed().wrapping_sub(of_host)),
            "tsc" | "tsc-early" if of_host == 0 => self.ns_of_cycles(tick.cycles).ok(),
            _ => None,
        };
        let Some(counted) = counted else { return Ok((compared, LogClock::ComparedOnce)) };
        let log = counted.wrapping_add(variable("__sched_clock_offset")?);
        Ok((log.wrapping_sub(monotonic), LogClock::SameCycles))
    }

    /// `cycles_2_ns` of arch/x86/kernel/tsc.c.
    fn ns_of_cycles(&self, cycles: u64) -> Result<i64, Fault> {
        let factors = self.per_cpu(self.symbol("cyc2ns")?, 0)?;
        let (data, sequence) = (self.field("cyc2ns", "data")?, self.field("cyc2ns", "seq")?);
        let copy = self.number(factors, sysdock_symbols::btf::Field { size: 4, ..sequence })? & 1;
        let copy = factors.wrapping_add(data.offset + copy * self.types.element_size(&data) as u64);
        let read = |member: &str| self.number(copy, self.field("cyc2ns_data", member)?);
        let (factor, shift) = (read("cyc2ns_mul")?, read("cyc2ns_shift")?);
        let ns = (u128::from(cycles) * u128::from(factor)).checked_shr(shift as u32).ok_or(Fault::Damaged)?;
        Ok((ns as u64).wrapping_add(read("cyc2ns_offset")?).cast_signed())
    }
}
