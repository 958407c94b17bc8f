//! Runs real programs whose actions are known, and compares the sums.

use std::{os::unix::fs::MetadataExt, process::Command};

use super::*;

fn variable(name: &str, kind: VariableKind, scheduler: u8, needs_marker: bool) -> Variable {
    Variable { name: name.into(), kind, scheduler, needs_marker }
}

fn variables() -> Vec<Variable> {
    vec![
        variable("SLURM_JOB_ID", VariableKind::Id, 0, false),
        variable("SLURM_JOB_NAME", VariableKind::Name, 0, false),
        variable("JOB_ID", VariableKind::Id, 1, true),
        variable("SGE_ROOT", VariableKind::Marker, 1, false),
    ]
}

/// `None`: this kernel, or this user, cannot load the programs; the reason is printed.
fn begin() -> Option<Accounting> {
    match Accounting::begin(&variables(), None) {
        Ok((accounting, left_out)) => {
            assert!(left_out.is_empty());
            Some(accounting)
        }
        Err(error) => {
            assert!(!rustix::process::geteuid().is_root(), "root may load programs: {error:?}");
            None
        }
    }
}

/// The counter of this name.
fn counter(calls: &Calls, name: &str) -> u64 {
    calls.counters().find(|(known, _)| *known == name).expect("a counter").1
}

#[test]
fn numbers_are_kept_in_their_order() {
    let all: [u64; 17] = std::array::from_fn(|place| place as u64 + 1);
    assert_eq!(<[u64; 17]>::from(Calls::from(all)), all);
    assert_eq!((Calls::from(all).calls[0], Calls::from(all).wait_ns), (1, 17));
    let all: [u64; 12] = std::array::from_fn(|place| place as u64 + 1);
    assert_eq!(<[u64; 12]>::from(Use::from(all)), all);
    assert_eq!((Use::from(all).counters[0], Use::from(all).ended, Use::from(all).last_ns), (1, 7, 12));
}

fn run(job: &str, script: &str, folder: &Path) {
    let status = Command::new("sh")
        .args(["-c", script])
        .env("SLURM_JOB_ID", job)
        .env("SLURM_JOB_NAME", "simulation of one")
        .current_dir(folder)
        .status()
        .expect("sh runs");
    assert!(status.success(), "{status}");
}

fn of_job<'r>(reading: &'r Reading, job: &str) -> Vec<&'r Account> {
    reading.accounts.values().filter(|account| account.job == job.as_bytes()).collect()
}

#[test]
fn calls_of_a_job_are_counted_exactly() {
    let Some(mut accounting) = begin() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let script = "mkdir d; dd if=/dev/zero of=d/f bs=64k count=16 conv=fsync 2>/dev/null; dd if=d/f of=/dev/null bs=4k 2>/dev/null; \
                  mv d/f d/g; rm d/g; rmdir d; cat missing 2>/dev/null; true";
    run("job-1", script, folder.path());
    let reading = accounting.read().expect("sums can be read");
    let accounts = of_job(&reading, "job-1");
    assert_eq!(accounts.len(), 1, "{accounts:?}");
    let account = accounts[0];
    assert_eq!((account.name.as_slice(), account.scheduler), (&b"simulation of one"[..], 0));
    let device = std::fs::metadata(folder.path()).expect("it is there").dev();
    let calls = reading.calls[&(account.id, device)];
    let of = |name: &str| counter(&calls, name);
    assert_eq!((calls.written_bytes, of("writes")), (1 << 20, 16), "{calls:?}");
    assert!(calls.read_bytes >= 1 << 20, "{calls:?}");
    assert_eq!((of("creates"), of("makes"), of("renames"), of("removes"), of("syncs")), (1, 1, 1, 2, 1), "{calls:?}");
    assert!(of("opens") >= 2 && of("closes") >= 3, "{calls:?}");
    assert!(calls.errors >= 1, "{calls:?}");
    let used = reading.uses[&account.id];
    assert!(used.ended >= 6, "sh and its programs: {used:?}");
    assert!(used.counters().any(|counter| counter.0 == "cpu_ns" && counter.1 > 0), "{used:?}");
    assert!(used.largest_bytes > 500_000, "{used:?}");
    assert_eq!((used.processes, used.threads), (0, 0), "{used:?}");
}

#[test]
fn children_without_the_variable_belong_to_the_job() {
    let Some(mut accounting) = begin() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    run("job-2", "env -i sh -c 'echo a > x'", folder.path());
    let reading = accounting.read().expect("sums can be read");
    let accounts = of_job(&reading, "job-2");
    let device = std::fs::metadata(folder.path()).expect("it is there").dev();
    let written: u64 = accounts.iter().map(|account| reading.calls[&(account.id, device)].written_bytes).sum();
    assert_eq!(written, 2);
}

#[test]
fn a_common_variable_needs_its_marker() {
    let Some(mut accounting) = begin() else { return };
    for (marker, job) in [(false, "common-1"), (true, "common-2")] {
        let mut command = Command::new("true");
        command.env("JOB_ID", job).env("A_LONG_ONE", "x".repeat(10_000));
        if marker {
            command.env("SGE_ROOT", "/opt/sge");
        }
        assert!(command.status().expect("true runs").success());
    }
    let reading = accounting.read().expect("sums can be read");
    assert!(of_job(&reading, "common-1").is_empty());
    assert_eq!(of_job(&reading, "common-2").len(), 1);
}

#[test]
fn files_of_a_job_have_their_names() {
    let Some(mut accounting) = begin() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    run("job-3", "for n in 1 2 3; do echo $n >> one; done; echo 1234567 > two", folder.path());
    let reading = accounting.read().expect("sums can be read");
    let account = of_job(&reading, "job-3")[0].id;
    let (files, left_out) = accounting.take_files().expect("files can be read");
    let written = |name: &str| {
        let path = folder.path().join(name).into_os_string().into_encoded_bytes();
        files.iter().filter(|file| file.account == account && file.path == path).map(|file| file.written_bytes).sum::<u64>()
    };
    assert_eq!((written("one"), written("two"), left_out), (6, 8, 0));
}

#[test]
fn what_is_pinned_is_found_and_goes_on() {
    let Some(accounting) = begin() else { return };
    drop(accounting);
    let folder = tempfile::tempdir().expect("a folder");
    let mounted = Command::new("mount").args(["-t", "bpf", "bpf"]).arg(folder.path()).status().expect("mount runs");
    assert!(mounted.success());
    let files = tempfile::tempdir().expect("a folder");
    let device = std::fs::metadata(files.path()).expect("it is there").dev();
    let generation = {
        let (accounting, _) = Accounting::begin(&variables(), Some(folder.path())).expect("as above");
        run("job-4", "echo a > x", files.path());
        assert!(!accounting.is_resumed());
        accounting.generation().to_string()
    };
    // The job has no process any more.
    run("job-4", "echo bc > x", files.path());
    let (mut accounting, _) = Accounting::begin(&variables(), Some(folder.path())).expect("as above");
    assert!(accounting.is_resumed());
    assert_eq!(accounting.generation(), generation);
    // A second agent would drop what this one has not read.
    assert!(Accounting::begin(&variables(), Some(folder.path())).is_err());
    assert!(Accounting::begin(&variables()[..1], Some(folder.path())).is_err());
    assert!(remove_pins(folder.path()).is_err());
    let reading = accounting.read().expect("sums can be read");
    let written: u64 = of_job(&reading, "job-4").iter().map(|one| reading.calls[&(one.id, device)].written_bytes).sum();
    assert_eq!(written, 5);
    drop(accounting);
    // Other settings need other programs.
    let (accounting, _) = Accounting::begin(&variables()[..1], Some(folder.path())).expect("as above");
    assert!(!accounting.is_resumed());
    drop(accounting);
    assert_eq!(remove_pins(folder.path()).expect("they can be removed"), 1);
    let unmounted = Command::new("umount").arg(folder.path()).status().expect("umount runs");
    assert!(unmounted.success());
}

#[test]
fn paths_lead_to_the_file_system_that_is_mounted_there() {
    let Some(mut accounting) = begin() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mount = folder.path().join("m");
    std::fs::create_dir(&mount).expect("a folder");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&mount).status().expect("mount runs");
    assert!(mounted.success());
    let (inner, outer) = (std::fs::metadata(&mount).expect("there").dev(), std::fs::metadata("/").expect("there").dev());
    accounting.set_mounts(&[(b"/".to_vec(), outer), (mount_path(&mount), inner)]).expect("mounts can be set");
    let path = mount.display();
    run("job-5", &format!("mkdir {path}/a {path}x; rmdir {path}/a {path}x; stat {path} >/dev/null"), folder.path());
    let reading = accounting.read().expect("sums can be read");
    let account = of_job(&reading, "job-5")[0].id;
    let of = |device: u64, name: &str| counter(&reading.calls[&(account, device)], name);
    assert_eq!((of(inner, "makes"), of(inner, "removes"), of(outer, "makes"), of(outer, "removes")), (1, 1, 1, 1));
    assert_eq!(of(inner, "stats"), 1);
    let unmounted = Command::new("umount").arg(&mount).status().expect("umount runs");
    assert!(unmounted.success());
}

#[test]
fn a_process_that_was_there_before_is_given_its_job() {
    let Some(mut accounting) = begin() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let script = "read go; echo abc > x; echo done; read go";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .current_dir(folder.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("sh runs");
    let account = Account { job: b"job-6".to_vec(), uid: 7, ..Account::default() };
    accounting.seed(child.id(), &account).expect("there is room");
    let mut input = child.stdin.take().expect("a pipe");
    io::Write::write_all(&mut input, b"go\n").expect("sh reads");
    let mut printed = [0; 5];
    child.stdout.as_mut().expect("a pipe").read_exact(&mut printed).expect("sh says so");
    let reading = accounting.read().expect("sums can be read");
    let seeded = &of_job(&reading, "job-6")[0].clone();
    let device = std::fs::metadata(folder.path()).expect("it is there").dev();
    assert_eq!(reading.calls[&(seeded.id, device)].written_bytes, 4);
    assert_eq!(reading.uses[&seeded.id].processes, 1);
    // An account with a process is kept.
    accounting.forget(&[(seeded, &[device], reading.uses[&seeded.id])]).expect("nothing is removed");
    let reading = accounting.read().expect("sums can be read");
    assert_eq!(of_job(&reading, "job-6"), [seeded]);
    assert_eq!(reading.calls[&(seeded.id, device)].written_bytes, 4);
    drop(input);
    child.wait().expect("it ends");
    // So is one whose last process ended after the reading.
    accounting.forget(&[(seeded, &[device], reading.uses[&seeded.id])]).expect("nothing is removed");
    let reading = accounting.read().expect("sums can be read");
    assert_eq!(of_job(&reading, "job-6"), [seeded]);
    accounting.forget(&[(seeded, &[device], reading.uses[&seeded.id])]).expect("sums can be removed");
    let reading = accounting.read().expect("sums can be read");
    assert!(of_job(&reading, "job-6").is_empty());
    assert!(!reading.uses.contains_key(&seeded.id));
}

/// After `vfork`, the parent continues in the kernel when the child does: the two race for the map
/// of processes.
#[test]
fn a_process_that_calls_execve_meanwhile_keeps_the_job_that_it_was_given() {
    let Some(mut accounting) = begin() else { return };
    let mut children = Vec::new();
    for number in 0..300 {
        let child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().expect("cat runs");
        let account = Account { job: format!("early-{number}").into_bytes(), uid: 7, ..Account::default() };
        accounting.seed(child.id(), &account).expect("there is room");
        children.push(child);
    }
    let reading = accounting.read().expect("sums can be read");
    let living =
        |job: String| of_job(&reading, &job).iter().map(|one| reading.uses.get(&one.id).map_or(0, |used| used.processes)).sum();
    let counted: Vec<u64> = (0..300).map(|number| living(format!("early-{number}"))).collect();
    for mut child in children {
        drop(child.stdin.take());
        child.wait().expect("it ends");
    }
    assert_eq!(counted, [1; 300]);
}
