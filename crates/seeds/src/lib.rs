//! Inputs for the readers, in their ordinary tests: the corpora that fuzzing has kept (`testdata/fuzz`), heads of real logs, and mutations of
//! both, the same each time. `tools/break fuzz` goes further: it is guided by the branches that an input takes.

use std::{
    env,
    fs::{self, File},
    io::Read,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use flate2::read::GzDecoder;

/// Memory that a process with readers of made-up input may take [B].
const MOST_MEMORY: u64 = 2 << 30;

/// Times that the watcher looks, five seconds apart, before an input counts as one that is never done: whatever else the machine does, reading
/// one takes milliseconds.
const PATIENCE: u64 = 120;

/// A folder for what a target writes, in memory where there is one for it.
///
/// # Panics
/// If none can be made.
#[must_use]
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}

/// Size of a sample: `all`, or a tenth of it unless the environment variable `SYSDOCK_SAMPLES` is `more` or `all`, as in
/// `python/tests/sampling.py`.
///
/// # Panics
/// If the variable has another value.
#[must_use]
pub fn sampled(all: usize) -> usize {
    match env::var("SYSDOCK_SAMPLES").as_deref() {
        Err(_) | Ok("few") => all.div_ceil(10),
        Ok("more" | "all") => all,
        Ok(other) => panic!("SYSDOCK_SAMPLES is {other:?}: few, more or all"),
    }
}

/// Give every seed of a target to `read`, then a sample of `mutations` mutated ones, cut to `longest` bytes. An input that `read` does not end
/// well with is kept in `fuzz/artifacts`, where `tools/break fuzz 1 TARGET FILE` takes it from.
///
/// # Panics
/// If `read` does, if it takes too much memory, or if there are no seeds.
pub fn each(target: &str, mutations: usize, longest: usize, read: impl Fn(&[u8], &Path)) {
    let seeds: Vec<Vec<u8>> = seeds(target)
        .into_iter()
        .map(|mut seed| {
            seed.truncate(longest);
            seed
        })
        .collect();
    assert!(!seeds.is_empty(), "no seeds for {target}");
    let folder = folder();
    let progress = watched(target);
    let one = |input: &[u8]| {
        progress.fetch_add(1, Ordering::Relaxed);
        if let Err(cause) = panic::catch_unwind(AssertUnwindSafe(|| read(input, folder.path()))) {
            report(&format!("{target}: the input is kept: {}", keep(target, input).display()));
            panic::resume_unwind(cause);
        }
    };
    seeds.iter().for_each(|seed| one(seed));
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ target.bytes().fold(0, |sum, byte| sum << 8 ^ u64::from(byte)));
    for _ in 0..sampled(mutations) {
        let mut input = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(4) {
            mutate(&mut input, &seeds, &mut random);
        }
        input.truncate(longest);
        one(&input);
    }
    progress.store(u64::MAX, Ordering::Relaxed);
    assert!(most_memory() <= MOST_MEMORY, "{target}: {} MB", most_memory() >> 20);
}

#[allow(clippy::print_stderr, reason = "it is for who reads the output of a test")]
fn report(text: &str) {
    eprintln!("{text}");
}

/// Number of the input that is read; where it stays the same for too long, the process ends. `u64::MAX`: the last one was.
fn watched(target: &str) -> Arc<AtomicU64> {
    let progress = Arc::new(AtomicU64::new(0));
    let (watched, target) = (Arc::clone(&progress), target.to_string());
    thread::spawn(move || {
        let (mut last, mut times) = (0, 0);
        while last != u64::MAX && times < PATIENCE {
            thread::sleep(Duration::from_secs(5));
            let now = watched.load(Ordering::Relaxed);
            times = if now == last { times + 1 } else { 0 };
            last = now;
        }
        if last != u64::MAX {
            report(&format!("{target}: input {last} is never done"));
            process::abort();
        }
    });
    progress
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/seeds lies two folders deep").into()
}

fn keep(target: &str, input: &[u8]) -> PathBuf {
    let folder = root().join("fuzz/artifacts").join(target);
    fs::create_dir_all(&folder).expect("room on the disk");
    let file = folder.join(format!("test-{}", input.len()));
    fs::write(&file, input).expect("room on the disk");
    file
}

/// The most memory that this process has had [B].
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is stated");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let mut found = File::open(root().join(format!("testdata/fuzz/{target}.tar.gz"))).map_or_else(|_| Vec::new(), members);
    if ["lines", "rebuild", "import"].contains(&target) {
        for folder in ["strace", "strangers", "truss"] {
            heads(&root().join("testdata").join(folder), &mut found);
        }
    }
    found
}

/// The files of a compressed archive, in which names are short.
fn members(archive: File) -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    GzDecoder::new(archive).read_to_end(&mut bytes).expect("an archive");
    let (mut found, mut rest) = (Vec::new(), &bytes[..]);
    while let Some((head, after)) = rest.split_at_checked(512).filter(|(head, _)| head[0] != 0) {
        let length =
            str::from_utf8(&head[124..135]).ok().and_then(|text| usize::from_str_radix(text.trim(), 8).ok()).expect("a length");
        found.push(after[..length].to_vec());
        rest = &after[length.next_multiple_of(512)..];
    }
    found
}

/// What logs begin with: what is long teaches nothing new.
fn heads(folder: &Path, found: &mut Vec<Vec<u8>>) {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).expect("testdata").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            heads(&path, found);
        } else if !path.ends_with("README.md") {
            let most = if path.extension().is_some_and(|name| name == "gz") { 8192 } else { 4096 };
            let mut head = Vec::new();
            File::open(&path).expect("a log").take(most).read_to_end(&mut head).expect("a log");
            found.push(head);
        }
    }
}

/// Numbers that look random and are the same each time (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// Numbers at which something changes.
const EDGES: [u64; 12] =
    [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, i64::MAX as u64, u64::MAX];

/// One of the changes that fuzzers make, at one place.
fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len());
    let rest = input.len() - at;
    match random.below(8) {
        0 if rest > 0 => input[at] ^= 1 << random.below(8),
        1 if rest > 0 => input[at] = random.below(256) as u8,
        2 if rest > 0 => {
            let number = EDGES[random.below(EDGES.len())].to_le_bytes();
            let length = [1, 2, 4, 8][random.below(4)].min(rest);
            input[at..at + length].copy_from_slice(&number[..length]);
        }
        3 => drop(input.drain(at..at + random.below(rest.min(64) + 1))),
        4 => {
            let again: Vec<u8> = input[at..at + random.below(rest.min(64) + 1)].to_vec();
            let to = random.below(input.len() + 1);
            input.splice(to..to, again);
        }
        5 => {
            let word =
                ["0", "-1", "9223372036854775807", "18446744073709551616", "\n", "\0", "\"", "(", ")", "<", ">", ", ", "="];
            input.splice(at..at, word[random.below(word.len())].bytes());
        }
        6 => input.truncate(at),
        _ => {
            // The end of another one.
            let other = &seeds[random.below(seeds.len())];
            input.truncate(at);
            input.extend(&other[random.below(other.len())..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Random, mutate, seeds};

    #[test]
    fn there_are_seeds_and_mutations_are_the_same_each_time() {
        let seeds = seeds("lines");
        assert!(seeds.len() > 100);
        let some = || {
            let (mut random, mut input) = (Random(7), seeds[0].clone());
            (0..1000).for_each(|_| mutate(&mut input, &seeds, &mut random));
            input
        };
        assert_eq!(some(), some());
    }
}
