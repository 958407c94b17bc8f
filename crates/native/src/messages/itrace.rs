//! Errors of `sysdock-itrace` as text.

use std::io;

use sysdock_itrace::ItraceError;
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
