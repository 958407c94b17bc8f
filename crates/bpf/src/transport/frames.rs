//! Reads the frames of a spool, whatever happened to it.
//!
//! States: *in step* (a frame is expected here) -> *lost* (there is no whole frame here: search for
//! the next magic) -> *in step*. Skipped bytes are *damaged* if a whole frame follows, else they
//! are the *cut* end that a killed recorder leaves.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

use memchr::memmem::Finder;
use sysdock_table::Folder;

use crate::{
    BpfError,
    transport::spool::{self, FrameHeader, HEADER, MAGIC},
};

/// Location of a frame's payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameRange {
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

/// A spool that is read from its beginning.
#[derive(Debug)]
pub(crate) struct Frames {
    file: File,
    at: u64,
    end: u64,
    /// Bytes that belong to no frame, since the last one.
    passed_over: u64,
    /// Bytes that belong to no frame, before a frame.
    pub(crate) damaged_bytes: u64,
    /// Number of stretches of such bytes.
    pub(crate) damages: u64,
    /// Bytes after the last frame.
    pub(crate) cut_bytes: u64,
    /// Bytes of damaged payloads. They are searched for frames as long as that costs little.
    searched: u64,
    /// A buffered part of the file, and its offset.
    window: (u64, Vec<u8>),
}

impl Frames {
    /// Open a spool.
    ///
    /// # Errors
    /// [`BpfError::Spool`] if it cannot be read, [`BpfError::NotASpool`] if it is no plain file,
    /// [`BpfError::InUse`] if a recorder holds it.
    pub(crate) fn open(path: &Path) -> Result<Self, BpfError> {
        let failed = |error| BpfError::spool(path, error);
        // Opening a pipe would wait for a writer.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(BpfError::NotASpool(path.into()));
        }
        Frames::of(File::open(path).map_err(failed)?, path)
    }

    /// Open the spool in the folder of a recording.
    ///
    /// # Errors
    /// As for [`Frames::open`].
    pub(crate) fn in_folder(folder: &Folder) -> Result<Self, BpfError> {
        let path = folder.path().join(spool::SPOOL);
        let opened = folder.open_file(spool::SPOOL);
        Frames::of(opened.map_err(|error| BpfError::spool(&path, error))?, &path)
    }

    fn of(file: File, path: &Path) -> Result<Self, BpfError> {
        let end = file.metadata().map_err(|error| BpfError::spool(path, error))?.len();
        if !spool::lock(&file) {
            return Err(BpfError::InUse(path.into()));
        }
        Ok(Frames {
            file,
            at: 0,
            end,
            passed_over: 0,
            damaged_bytes: 0,
            damages: 0,
            cut_bytes: 0,
            searched: 0,
            window: (0, Vec::new()),
        })
    }

    /// The file, for reading payloads again.
    pub(crate) fn into_file(self) -> File {
        self.file
    }

    /// Size of the file [B].
    pub(crate) fn length(&self) -> u64 {
        self.end
    }

    /// The next whole frame; its payload is copied to `payload`.
    pub(crate) fn next(&mut self, payload: &mut Vec<u8>) -> io::Result<Option<(FrameHeader, FrameRange)>> {
        while self.at < self.end {
            let from = self.at;
            let Some(header) = self.header()? else {
                self.search(from + 1)?;
                continue;
            };
            payload.resize(header.length as usize, 0);
            let place = FrameRange { offset: from + HEADER as u64, length: header.length };
            self.file.read_exact_at(payload, place.offset)?;
            let after = place.offset + u64::from(header.length);
            // Who makes up spools (`fuzz/`) does not come past checksums.
            if !is_unchecked() && crc32c::crc32c(payload) != header.crc {
                self.skip_damaged(after, header.length)?;
                continue;
            }
            self.at = after;
            if self.passed_over > 0 {
                self.damages += 1;
                self.damaged_bytes += std::mem::take(&mut self.passed_over);
            }
            return Ok(Some((header, place)));
        }
        self.cut_bytes += std::mem::take(&mut self.passed_over);
        Ok(None)
    }

    /// The header here, of a frame that fits into the file.
    fn header(&self) -> io::Result<Option<FrameHeader>> {
        let mut bytes = [0; HEADER];
        if self.end - self.at < HEADER as u64 {
            return Ok(None);
        }
        self.file.read_exact_at(&mut bytes, self.at)?;
        let room = self.end - self.at - HEADER as u64;
        Ok(FrameHeader::parse(&bytes).filter(|header| u64::from(header.length) <= room))
    }

    /// The header here is valid, its payload is not. Either some bytes of it are wrong, or some are
    /// missing and the next frame begins early.
    fn skip_damaged(&mut self, after: u64, length: u32) -> io::Result<()> {
        // A file made to keep a reader busy has a header in every 48 bytes.
        const MOST_SEARCHED: u64 = 1 << 30;
        self.searched += u64::from(length);
        if self.searched <= MOST_SEARCHED {
            return self.search(self.at + MAGIC.len() as u64);
        }
        self.passed_over += after - self.at;
        self.at = after;
        Ok(())
    }

    /// Continue at the next magic from `from` on.
    fn search(&mut self, from: u64) -> io::Result<()> {
        let finder = Finder::new(&MAGIC);
        let mut at = from;
        let found = loop {
            let window = self.window(at)?;
            if window.len() < MAGIC.len() {
                break self.end;
            }
            match finder.find(window) {
                Some(index) => break at + index as u64,
                // A magic may extend across two windows.
                None => at += (window.len() - (MAGIC.len() - 1)) as u64,
            }
        };
        self.passed_over += found - self.at;
        self.at = found;
        Ok(())
    }

    /// Bytes from `at` on. They are buffered, because false magics may be close to one another.
    fn window(&mut self, at: u64) -> io::Result<&[u8]> {
        const STEP: usize = 64 << 10;
        let (start, bytes) = &mut self.window;
        let kept =
            at.checked_sub(*start).and_then(|skip| usize::try_from(skip).ok()).filter(|skip| skip + MAGIC.len() <= bytes.len());
        if let Some(skip) = kept {
            return Ok(&bytes[skip..]);
        }
        *start = at;
        bytes.resize(usize::try_from(self.end.saturating_sub(at)).map_or(STEP, |left| left.min(STEP)), 0);
        self.file.read_exact_at(bytes, at)?;
        Ok(bytes)
    }
}

/// Whether frames are read whose checksums do not fit: where they are made up.
fn is_unchecked() -> bool {
    #[cfg(test)]
    return crate::testing::UNCHECKED.get();
    #[cfg(not(test))]
    return cfg!(fuzzing);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Note, testing};

    /// Result of a whole reading: payloads, and bytes that were skipped before a frame and at the
    /// end.
    type Reading = (Vec<Vec<u8>>, u64, u64);

    fn read(bytes: &[u8]) -> Reading {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let (mut frames, mut payload, mut payloads) = (Frames::open(file.path()).unwrap(), Vec::new(), Vec::new());
        while frames.next(&mut payload).unwrap().is_some() {
            payloads.push(payload.clone());
        }
        (payloads, frames.damaged_bytes, frames.cut_bytes)
    }

    /// The same result by trying every offset.
    fn slow(bytes: &[u8]) -> Reading {
        let (mut at, mut found, mut damaged, mut passed) = (0, Vec::new(), 0, 0);
        while at < bytes.len() {
            let header = bytes[at..].first_chunk().and_then(FrameHeader::parse);
            let payload = header.and_then(|header| bytes[at + HEADER..].get(..header.length as usize));
            match payload.filter(|payload| Some(crc32c::crc32c(payload)) == header.map(|header| header.crc)) {
                Some(payload) => {
                    found.push(payload.to_vec());
                    damaged += std::mem::take(&mut passed);
                    at += HEADER + payload.len();
                }
                None => (at, passed) = (at + 1, passed + 1),
            }
        }
        (found, damaged, passed)
    }

    fn sample() -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spool");
        let mut spool = crate::testing::spool_in(folder.path());
        for cpu in 0..4 {
            spool.append(cpu, &vec![cpu as u8; 16 + 8 * cpu as usize]).unwrap();
            spool.flush().unwrap();
            spool.note(&Note::Clock { monotonic_ns: 5, realtime_ns: 6 }).unwrap();
        }
        std::fs::read(&path).unwrap()
    }

    #[test]
    fn a_cut_at_any_byte_loses_one_frame_at_most() {
        let whole = sample();
        let (all, ..) = read(&whole);
        assert_eq!(all.len(), 8);
        for end in 0..whole.len() {
            let (frames, damaged, cut) = read(&whole[..end]);
            assert_eq!((&frames, damaged, cut), (&slow(&whole[..end]).0, 0, slow(&whole[..end]).2), "{end}");
            assert_eq!(frames, all[..frames.len()]);
        }
    }

    #[test]
    fn a_wrong_byte_anywhere_loses_the_frame_that_it_is_in() {
        let whole = sample();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x40;
            let reading = read(&bytes);
            assert_eq!(reading, slow(&bytes), "{at}");
            // The last four bytes of a header mean nothing.
            assert!(reading.0.len() >= 7, "{at}");
        }
    }

    #[test]
    fn garbage_between_frames_is_passed_over() {
        let whole = sample();
        let mut random = testing::Random(11);
        for _ in 0..300 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random.below(4) {
                let from = random.below(bytes.len() as u64) as usize;
                let to = (from + random.below(90) as usize).min(bytes.len());
                let filling = match random.below(4) {
                    0 => Vec::new(),
                    1 => MAGIC.repeat(random.below(9) as usize),
                    2 => whole[..random.below(120) as usize].to_vec(),
                    _ => (0..random.below(200)).map(|_| random.below(256) as u8).collect(),
                };
                bytes.splice(from..to, filling);
            }
            assert_eq!(read(&bytes), slow(&bytes));
        }
    }

    #[test]
    fn what_is_no_file_is_refused() {
        assert!(matches!(Frames::open(Path::new("/dev/null")), Err(BpfError::NotASpool(_))));
        assert!(matches!(Frames::open(Path::new("/nowhere")), Err(BpfError::Spool(..))));
    }
}
