//! `sysdock-native import` of profiles of callgrind.

use std::{
    fs::File,
    io::{BufReader, Read},
    path::{Path, PathBuf},
};

use sysdock_itrace::{
    ABOUT, TraceFacts,
    callgrind::{Profile, is_profile},
};
use sysdock_strace::unpacked;
use sysdock_table::{Capture, Ending, Folder, Manifest, Recording, Source, facts};

use crate::{
    arguments, confine, environment,
    messages::{self, Message},
    privileges,
};

/// Size of a read [B].
const BLOCK: usize = 1 << 16;
/// Size of the beginning that contains the line `events:`, in a profile that does not identify
/// itself in its first line [B].
const BEGINNING: u64 = 1 << 14;
const RECORDER: &str = "callgrind-profile";

/// Import, if these are profiles; returns the exit status, or `None` if none of them is.
pub(crate) fn run(arguments: &arguments::Import) -> Result<Option<u8>, Message> {
    let found: Vec<bool> = arguments.logs.iter().map(|path| is_profile_file(path)).collect();
    if !found.contains(&true) {
        return Ok(None);
    }
    if let Some((other, _)) = arguments.logs.iter().zip(&found).find(|(_, found)| !**found) {
        let fact = match other.metadata() {
            Ok(about) if about.len() == 0 => format!("{}: is empty", other.display()),
            Ok(_) => format!("{}: no profile of callgrind, as others of these are", other.display()),
            Err(error) => format!("{}: {error}", other.display()),
        };
        return Err(Message::new(fact, "import profiles of callgrind by themselves"));
    }
    crate::import::refuse_options(arguments, &arguments.logs[0], "a profile of callgrind")?;
    let files = arguments.logs.iter().map(|path| Ok((path.clone(), open(path)?))).collect::<Result<Vec<_>, Message>>()?;
    let folder = Folder::create(&arguments.output, privileges::access(arguments.share))?;
    // The files are open, and so is the folder.
    privileges::become_caller()?;
    let confined = confine::parser(&folder);
    let mut recording = Recording::create_in(folder, manifest(&arguments.logs))?;
    let profile = match read(files) {
        Ok(profile) => profile,
        Err(message) => {
            recording.abandon();
            return Err(message);
        }
    };
    recording.manifest.command.clone_from(&profile.command);
    if let Err(error) = profile.write(&mut recording) {
        let _ = recording.finish(Ending::WriteError);
        return Err(error.into());
    }
    let ending = check(&profile, &mut recording);
    let mut rows = environment::of_log(&recording.manifest);
    rows.push(environment::of_its_limits(confined));
    rows.extend(environment::of_trace(&TraceFacts { backend: "callgrind".into(), ..TraceFacts::default() }));
    environment::write(&mut recording, &rows)?;
    Ok(Some(crate::import::status(recording.finish(ending)?.capture().ended_by)))
}

/// Whether a file is a profile. A file that cannot be opened is not: the reader of logs of calls
/// reports the error.
fn is_profile_file(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = |file| unpacked(file, BLOCK)?.take(BEGINNING).read_to_end(&mut beginning);
    // Bytes read from a pipe would be lost.
    path.metadata().is_ok_and(|about| about.is_file()) && File::open(path).and_then(read).is_ok() && is_profile(&beginning)
}

fn open(path: &Path) -> Result<File, Message> {
    File::open(path).map_err(|error| Message::bare(format!("{}: {error}", path.display())))
}

fn manifest(logs: &[PathBuf]) -> Manifest {
    let mut capture = Capture::new(RECORDER, "instructions", ABOUT);
    capture.clock.kind = "relative".into();
    capture.clock.note = facts::clock::sums_only().into();
    let source = |path: &PathBuf| Source {
        path: path.to_string_lossy().into_owned(),
        bytes: path.metadata().map_or(0, |about| about.len()),
        ..Source::default()
    };
    capture.sources = logs.iter().map(source).collect();
    let mut manifest = Manifest::of(capture);
    manifest.tool.host = environment::host_name();
    manifest
}

fn read(files: Vec<(PathBuf, File)>) -> Result<Profile, Message> {
    let mut profile = Profile::default();
    for (path, file) in files {
        let text = unpacked(file, BLOCK).map_err(|error| Message::bare(format!("{}: {error}", path.display())))?;
        let read = profile.read(BufReader::with_capacity(BLOCK, text));
        read.map_err(|error| messages::profile(&path, error))?;
    }
    Ok(profile)
}

/// Compare the totals of the profile with those that the file states.
fn check(profile: &Profile, recording: &mut Recording) -> Ending {
    let capture = recording.manifest.capture_mut();
    capture.total = profile.steps.max(profile.stated);
    capture.understood = profile.steps;
    messages::note(&format!(
        "{} steps, backend callgrind; order, single calls and addresses are not in a profile",
        profile.steps
    ));
    if profile.stated == profile.steps || profile.stated == 0 {
        return Ending::EndOfInput;
    }
    messages::note(&format!(
        "its functions have {} instructions, and its total is {}: the profile is damaged or cut off",
        profile.steps, profile.stated
    ));
    Ending::InputError
}
