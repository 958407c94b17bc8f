//! What is recorded, or imported, may have been made by somebody who means ill: a process that parses it can write into its recording only,
//! and run no program, where the kernel has Landlock (5.13).

use std::path::Path;

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus,
};
use sysdock_table::Folder;

/// Of the kernel's versions of Landlock, the one whose rights are asked for; an older kernel applies those that it has.
const RIGHTS: ABI = ABI::V3;

/// Confine this thread and those that it starts from here on; returns what holds now, in words.
pub(crate) fn to_folder(folder: &Folder) -> String {
    match restrict(folder).map(|status| status.ruleset) {
        Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced) => "writes into its recording only (Landlock)".into(),
        Ok(RulesetStatus::NotEnforced) => "not: this kernel has no Landlock".into(),
        Err(error) => format!("not: {error}"),
    }
}

fn restrict(folder: &Folder) -> Result<RestrictionStatus, RulesetError> {
    let writes = AccessFs::from_write(RIGHTS);
    // A folder that nothing comes of is removed: that is a change of the one above.
    let above = PathFd::new(folder.path().parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."))).ok();
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(writes | AccessFs::Execute)?
        .create()?
        .add_rule(PathBeneath::new(folder, writes))?
        .add_rules(above.map(|above| Ok::<_, RulesetError>(PathBeneath::new(above, AccessFs::RemoveDir))))?
        .restrict_self()
}

#[cfg(test)]
mod tests {
    use std::{fs, io, process::Command, thread};

    use sysdock_table::Access;

    use super::*;

    #[test]
    fn what_is_confined_writes_into_its_folder_only_and_runs_nothing() {
        let (own, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let folder = Folder::open(own.path(), Access::default()).expect("it is ours");
        // Only the thread is confined, not the other tests.
        let confined = thread::spawn(move || {
            let state = to_folder(&folder);
            let inside = folder.create_file("a").map(drop).and_then(|()| folder.replace("b", b"x"));
            let outside = fs::write(other.path().join("a"), b"x").map_err(|error| error.kind());
            let read = fs::read("/proc/self/status").is_ok();
            let run = Command::new("/bin/true").status().map(drop).map_err(|error| error.kind());
            (state, inside.is_ok(), outside, read, run)
        });
        let (state, inside, outside, read, run) = confined.join().expect("it ends");
        assert!(inside && read);
        if state.starts_with("writes") {
            assert_eq!((outside, run), (Err(io::ErrorKind::PermissionDenied), Err(io::ErrorKind::PermissionDenied)));
        }
    }
}
