//! Errors of `sysdock-load` as text.

use std::io;

use sysdock_load::LoadError;

use super::Message;

impl From<LoadError> for Message {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Io(path, error) if error.kind() == io::ErrorKind::TimedOut => Message::new(
                format!("{}: the file system does not answer", path.display()),
                "is its server up? see `dmesg`, and the state of processes that wait for it",
            ),
            LoadError::Io(path, error) => {
                let hint = match error.raw_os_error() {
                    Some(libc::EACCES | libc::EPERM) => "choose a directory that you may write, or use sudo",
                    Some(libc::EROFS) => "the mount is read-only: choose another directory",
                    Some(libc::ENOSPC | libc::EDQUOT) => "free some room, or raise the quota",
                    _ => "choose a directory on the file system to be measured",
                };
                Message::new(format!("{}: {}", path.display(), error), hint)
            }
            LoadError::NotADirectory(path) => Message::new(
                format!("{}: not a directory", path.display()),
                "choose a directory on the file system to be measured",
            ),
            LoadError::Step(why) => Message::new(why, "see `sysdock-native load --help`"),
            LoadError::Address(why) => Message::new(why, "see `sysdock-native http-load --help`"),
            LoadError::Http(error) => Message::bare(format!("the client failed: {error}")),
            LoadError::Table(error) => error.into(),
        }
    }
}
