//! `sysdock-native itrace user`: records every instruction of a program under qemu-user.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    os::unix::{ffi::OsStrExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    time::{Instant, SystemTime},
};

use sysdock_itrace::{
    EVENTS,
    emulated::{Collector, Emulated, Failure, SharedMemory},
    facts_of,
};
use sysdock_itrace_file::{Facts, Writer, ring::Why};
use sysdock_table::{Cancel, Ending, Folder, Progress, Recording};

use crate::{
    arguments, by_kernel,
    command::{self, Exit},
    environment, inherited, itrace,
    messages::{self, Message},
    privileges::{self, Caller},
    progress::Reporter,
    signals,
};

/// The default CPU of qemu-user.
const CPU: &str = "qemu64";
const CPU_VARIABLE: &str = "QEMU_CPU";
/// Values in the header of an ELF file: 64 bits, and x86-64.
const CLASS_64: u8 = 2;
const MACHINE: [u8; 2] = [62, 0];

/// Run a command; ends as it did.
pub(crate) fn run(arguments: &arguments::ItraceUser) -> Result<Exit, Message> {
    let cancel = Cancel::default();
    signals::cancel_on_signal(&cancel);
    signals::survive_file_size_limit();
    inherited::hear_of_children();
    let caller = Caller::find();
    let name = &arguments.command[0];
    let program = command::find_command(&arguments.command, caller.as_ref());
    command::check_command(name, program.is_some())?;
    let program = program.unwrap_or_else(|| name.into());
    check_program(&program)?;
    let folder = Folder::create(&arguments.output, privileges::access(arguments.share))?;
    let started = (Instant::now(), SystemTime::now());
    let mut manifest = itrace::manifest(started.1);
    manifest.command = Some(environment::command_text(&arguments.command));
    let mut recording = Recording::create_in(folder, manifest)?;
    let collected = match collect(arguments, &program, recording.folder(), caller, &cancel) {
        Ok(collected) => collected,
        Err(message) => {
            let _ = recording.folder().remove(EVENTS);
            recording.abandon();
            return Err(message);
        }
    };
    recording.manifest.duration_ns = started.0.elapsed().as_nanos() as i64;
    let (emulated, failure) = collected;
    print_summary(&emulated);
    let ending = match failure {
        Some(failure) => {
            let why = messages::incomplete(&failure);
            messages::note(&format!("{}: {why}; what came after it is not recorded", arguments.output.join(EVENTS).display()));
            Ending::WriteError
        }
        None if emulated.cancelled => {
            messages::note("interrupted: the program was ended");
            Ending::Interrupted
        }
        None => Ending::EndOfInput,
    };
    let facts = facts_of(&emulated.tasks, &emulated.mappings, 0);
    let none = &Cancel::default();
    let status = itrace::make_tables(&arguments.output, Some(&facts), recording, &arguments.progress, ending, none)?;
    Ok(if status == 0 { Exit::from(emulated.status) } else { Exit::Code(status) })
}

/// Refuse programs that are not of x86-64: qemu-user cannot execute them, and its message does not
/// say why.
fn check_program(path: &Path) -> Result<(), Message> {
    let shown = path.display();
    let mut head = Vec::new();
    File::open(path)
        .and_then(|file| file.take(20).read_to_end(&mut head))
        .map_err(|error| Message::bare(format!("{shown}: {error}")))?;
    if head.starts_with(b"#!") {
        let fact = format!("{shown}: is a script");
        return Err(Message::new(fact, format!("name its interpreter: itrace user -o REC -- /bin/sh {shown}")));
    }
    if !head.starts_with(b"\x7fELF") {
        return Err(Message::new(format!("{shown}: is not a program"), "an ELF file of x86-64 can be run"));
    }
    if head.get(4) != Some(&CLASS_64) || head.get(18..20) != Some(&MACHINE) {
        return Err(Message::new(
            format!("{shown}: is a program for another processor than x86-64"),
            "only programs of x86-64 are traced",
        ));
    }
    Ok(())
}

fn collect(
    arguments: &arguments::ItraceUser,
    program: &Path,
    folder: &Folder,
    caller: Option<Caller>,
    cancel: &Cancel,
) -> Result<(Emulated, Option<Failure>), Message> {
    let path = arguments.output.join(EVENTS);
    let cannot_write = |error: io::Error| Message::bare(format!("{}: {error}", path.display()));
    let memory = SharedMemory::create()
        .map_err(|error| Message::new(format!("no memory for events: {error}"), "is a limit of file sizes set (ulimit -f)?"))?;
    let command_line = command_line(arguments, program, &memory);
    let file = folder.create_file(EVENTS).map_err(cannot_write)?;
    let facts_file = file.try_clone().map_err(cannot_write)?;
    let writer = Writer::create(file, &header(arguments)).map_err(cannot_write)?;
    let gate = by_kernel::close_gate(&command_line, caller)?;
    let pid = i32::try_from(gate.pid()).unwrap_or(-1);
    let child = gate.open().map_err(|error| Message::bare(format!("{}: {error}", arguments.qemu.display())))?;
    let mut reporter = Reporter::new(&arguments.progress);
    let report = |steps| reporter.report(Progress { bytes_done: 0, bytes_total: None, lines: steps });
    let (emulated, failure) = Collector::new(memory, writer, pid)
        .run(child, &comm(program), &cancel.flag(), report)
        .map_err(|error| Message::bare(format!("process {pid}: {error}")))?;
    if emulated.why == Some(Why::Moved) {
        let fact = format!("{}: puts the program at other addresses than its own", arguments.qemu.display());
        return Err(Message::new(fact, "is the environment variable QEMU_GUEST_BASE or QEMU_RESERVED_VA set?"));
    }
    if emulated.steps == 0 && !emulated.cancelled {
        let fact = format!("{}: {} before the first instruction", arguments.qemu.display(), ended(&emulated));
        return Err(Message::new(fact, "its message is above; qemu-user of Debian 12 (7.2) works"));
    }
    if failure.is_none() {
        let facts = facts_of(&emulated.tasks, &emulated.mappings, 0);
        Writer::append_facts(facts_file, &facts).map_err(cannot_write)?;
    }
    Ok((emulated, failure))
}

fn ended(emulated: &Emulated) -> String {
    match emulated.status.signal() {
        Some(signal) => format!("was ended by signal {signal}"),
        None => format!("ended with status {}", emulated.status.code().unwrap_or(-1)),
    }
}

/// The command line for qemu.
fn command_line(arguments: &arguments::ItraceUser, program: &Path, memory: &SharedMemory) -> Vec<OsString> {
    let mut plugin = OsString::from("file=");
    // A comma ends a value, so a comma in a value is doubled.
    plugin.push(OsStr::from_bytes(&double_commas(arguments.plugin.as_os_str().as_bytes())));
    plugin.push(format!(",shared={},from=start,limit={}", memory.descriptor(), arguments.limit));
    let mut command_line =
        vec![arguments.qemu.clone().into(), "-0".into(), arguments.command[0].clone(), "-plugin".into(), plugin];
    // A path that begins with `-` would be taken for an option.
    let is_option = program.as_os_str().as_bytes().starts_with(b"-");
    command_line.push(if is_option { PathBuf::from(".").join(program).into() } else { program.into() });
    command_line.extend_from_slice(&arguments.command[1..]);
    command_line
}

fn double_commas(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|&byte| std::iter::repeat_n(byte, if byte == b',' { 2 } else { 1 })).collect()
}

fn header(arguments: &arguments::ItraceUser) -> Facts {
    let mut header = itrace::header("user");
    let cpu = std::env::var(CPU_VARIABLE).unwrap_or_else(|_| CPU.into());
    header.insert("cpu".into(), format!("{cpu} (qemu)").into());
    if let Some(version) = &arguments.version_of_qemu {
        header.insert("qemu".into(), version.clone().into());
    }
    header
}

/// The name that the kernel would give the process.
fn comm(program: &Path) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    name.char_indices().take_while(|(at, each)| at + each.len_utf8() <= 15).map(|(_, each)| each).collect()
}

/// Print what is missing from the trace.
fn print_summary(emulated: &Emulated) {
    match emulated.why {
        Some(Why::Limit) => messages::note("the limit of instructions is reached: the program continued, not recorded"),
        Some(Why::Thread) => messages::note(
            "the program started a second thread: nothing is recorded from there on; `sysdock itrace attach` traces all threads",
        ),
        Some(Why::Failed) => messages::note("the recorder failed: the program continued, not recorded"),
        Some(Why::Exit | Why::Moved) | None => {}
    }
    match emulated.children {
        0 => {}
        1 => messages::note("a child process is not recorded; `sysdock itrace attach` traces it, too"),
        count => messages::note(&format!("{count} child processes are not recorded; `sysdock itrace attach` traces them, too")),
    }
    if emulated.executed {
        messages::note("the program executed another one (execve), which runs without qemu and is not recorded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_kernel() {
        assert_eq!(comm(Path::new("/usr/bin/a-name-that-is-long")), "a-name-that-is-");
        assert_eq!(comm(Path::new("a-name-that-ié")), "a-name-that-ié");
        assert_eq!(comm(Path::new("ls")), "ls");
    }

    #[test]
    fn commas_of_a_path_are_no_ends() {
        assert_eq!(double_commas(b"/a,b/c"), b"/a,,b/c");
    }
}
