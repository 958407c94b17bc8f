//! What one more request costs a device, and how fast it is read sequentially: measured with few
//! reads that bypass the page cache.
//!
//! Reading a fragmented file takes T = bytes / bandwidth + fragments * cost of a request. The
//! kernel reads files ahead, with many requests in progress at a time, and so does this
//! measurement: the cost of a request is how much later the last of many completes for each one
//! that is added.

use std::{
    fs::{File, OpenOptions, metadata},
    io::{self, Seek, SeekFrom},
    os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use memmap2::MmapMut;
use sysdock_table::{Cancel, Fact, facts::disk as facts};

use crate::target::Target;

/// Random reads, of a size that every device accepts without the cache [B].
const RANDOM: Reads = Reads { count: 128, bytes: 4096, under_way: 8, limit: Duration::from_millis(250) };
/// Sequential reads. Both together stay below 64 MiB and half a second, however slow the device is,
/// except for its last reads.
const IN_ORDER: Reads = Reads { count: 32, bytes: 1 << 20, under_way: 4, limit: Duration::from_millis(100) };
/// On a device that is faster than this, random reads are repeated, and the median counts: a busy
/// machine delays some of them.
const FAST: Duration = Duration::from_millis(60);
const ROUNDS: usize = 5;
/// With fewer reads there is no result.
const FEWEST: usize = 4;

/// A series of reads.
#[derive(Clone, Copy, Debug)]
struct Reads {
    count: usize,
    bytes: usize,
    /// Number of requests in progress at a time.
    under_way: usize,
    /// No read begins later.
    limit: Duration,
}

/// Measured performance of a device.
#[derive(Debug)]
pub struct Cost {
    /// Cost of one more request, beyond the transfer of its bytes [ns].
    pub request_ns: u64,
    /// Bandwidth of large sequential requests.
    pub bytes_per_second: u64,
    /// The reads that were made for the measurement.
    pub measurement: Fact,
}

/// Measure the device of a target.
///
/// # Errors
/// Why it was not measured: no block device, no right to read it, a read that failed.
pub fn measure(target: &Target, cancel: &Cancel) -> Result<Cost, Fact> {
    let path = target.device();
    let name = || path.to_string_lossy().into_owned();
    if !metadata(path).is_ok_and(|status| status.file_type().is_block_device()) {
        return Err(facts::no_block_device(name()));
    }
    let failed = |error: io::Error| facts::device_unreadable(name(), error.to_string());
    let too_slow = || facts::device_too_slow(name());
    let mut file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path).map_err(failed)?;
    let size = file.seek(SeekFrom::End(0)).map_err(failed)?;
    let needed = (IN_ORDER.count * IN_ORDER.bytes) as u64;
    if size < needed {
        return Err(facts::device_too_small(name(), needed >> 20));
    }
    let start = Instant::now();
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    let mut random = Random(u64::from(seed) | 1);
    let mut place = |bytes: u64| random.next() % (size / bytes) * bytes;
    let (mut rounds, mut reads) = (Vec::new(), 0);
    while rounds.len() < ROUNDS && (rounds.is_empty() || start.elapsed() < FAST) {
        let places: Vec<u64> = (0..RANDOM.count).map(|_| place(RANDOM.bytes as u64)).collect();
        let apart = timed(&file, &RANDOM, &places, cancel).map_err(failed)?;
        reads += apart.len();
        rounds.push(time_of_each(&apart).ok_or_else(too_slow)?);
    }
    let first = place(IN_ORDER.bytes as u64).min(size - needed) / RANDOM.bytes as u64 * RANDOM.bytes as u64;
    let places: Vec<u64> = (0..IN_ORDER.count as u64).map(|number| first + number * IN_ORDER.bytes as u64).collect();
    let in_order = timed(&file, &IN_ORDER, &places, cancel).map_err(failed)?;
    let (each, large) = (median(rounds), time_of_each(&in_order).ok_or_else(too_slow)?);
    let bytes_ns = large * RANDOM.bytes as f64 / IN_ORDER.bytes as f64;
    Ok(Cost {
        request_ns: (each - bytes_ns).max(1.0) as u64,
        bytes_per_second: (IN_ORDER.bytes as f64 * 1e9 / large) as u64,
        measurement: description(reads, in_order.len(), start.elapsed()),
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn description(apart: usize, in_order: usize, time: Duration) -> Fact {
    facts::measured_by_reads(
        apart,
        RANDOM.bytes,
        RANDOM.under_way,
        in_order,
        IN_ORDER.bytes,
        IN_ORDER.under_way,
        time.as_nanos() as u64,
    )
}

/// Read at these offsets. Returns when each read completed, in that order.
fn timed(file: &File, reads: &Reads, places: &[u64], cancel: &Cancel) -> io::Result<Vec<Duration>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(places.len()));
    let start = Instant::now();
    let work = || -> io::Result<()> {
        let mut buffer = Buffer::new(reads.bytes)?;
        while start.elapsed() < reads.limit && !cancel.requested() {
            let Some(place) = places.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            buffer.fill(file, *place)?;
            done.lock().unwrap_or_else(PoisonError::into_inner).push(start.elapsed());
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..reads.under_way).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })?;
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable();
    Ok(done)
}

/// How much later each further read completed [ns]: the slope of the line closest to all. Bursts of
/// a device, and the start of threads, have little influence on it.
fn time_of_each(done: &[Duration]) -> Option<f64> {
    if done.len() < FEWEST {
        return None;
    }
    let count = done.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let spread = count * (count * count - 1.0) / 12.0;
    let slope: f64 = (0_u32..).zip(done).map(|(number, time)| (f64::from(number) - middle) * time.as_nanos() as f64).sum();
    Some((slope / spread).max(1.0))
}

/// Xorshift (Marsaglia, 2003): offsets that differ between scans, so that no cache of the device
/// contains them.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Memory for O_DIRECT, aligned to a page.
struct Buffer(MmapMut);

impl Buffer {
    fn new(bytes: usize) -> io::Result<Self> {
        MmapMut::map_anon(bytes).map(Buffer)
    }

    /// Fill the buffer from an offset.
    fn fill(&mut self, file: &File, place: u64) -> io::Result<()> {
        file.read_exact_at(&mut self.0, place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_each_read_is_the_slope() {
        let even: Vec<Duration> = (0..50).map(|number| Duration::from_micros(700 + 20 * number)).collect();
        assert!((time_of_each(&even).unwrap() - 20_000.0).abs() < 1.0);
        // 10 at once every 100 ms, as with a throttle of 100 per second.
        let bursts: Vec<Duration> = (0..40).map(|number| Duration::from_millis(100 * (number / 10))).collect();
        assert!((time_of_each(&bursts).unwrap() / 1e7 - 1.0).abs() < 0.1);
        assert!(time_of_each(&even[..3]).is_none());
    }
}
