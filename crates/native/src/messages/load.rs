//! Errors of `sysdock-load` as text.

use std::io;

use sysdock_load::{LoadError, Stays, WrongAddress, WrongRequest, WrongStep};

use super::Message;

const HTTP_HELP: &str = "see `sysdock-native http-load --help`";

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
            LoadError::Step(why) => Message::new(wrong_step(why), "see `sysdock-native load --help`"),
            LoadError::Request(why) => Message::new(wrong_request(why), HTTP_HELP),
            LoadError::Address(address, why) => {
                Message::new(format!("{}: {}", address.escape_debug(), wrong_address(&why)), HTTP_HELP)
            }
            LoadError::Http(error) => Message::bare(format!("the client failed: {error}")),
            LoadError::Table(error) => error.into(),
        }
    }
}

/// Why a folder of another run stays.
pub(crate) fn stays(why: Stays) -> &'static str {
    match why {
        Stays::CannotBeRemoved => "it cannot be removed",
        Stays::Elsewhere => "another host, or another container, made it",
        Stays::NotOurs => "it was not made by sysdock, or not by this user",
    }
}

fn wrong_step(why: WrongStep) -> String {
    match why {
        WrongStep::Operation(item, operation) => format!("{} has no operation {}", item.name(), operation.name()),
        WrongStep::Processes { wanted, most } => format!("{wanted} processes: from 1 to {most}"),
        WrongStep::Length(bytes) => format!("a request of {bytes} bytes: from 1 byte to 1 GiB"),
        WrongStep::DirectLength(bytes) => format!("direct requests of {bytes} bytes: O_DIRECT needs a multiple of 512"),
        WrongStep::Depth(depth) => format!("{depth} requests in progress: from 1 to 4096"),
        WrongStep::WriteShare(share) => format!("a write share of {share}: from 0 to 1"),
        WrongStep::Empty => "no time, no bytes or no files: nothing would be measured".into(),
        WrongStep::NoTime(item) => format!("{} has no end of its own: it needs a time", item.name()),
    }
}

fn wrong_request(why: WrongRequest) -> String {
    match why {
        WrongRequest::Line(number) => format!("line {number} of the requests is neither `GET /PATH` nor `POST /PATH`"),
        WrongRequest::Rate => "the rate is a number of requests a second, above 0 and up to 10 million".into(),
        WrongRequest::Connections => "there are as many connections as threads, at least".into(),
        WrongRequest::Time => "times are longer than 0".into(),
        WrongRequest::Empty => "no request is given".into(),
        WrongRequest::OpenFiles(most) => format!("this process may open {most} files only (ulimit -n)"),
    }
}

fn wrong_address(why: &WrongAddress) -> String {
    match why {
        WrongAddress::ServerWithPath => "a server whose requests are in a file is http://HOST[:PORT], without a path".into(),
        WrongAddress::Scheme => "not an address that begins with http://".into(),
        WrongAddress::Blanks => "an address has no blanks".into(),
        WrongAddress::Form => "an address is http://HOST[:PORT][/PATH]".into(),
        WrongAddress::Lookup(error) => error.to_string(),
        WrongAddress::NoAddress => "the name has no address".into(),
    }
}
