//! Errors of `sysdock-measure` as text.

use std::io;

use sysdock_measure::{Attempt, MeasureError};

use super::Message;

impl From<MeasureError> for Message {
    fn from(error: MeasureError) -> Self {
        match error {
            MeasureError::CannotRun(program, error) => {
                let program = program.to_string_lossy();
                match error.kind() {
                    io::ErrorKind::NotFound => Message::new(
                        format!("cannot run {program}: No such file"),
                        "give the path of the program, or a name that is in PATH",
                    ),
                    _ => Message::bare(format!("cannot run {program}: {error}")),
                }
            }
            MeasureError::EndedBefore(program, status) => {
                let program = program.to_string_lossy();
                Message::bare(format!("cannot run {program}: the process was ended before: {status}"))
            }
            MeasureError::Output(path, error) => {
                Message::new(format!("{}: {error}", path.display()), "--output and --errors name files that can be written")
            }
            MeasureError::Directory(path, error) => {
                Message::new(format!("{}: {error}", path.display()), "--directory names a folder that is there")
            }
            MeasureError::Cpus(error) => {
                Message::new(format!("--cpus: {error}"), "/sys/devices/system/cpu/online has the CPUs that there are")
            }
            MeasureError::User(error) => {
                Message::new(format!("cannot become the user who called sudo: {error}"), "--as-root runs the command as root")
            }
            MeasureError::NoSuchDevice(name) => {
                Message::new(format!("--device {name}: no such block device"), "/sys/class/block has their names")
            }
            MeasureError::DoesNotEnd(pid) => Message::new(
                format!("process {pid} does not end, although it was killed"),
                "it waits for a device or a server: see `cat /proc/PID/stack` and `dmesg`",
            ),
            MeasureError::System(attempt, error) => {
                let what = match attempt {
                    Attempt::BlockSignals => "block signals",
                    Attempt::AdoptOrphans => "adopt orphans",
                    Attempt::MakeProcess => "make a process",
                    Attempt::GetMemory => "get memory",
                };
                Message::bare(format!("cannot {what}: {error}"))
            }
        }
    }
}
