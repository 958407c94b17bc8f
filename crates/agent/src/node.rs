//! The node's own counters: devices, network, NFS mounts and Lustre. The kernel keeps them; their
//! rows are separate from those of jobs.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use sysdock_bpf::accounting::mount_path;
use sysdock_mounts as mounts;
use sysdock_table::rows::JobSamples;

use crate::rows::{Origin, empty_sample};

const SECTOR: u64 = 512;
const MS: u64 = 1_000_000;

/// File systems that contain no files but interfaces of the kernel: all of them are one target.
const OF_KERNEL: [&str; 19] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "proc",
    "pstore",
    "rpc_pipefs",
    "securityfs",
    "sysfs",
    "tracefs",
];

/// Mounted file systems.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mounts {
    /// By device (`st_dev`): the first mount point, and the type of the file system.
    devices: BTreeMap<u64, (String, String)>,
    /// All mount points with their devices, and links in the root directory that lead to them.
    pub(crate) points: Vec<(Vec<u8>, u64)>,
}

impl Mounts {
    pub(crate) fn read() -> io::Result<Mounts> {
        let all = mounts::of_host()?;
        let mut found = Mounts::default();
        for mount in &all {
            let named = if OF_KERNEL.contains(&mount.fs_type.as_str()) {
                ("(kernel)".into(), "kernel".into())
            } else {
                (mount.point.to_string_lossy().into_owned(), mount.fs_type.clone())
            };
            found.devices.entry(mount.device).or_insert(named);
            found.points.push((mount_path(&mount.point), mount.device));
        }
        let links = fs::read_dir("/").into_iter().flatten().flatten();
        for link in links.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink())) {
            let Ok(target) = fs::canonicalize(link.path()) else { continue };
            if let Some(mount) = mounts::innermost(all.clone(), &target) {
                found.points.push((mount_path(&link.path()), mount.device));
            }
        }
        Ok(found)
    }

    pub(crate) fn of(&self, device: u64) -> Option<&(String, String)> {
        self.devices.get(&device)
    }
}

/// One device, interface or mount, with the kernel's counters for it, by column of `job_samples`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    group: &'static str,
    target: String,
    file_system: Option<String>,
    /// The job, if a Lustre server counts for one.
    job: Option<String>,
    numbers: BTreeMap<&'static str, u64>,
}

/// Reads the node's counters repeatedly.
#[derive(Debug)]
pub(crate) struct Node {
    /// `/`, except in tests.
    root: PathBuf,
    before: Counted,
}

/// Counters by group, target and job; each by the name of its column.
pub(crate) type Counted = BTreeMap<(&'static str, String, Option<String>), BTreeMap<&'static str, u64>>;

impl Node {
    pub(crate) fn new(root: &Path) -> Node {
        Node { root: root.into(), before: BTreeMap::new() }
    }

    /// What was done since the kept counters, which is nothing if none are kept; and the counters
    /// now.
    pub(crate) fn sample(&self, origin: &Origin, now_ns: i64, interval_ns: i64) -> (Vec<JobSamples<'static>>, Counted) {
        let now = self.read();
        let key = |one: &Counters| (one.group, one.target.clone(), one.job.clone());
        let mut samples = Vec::new();
        for counters in &now {
            let Some(before) = self.before.get(&key(counters)) else { continue };
            // A counter that became smaller was reset: what was counted since then is unknown.
            let change: BTreeMap<&'static str, u64> = counters
                .numbers
                .iter()
                .map(|(name, number)| (*name, number.saturating_sub(before.get(name).copied().unwrap_or(0))))
                .collect();
            if change.values().any(|number| *number > 0) {
                let mut sample = empty_sample(origin, now_ns, interval_ns, counters.group);
                sample.target = Some(counters.target.clone().into());
                sample.file_system = counters.file_system.clone().map(Into::into);
                sample.job_id = counters.job.clone().map(Into::into);
                fill(&mut sample, &change);
                samples.push(sample);
            }
        }
        (samples, now.into_iter().map(|one| (key(&one), one.numbers)).collect())
    }

    /// The rows of these counters are durable: the next reading is compared with these.
    pub(crate) fn keep(&mut self, counted: Counted) {
        self.before = counted;
    }

    fn read(&self) -> Vec<Counters> {
        let text = |path: &str| fs::read_to_string(self.root.join(path)).unwrap_or_default();
        let mut all: Vec<Counters> = text("proc/diskstats").lines().filter_map(|line| device(line, &self.root)).collect();
        all.extend(text("proc/net/dev").lines().filter_map(interface));
        // A service has mounts of its own; the first process sees those of the host.
        let of_host = Some(text("proc/1/mountstats")).filter(|text| !text.is_empty());
        all.extend(nfs(&of_host.unwrap_or_else(|| text("proc/self/mountstats"))));
        for (group, pattern) in [("lustre", "llite"), ("lustre_server", "mdt"), ("lustre_server", "obdfilter")] {
            // The folder depends on the version of Lustre.
            for above in ["proc/fs/lustre", "sys/kernel/debug/lustre"] {
                for entry in fs::read_dir(self.root.join(above).join(pattern)).into_iter().flatten().flatten() {
                    let target = entry.file_name().to_string_lossy().into_owned();
                    let file = if group == "lustre" { "stats" } else { "job_stats" };
                    let Ok(text) = fs::read_to_string(entry.path().join(file)) else { continue };
                    let is_client = group == "lustre";
                    all.extend(if is_client { vec![lustre_client(&target, &text)] } else { lustre_jobs(&target, &text) });
                }
            }
        }
        all
    }
}

/// Fill in counters by the names of their columns.
fn fill(sample: &mut JobSamples<'static>, numbers: &BTreeMap<&'static str, u64>) {
    for (name, number) in numbers {
        let number = Some(i64::try_from(*number).unwrap_or(i64::MAX));
        match *name {
            "read_bytes" => sample.read_bytes = number,
            "written_bytes" => sample.written_bytes = number,
            "reads" => sample.reads = number,
            "writes" => sample.writes = number,
            "opens" => sample.opens = number,
            "creates" => sample.creates = number,
            "closes" => sample.closes = number,
            "stats" => sample.stats = number,
            "readdirs" => sample.readdirs = number,
            "removes" => sample.removes = number,
            "renames" => sample.renames = number,
            "makes" => sample.makes = number,
            "attributes" => sample.attributes = number,
            "syncs" => sample.syncs = number,
            "errors" => sample.errors = number,
            "io_time_ns" => sample.io_time_ns = number,
            "io_wait_ns" => sample.io_wait_ns = number,
            _ => unreachable!("no column {name}"),
        }
    }
}

/// Counters from a line of /proc/diskstats (Documentation/admin-guide/iostats.rst), for whole
/// devices only.
fn device(line: &str, root: &Path) -> Option<Counters> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let name = *fields.get(2)?;
    if name.starts_with("ram") || !root.join("sys/block").join(name).exists() {
        return None;
    }
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let numbers = [
        ("reads", number(3)?),
        ("read_bytes", number(5)?.saturating_mul(SECTOR)),
        ("writes", number(7)?),
        ("written_bytes", number(9)?.saturating_mul(SECTOR)),
        ("io_wait_ns", number(12)?.saturating_mul(MS)),
        ("io_time_ns", number(13)?.saturating_mul(MS)),
        ("syncs", number(18).unwrap_or(0)),
    ];
    Some(Counters { group: "device", target: name.into(), numbers: numbers.into(), ..Counters::default() })
}

fn add_to(number: &mut u64, more: u64) {
    *number = number.saturating_add(more);
}

/// Counters from a line of /proc/net/dev.
fn interface(line: &str) -> Option<Counters> {
    let (name, numbers) = line.split_once(':')?;
    let fields: Vec<u64> = numbers.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    let name = name.trim();
    // Received: bytes, packets, errors, dropped, and four more; the same of those that were sent.
    let [read_bytes, reads, bad, lost, _, _, _, _, written_bytes, writes, unsent, dropped, _, _, _, _, ..] = fields[..] else {
        return None;
    };
    if name == "lo" {
        return None;
    }
    let errors = [bad, lost, unsent, dropped].into_iter().fold(0, u64::saturating_add);
    let numbers =
        [("read_bytes", read_bytes), ("reads", reads), ("written_bytes", written_bytes), ("writes", writes), ("errors", errors)];
    Some(Counters { group: "network", target: name.into(), numbers: numbers.into(), ..Counters::default() })
}

/// Operations of NFS, each with the column that counts it.
const NFS: [(&str, &str); 22] = [
    ("READ", "reads"),
    ("WRITE", "writes"),
    ("OPEN", "opens"),
    ("OPEN_NOATTR", "opens"),
    ("CREATE", "creates"),
    ("CLOSE", "closes"),
    ("GETATTR", "stats"),
    ("LOOKUP", "stats"),
    ("LOOKUPP", "stats"),
    ("ACCESS", "stats"),
    ("READLINK", "stats"),
    ("READDIR", "readdirs"),
    ("READDIRPLUS", "readdirs"),
    ("REMOVE", "removes"),
    ("RMDIR", "removes"),
    ("RENAME", "renames"),
    ("MKDIR", "makes"),
    ("SYMLINK", "makes"),
    ("LINK", "makes"),
    ("MKNOD", "makes"),
    ("SETATTR", "attributes"),
    ("COMMIT", "syncs"),
];

/// Counters of NFS mounts from /proc/self/mountstats (fs/nfs/super.c and net/sunrpc/stats.c of the
/// kernel): bytes from and to the server, and requests.
fn nfs(text: &str) -> Vec<Counters> {
    let mut all: Vec<Counters> = Vec::new();
    let mut is_nfs = false;
    for line in text.lines() {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        if let ["device", _, "mounted", "on", point, "with", "fstype", fs_type, ..] = fields[..] {
            is_nfs = fs_type == "nfs" || fs_type == "nfs4";
            if is_nfs {
                let file_system = Some(fs_type.to_string());
                all.push(Counters { group: "nfs", target: point.into(), file_system, ..Counters::default() });
            }
            continue;
        }
        let Some(counters) = all.last_mut().filter(|_| is_nfs) else { continue };
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        let mut add = |name: &'static str, more: u64| add_to(counters.numbers.entry(name).or_insert(0), more);
        match fields.first() {
            // Bytes of normal reads and writes, of direct reads and writes, read from and written
            // to the server.
            Some(&"bytes:") => {
                add("read_bytes", number(5));
                add("written_bytes", number(6));
            }
            // Requests, transmissions, timeouts, bytes sent and received, then ms: in the queue,
            // until the answer, in total.
            Some(operation) => {
                let Some((_, column)) = NFS.iter().find(|(name, _)| operation.strip_suffix(':') == Some(name)) else { continue };
                add(column, number(1));
                add("errors", number(2).saturating_sub(number(1)));
                add("io_wait_ns", number(7).saturating_mul(MS));
                add("io_time_ns", number(8).saturating_mul(MS));
            }
            None => {}
        }
    }
    all
}

/// Counters of llite, each with its column.
const LLITE: [(&str, &str); 17] = [
    ("open", "opens"),
    ("close", "closes"),
    ("fsync", "syncs"),
    ("readdir", "readdirs"),
    ("setattr", "attributes"),
    ("truncate", "attributes"),
    ("getattr", "stats"),
    ("statfs", "stats"),
    ("inode_permission", "stats"),
    ("create", "creates"),
    ("link", "makes"),
    ("symlink", "makes"),
    ("mkdir", "makes"),
    ("mknod", "makes"),
    ("unlink", "removes"),
    ("rmdir", "removes"),
    ("rename", "renames"),
];

/// Counters from `llite/*/stats` of a client: `read_bytes 5 samples [bytes] 0 4096 20480`.
fn lustre_client(target: &str, text: &str) -> Counters {
    let mut numbers: BTreeMap<&'static str, u64> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        let mut add = |name: &'static str, more: u64| add_to(numbers.entry(name).or_insert(0), more);
        match fields.first() {
            Some(&"read_bytes") => {
                add("reads", number(1));
                add("read_bytes", number(6));
            }
            Some(&"write_bytes") => {
                add("writes", number(1));
                add("written_bytes", number(6));
            }
            Some(name) => {
                if let Some((_, column)) = LLITE.iter().find(|(known, _)| known == name) {
                    add(column, number(1));
                }
            }
            None => {}
        }
    }
    Counters { group: "lustre", target: target.into(), file_system: Some("lustre".into()), job: None, numbers }
}

/// Counters from `job_stats` of a server, in YAML: a job, then `name: { samples: 5, unit: bytes,
/// min: 0, max: 4096, sum: 20480 }`.
fn lustre_jobs(target: &str, text: &str) -> Vec<Counters> {
    let mut all: Vec<Counters> = Vec::new();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let name = name.trim_start_matches(['-', ' ']).trim();
        if name == "job_id" {
            let job = Some(rest.trim().trim_matches('"').to_string());
            let file_system = Some("lustre".into());
            all.push(Counters { group: "lustre_server", target: target.into(), file_system, job, ..Counters::default() });
            continue;
        }
        let Some(counters) = all.last_mut() else { continue };
        let field = |key: &str| {
            let after = rest.split_once(&format!("{key}:"))?.1;
            after.trim_start().split(|letter: char| !letter.is_ascii_digit()).next()?.parse::<u64>().ok()
        };
        let (samples, sum) = (field("samples").unwrap_or(0), field("sum").unwrap_or(0));
        let mut add = |name: &'static str, more: u64| add_to(counters.numbers.entry(name).or_insert(0), more);
        match name {
            "read_bytes" | "write_bytes" => {
                add(if name == "read_bytes" { "reads" } else { "writes" }, samples);
                add(if name == "read_bytes" { "read_bytes" } else { "written_bytes" }, sum);
            }
            "sync" => add("syncs", samples),
            "punch" => add("attributes", samples),
            name => {
                if let Some((_, column)) = LLITE.iter().find(|(known, _)| *known == name) {
                    add(column, samples);
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(counters: &Counters) -> Vec<(&'static str, u64)> {
        counters.numbers.iter().filter(|(_, number)| **number > 0).map(|(name, number)| (*name, *number)).collect()
    }

    #[test]
    fn what_lies_below_a_root_is_read_and_compared() {
        let root = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(root.path().join("proc/net")).expect("a folder");
        fs::create_dir_all(root.path().join("sys/block/vda")).expect("a folder");
        let write = |reads: u64, bytes: u64| {
            let line = format!(" 254 0 vda {reads} 0 80 10 5 0 16 7 0 11 17 0 0 0 0 2 1\n 254 1 vda1 1 1 1 1 1 1 1 1 1 1 1\n");
            fs::write(root.path().join("proc/diskstats"), line).expect("written");
            let line =
                format!("Inter-| Receive\n eth0: {bytes} 3 1 0 0 0 0 0 50 2 0 1 0 0 0 0\n lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n");
            fs::write(root.path().join("proc/net/dev"), line).expect("written");
        };
        let mut node = Node::new(root.path());
        let origin = Origin::default();
        let mut sample = |now_ns: i64| {
            let (samples, counted) = node.sample(&origin, now_ns, 1);
            node.keep(counted);
            samples
        };
        write(5, 100);
        assert!(sample(1).is_empty(), "there is nothing to compare with");
        write(9, 160);
        let samples = sample(2);
        let of = |group: &str| samples.iter().find(|sample| sample.counter_group == group).expect("it changed");
        assert_eq!((samples.len(), of("device").reads, of("device").read_bytes), (2, Some(4), Some(0)));
        assert_eq!((of("network").target.as_deref(), of("network").read_bytes), (Some("eth0"), Some(60)));
        // The counter was reset, as by a driver that was loaded again.
        write(1, 160);
        assert!(sample(3).is_empty());
    }

    #[test]
    fn mounts_of_nfs_have_bytes_and_requests_of_the_server() {
        let text = "device sysfs mounted on /sys with fstype sysfs\n\
                    device srv:/export mounted on /data with fstype nfs4 statvers=1.1\n\
                    \topts:\trw,vers=4.2\n\tage:\t1000\n\tbytes:\t10 20 0 0 4096 8192 1 2\n\
                    \tper-op statistics\n\t        READ: 3 4 0 300 4500 1 20 22 0\n\t       WRITE: 2 2 0 9000 200 0 8 9 0\n\
                    \t     GETATTR: 7 7 0 0 0 0 3 4 0\n\t      LOOKUP: 5 5 0 0 0 0 1 1 0\n\
                    device proc mounted on /proc with fstype proc\n\tbytes:\t1 1 1 1 1 1 1 1\n";
        let all = nfs(text);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].target.as_str(), all[0].file_system.as_deref()), ("/data", Some("nfs4")));
        let expected = [
            ("errors", 1),
            ("io_time_ns", 36 * MS),
            ("io_wait_ns", 32 * MS),
            ("read_bytes", 4096),
            ("reads", 3),
            ("stats", 12),
            ("writes", 2),
            ("written_bytes", 8192),
        ];
        assert_eq!(numbers(&all[0]), expected);
    }

    #[test]
    fn clients_and_servers_of_lustre() {
        let text = "snapshot_time             1700000000.1 secs.nsecs\n\
                    read_bytes                5 samples [bytes] 0 4096 20480\n\
                    write_bytes               2 samples [bytes] 4096 4096 8192\n\
                    open                      3 samples [reqs]\ngetattr                   4 samples [reqs]\n";
        let client = lustre_client("home-ffff", text);
        let expected = [("opens", 3), ("read_bytes", 20480), ("reads", 5), ("stats", 4), ("writes", 2), ("written_bytes", 8192)];
        assert_eq!(numbers(&client), expected);
        let text = "job_stats:\n- job_id:          4242\n  snapshot_time:   1700000000\n\
                    \x20 read_bytes:      { samples:           2, unit: bytes, min:    4096, max:    4096, sum:            8192 }\n\
                    \x20 open:            { samples:           3, unit:  reqs }\n\
                    - job_id:          \"cp.1000\"\n  write_bytes:     { samples: 1, unit: bytes, min: 7, max: 7, sum: 7 }\n";
        let jobs = lustre_jobs("home-OST0000", text);
        assert_eq!(jobs.iter().map(|one| one.job.as_deref()).collect::<Vec<_>>(), [Some("4242"), Some("cp.1000")]);
        assert_eq!(numbers(&jobs[0]), [("opens", 3), ("read_bytes", 8192), ("reads", 2)]);
        assert_eq!(numbers(&jobs[1]), [("writes", 1), ("written_bytes", 7)]);
    }
}
