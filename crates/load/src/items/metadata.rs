//! Files and directories: created, looked up, listed, renamed and removed.

use std::{
    ffi::CStr,
    fs, io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::PathBuf,
};

use rustix::fs::{AtFlags, Mode, OFlags, SeekFrom, mkdirat, openat, renameat, seek, statat, unlinkat};

use super::{Phase, Work, WorkerContext};
use crate::{
    Layout, Operation,
    meter::{Done, Meter},
};

/// Size of the buffer for listing entries, as in the C library [B].
const LISTING: usize = 32 << 10;

pub(crate) struct Metadata<'a> {
    place: WorkerContext<'a>,
    directory: PathBuf,
    opened: Option<OwnedFd>,
    /// Number of existing files of this worker, and of directories: those with smaller numbers.
    files: u32,
    directories: u32,
    /// Whether its files have their second names.
    renamed: bool,
}

/// A name such as `f12-345`, in a buffer that is reused without allocation.
struct Name {
    bytes: Vec<u8>,
    fixed: usize,
}

impl Name {
    fn new(letter: char, worker: u32) -> Self {
        let bytes = format!("{letter}{worker}-").into_bytes();
        Name { fixed: bytes.len(), bytes }
    }

    fn of(&mut self, number: u32) -> &CStr {
        let mut digits = [0; 10];
        let mut at = digits.len();
        let mut rest = number;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.bytes.truncate(self.fixed);
        self.bytes.extend_from_slice(&digits[at..]);
        self.bytes.push(0);
        CStr::from_bytes_with_nul(&self.bytes).unwrap_or_default()
    }
}

/// Counts a call that was successful as one operation.
fn one<T, E: Into<io::Error>>(result: Result<T, E>) -> io::Result<Done> {
    result.map(|_| Done::ONE).map_err(Into::into)
}

/// Opens a file and closes it: one operation, which fails if either does.
fn open_and_close(directory: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> io::Result<Done> {
    let file = openat(directory, name, flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)?;
    one(nix::unistd::close(file))
}

impl<'a> Metadata<'a> {
    pub(crate) fn new(place: WorkerContext<'a>) -> Self {
        let name = match place.step.layout {
            Layout::Own => format!("d{}", place.worker),
            Layout::Shared => "dshared".into(),
        };
        Metadata { directory: name.into(), place, opened: None, files: 0, directories: 0, renamed: false }
    }

    fn make_directory(&mut self) -> io::Result<()> {
        match fs::create_dir(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.opened = Some(rustix::fs::open(&self.directory, flags, Mode::empty())?);
        Ok(())
    }

    /// Call `call` with each of `count` names, until the phase is to end. Returns the number of
    /// calls.
    fn each(
        &self,
        letter: char,
        count: u32,
        meter: &mut Meter<'_>,
        mut call: impl FnMut(BorrowedFd<'_>, &CStr) -> io::Result<Done>,
    ) -> u32 {
        let Some(directory) = &self.opened else { return 0 };
        let mut name = Name::new(letter, self.place.worker);
        for number in 0..count {
            if !meter.end(0, call(directory.as_fd(), name.of(number))) {
                return number + 1;
            }
        }
        count
    }

    /// As [`Metadata::each`]; with a time limit, repeated until it is over, because these calls
    /// change nothing.
    fn each_again(
        &self,
        letter: char,
        count: u32,
        meter: &mut Meter<'_>,
        mut call: impl FnMut(BorrowedFd<'_>, &CStr) -> io::Result<Done>,
    ) {
        while self.each(letter, count, meter, &mut call) == count
            && count > 0
            && self.place.step.time_ns.is_some()
            && !meter.is_over()
        {}
    }

    fn letter(&self) -> char {
        if self.renamed { 'r' } else { 'f' }
    }

    fn create(&mut self, meter: &mut Meter<'_>) {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
        self.files = self.each('f', self.place.step.files, meter, |directory, name| open_and_close(directory, name, flags));
    }

    fn rename(&mut self, meter: &mut Meter<'_>) {
        let mut new = Name::new('r', self.place.worker);
        let mut number = 0;
        let renamed = self.each('f', self.files, meter, |directory, name| {
            let result = renameat(directory, name, directory, new.of(number));
            number += 1;
            one(result)
        });
        // The rest keep their names, and the workspace removes them.
        (self.renamed, self.files) = (true, renamed);
    }

    fn list(&mut self, meter: &mut Meter<'_>) -> io::Result<()> {
        let Some(directory) = &self.opened else { return Ok(()) };
        let mut buffer = vec![0_u8; LISTING];
        let mut listed = 0;
        // Until the time is over; without a limit, until as many entries were read as there are
        // files.
        while !meter.is_over() && (self.place.step.time_ns.is_some() || listed < u64::from(self.place.step.files)) {
            seek(directory, SeekFrom::Start(0))?;
            let before = listed;
            loop {
                meter.begin();
                // SAFETY: the buffer has this length.
                let bytes =
                    unsafe { libc::syscall(libc::SYS_getdents64, directory.as_raw_fd(), buffer.as_mut_ptr(), buffer.len()) };
                let entries = match bytes {
                    0 => break,
                    ..0 => Err(io::Error::last_os_error()),
                    _ => Ok(Done { bytes: 0, operations: entries(&buffer[..bytes as usize]) }),
                };
                listed += entries.as_ref().map_or(0, |done| done.operations);
                if !meter.end(0, entries) {
                    return Ok(());
                }
            }
            if listed == before {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn stat(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<Done> {
    one(statat(directory, name, AtFlags::SYMLINK_NOFOLLOW))
}

/// Number of entries in a listing (getdents64(2): at byte 16 of each its length).
fn entries(listing: &[u8]) -> u64 {
    let (mut at, mut count) = (0, 0);
    while let Some(length) = listing.get(at + 16..at + 18) {
        at += usize::from(u16::from_ne_bytes([length[0], length[1]])).max(1);
        count += 1;
    }
    count
}

impl Work for Metadata<'_> {
    fn prepare(&mut self, phase: &Phase) -> io::Result<()> {
        if self.opened.is_none() {
            self.make_directory()?;
        }
        // Operations that were not requested, but are needed by those that were.
        let Some(directory) = &self.opened else { return Ok(()) };
        let (directory, count, worker) = (directory.as_fd(), self.place.step.files, self.place.worker);
        match phase.operations[0] {
            Operation::Create | Operation::Mkdir => {}
            Operation::Rmdir if self.directories == 0 => {
                let mut name = Name::new('s', worker);
                for number in 0..count {
                    mkdirat(directory, name.of(number), Mode::RWXU)?;
                }
                self.directories = count;
            }
            Operation::Rmdir => {}
            _ if self.files == 0 && !self.renamed => {
                let mut name = Name::new('f', worker);
                for number in 0..count {
                    open_and_close(directory, name.of(number), OFlags::CREATE | OFlags::WRONLY)?;
                }
                self.files = count;
            }
            _ => {}
        }
        Ok(())
    }

    fn run(&mut self, phase: &Phase, meter: &mut Meter<'_>) -> io::Result<()> {
        let (letter, files) = (self.letter(), self.files);
        match phase.operations[0] {
            Operation::Create => self.create(meter),
            Operation::Stat => self.each_again(letter, files, meter, stat),
            // It is cold only the first time.
            Operation::StatCold => {
                self.each(letter, files, meter, stat);
            }
            Operation::Open => {
                self.each_again(letter, files, meter, |directory, name| open_and_close(directory, name, OFlags::RDONLY));
            }
            Operation::Readdir => self.list(meter)?,
            Operation::Rename => self.rename(meter),
            Operation::Remove => {
                self.each(letter, files, meter, |directory, name| one(unlinkat(directory, name, AtFlags::empty())));
            }
            Operation::Mkdir => {
                let count = self.place.step.files;
                self.directories = self.each('s', count, meter, |directory, name| one(mkdirat(directory, name, Mode::RWXU)));
            }
            Operation::Rmdir => {
                let count = self.directories;
                self.each('s', count, meter, |directory, name| one(unlinkat(directory, name, AtFlags::REMOVEDIR)));
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbers_after_the_worker() {
        let mut name = Name::new('f', 12);
        for number in [0, 7, 10, 345, u32::MAX] {
            assert_eq!(name.of(number).to_str(), Ok(format!("f12-{number}").as_str()));
        }
    }

    #[test]
    fn entries_of_a_listing_are_counted_by_their_lengths() {
        let mut listing = vec![0_u8; 24 + 32];
        listing[16..18].copy_from_slice(&24_u16.to_ne_bytes());
        listing[24 + 16..24 + 18].copy_from_slice(&32_u16.to_ne_bytes());
        assert_eq!(entries(&listing), 2);
        assert_eq!(entries(&[]), 0);
        // A length of 0 does not loop forever.
        assert_eq!(entries(&[0; 18]), 1);
    }
}
