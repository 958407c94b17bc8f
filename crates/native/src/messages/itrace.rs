//! Errors of `sysdock-itrace` as text.

use std::{io, path::Path};

use sysdock_itrace::{
    ItraceError,
    callgrind::{ProfileError, WrongLine},
    emulated::Failure,
};
use sysdock_itrace_file::FileError;

use super::Message;

impl From<ItraceError> for Message {
    fn from(error: ItraceError) -> Self {
        match error {
            ItraceError::Table(error) => error.into(),
            ItraceError::Facts(path, error) => Message::bare(format!("{}: {error}", path.display())),
            ItraceError::File(path, error) => {
                let path = path.display();
                match error {
                    FileError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                        Message::new(format!("{path}: {error}"), "to record instructions: sysdock itrace attach -o REC -- CMD")
                    }
                    FileError::Io(error) => Message::bare(format!("{path}: {error}")),
                    FileError::NoEventFile => Message::bare(format!("{path}: not an event file of an instruction trace")),
                    FileError::Version(version) => Message::new(
                        format!("{path}: unknown format version {version}"),
                        "it was written by a newer version of sysdock: update sysdock",
                    ),
                    FileError::Damaged(offset) => Message::bare(format!("{path}: damaged at byte {offset}")),
                }
            }
        }
    }
}

/// Why the rest of an emulated program is not recorded.
pub(crate) fn incomplete(failure: &Failure) -> String {
    match failure {
        Failure::Overwritten => "the program has overwritten its events".into(),
        Failure::Write(error) => error.to_string(),
    }
}

/// Why a profile of callgrind cannot be read.
pub(crate) fn profile(path: &Path, error: ProfileError) -> Message {
    let place = path.display();
    match error {
        ProfileError::Io(error) => Message::bare(format!("{place}: {error}")),
        ProfileError::Line(line, wrong) => wrong_line(path, line, wrong),
        ProfileError::Empty => Message::new(format!("{place}: a profile of callgrind without costs"), "was it cut off?"),
    }
}

fn wrong_line(path: &Path, line: u64, wrong: WrongLine) -> Message {
    let place = path.display();
    let what = match wrong {
        WrongLine::Events(events) => {
            return Message::new(
                format!("{place}: has no numbers of instructions (Ir), but of {events}"),
                "valgrind --tool=callgrind PROGRAM counts instructions",
            );
        }
        WrongLine::TooLong => "is longer than 1 MiB".into(),
        WrongLine::NotUnderstood => "is not understood".into(),
        WrongLine::Version(version) => format!("version {version} of the format is not known"),
        WrongLine::NoThread => "the number of a thread is expected".into(),
        WrongLine::PositionNames => "one to three names of positions are expected".into(),
        WrongLine::NoTotal => "numbers are expected".into(),
        WrongLine::NoCallCosts => "the costs of calls are missing".into(),
        WrongLine::NoCallCount => "the number of calls is expected".into(),
        WrongLine::NoCallee => "calls of no function (cfn=)".into(),
        WrongLine::NoName(number) => format!("({number}) has no name before this line"),
        WrongLine::NoEvents => "costs before the line `events:`".into(),
        WrongLine::NoPosition => "a position is missing".into(),
        WrongLine::Position => "a position is not understood".into(),
        WrongLine::NoNumber => "a number is expected".into(),
        WrongLine::TooManyNumbers => "has more numbers than there are events".into(),
        WrongLine::NoFunction => "costs before the first function (fn=)".into(),
        WrongLine::TooLarge => "numbers are too large".into(),
    };
    Message::new(format!("{place}:{line}: {what}"), "is the file damaged? https://valgrind.org/docs/manual/cl-format.html")
}
