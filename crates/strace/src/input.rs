//! Lines from files, pipes and compressed files, in bounded memory.

use std::{
    cell::Cell,
    fs::File,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
    rc::Rc,
    time::UNIX_EPOCH,
};

/// Bytes read at a time at most: small enough to stay in a core's own cache while its lines are parsed.
const BLOCK: usize = 1 << 18;

/// Bytes that all inputs of an import may read at a time, together.
const TOGETHER: usize = 64 << 20;

/// A line longer than this is dropped and counted: no call prints that much unless asked for (`-s`), and memory must stay bounded.
const LONGEST_LINE: usize = 64 << 20;

/// A log to read.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) path: PathBuf,
    /// Modification time, ns since the epoch; now for a pipe.
    pub(crate) written_ns: i64,
    /// Size on disk, where it has one.
    pub(crate) size: Option<u64>,
    /// Thread id from the name of a file that `strace -ff` wrote (`log.4242`).
    pub(crate) tid: Option<i32>,
    /// A pipe that is open already.
    pipe: Option<File>,
}

impl Input {
    /// Look at a path; `-` is standard input.
    pub(crate) fn inspect(path: &Path) -> io::Result<Self> {
        let now = || std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if path == Path::new("-") {
            return Ok(Input { path: path.into(), written_ns: ns(now()), size: None, tid: None, pipe: None });
        }
        let metadata = path.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        let written = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let suffix = path.extension().and_then(|suffix| suffix.to_str());
        Ok(Input {
            path: path.into(),
            written_ns: ns(written.unwrap_or_else(now)),
            size: metadata.is_file().then_some(metadata.len()),
            tid: suffix.and_then(|suffix| suffix.parse().ok()),
            pipe: None,
        })
    }

    /// A pipe that a recorder writes into.
    pub(crate) fn of_pipe(pipe: File) -> Self {
        let now = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Input { path: PathBuf::new(), written_ns: ns(now), size: None, tid: None, pipe: Some(pipe) }
    }

    /// Open it; compression is told by the first bytes, not by the name.
    ///
    /// `inputs` are read side by side: what they hold in memory together is bounded.
    pub(crate) fn lines(&self, inputs: usize) -> io::Result<Lines> {
        let block = (TOGETHER / inputs.max(1)).clamp(4096, BLOCK);
        let read_bytes = Rc::new(Cell::new(0));
        let raw: Box<dyn Read> = match &self.pipe {
            Some(pipe) => Box::new(pipe.try_clone()?),
            None if self.path == Path::new("-") => Box::new(io::stdin().lock()),
            None => Box::new(File::open(&self.path)?),
        };
        let mut counted = Counted { raw, read_bytes: Rc::clone(&read_bytes) };
        let mut magic = [0; 4];
        let got = read_full(&mut counted, &mut magic)?;
        let whole = io::Cursor::new(magic[..got].to_vec()).chain(counted);
        let reader: Box<dyn Read> = match &magic[..got] {
            [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(BufReader::with_capacity(block, whole))),
            [0x28, 0xb5, 0x2f, 0xfd] => Box::new(zstd::Decoder::new(whole)?),
            _ => Box::new(whole),
        };
        Ok(Lines { reader, block, read_bytes, buffer: Vec::new(), start: 0, end: 0, ended: false, failure: None })
    }
}

fn ns(since_epoch: std::time::Duration) -> i64 {
    i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX)
}

fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Counts bytes as they lie on disk, for the progress line.
struct Counted {
    raw: Box<dyn Read>,
    read_bytes: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.raw.read(buffer)?;
        self.read_bytes.set(self.read_bytes.get() + n as u64);
        Ok(n)
    }
}

/// What [`Lines::next`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A line, between these places of the buffer; `true`: it ends in a newline.
    Line(std::ops::Range<usize>, bool),
    /// A line too long to keep.
    TooLong,
    /// No line yet: the read was interrupted by a signal.
    Interrupted,
    /// End of input.
    End,
}

/// The lines of an input, one at a time.
pub(crate) struct Lines {
    reader: Box<dyn Read>,
    /// Bytes read at a time.
    block: usize,
    read_bytes: Rc<Cell<u64>>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    /// Why the input ended early (damaged compression, read error).
    pub(crate) failure: Option<io::Error>,
}

impl Lines {
    /// Bytes read so far, as they lie on disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.read_bytes.get()
    }

    /// The text of a line that [`Lines::next`] returned last.
    pub(crate) fn text(&self, range: std::ops::Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    /// The next line, without its newline (and without a carriage return before it).
    pub(crate) fn next(&mut self) -> Next {
        let mut searched = self.start;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                let newline = searched + at;
                let range = self.start..newline - usize::from(newline > self.start && self.buffer[newline - 1] == b'\r');
                self.start = newline + 1;
                return Next::Line(range, true);
            }
            searched = self.end;
            if self.ended {
                if self.start == self.end {
                    return Next::End;
                }
                let range = self.start..self.end;
                self.start = self.end;
                return Next::Line(range, false);
            }
            if self.end - self.start > LONGEST_LINE {
                return self.skip_line();
            }
            searched -= self.make_room();
            if !self.fill() {
                return Next::Interrupted;
            }
        }
    }

    /// Move what is left to the front of the buffer; tells by how much.
    fn make_room(&mut self) -> usize {
        let shift = self.start;
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= shift;
        self.start = 0;
        if self.buffer.len() < self.end + self.block {
            self.buffer.resize(self.end + self.block, 0);
        }
        shift
    }

    /// Read a block; `false` if a signal came first.
    fn fill(&mut self) -> bool {
        match self.reader.read(&mut self.buffer[self.end..]) {
            Ok(0) => self.ended = true,
            Ok(n) => self.end += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return false,
            Err(error) => {
                self.failure = Some(error);
                self.ended = true;
            }
        }
        true
    }

    fn skip_line(&mut self) -> Next {
        while !self.ended {
            self.start = self.end;
            self.make_room();
            self.fill();
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
                self.start += at + 1;
                break;
            }
        }
        Next::TooLong
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn all(path: &Path) -> (Vec<String>, Option<io::Error>) {
        let mut lines = Input::inspect(path).unwrap().lines(1).unwrap();
        let mut out = Vec::new();
        while let Next::Line(range, _) = lines.next() {
            out.push(String::from_utf8(lines.text(range).to_vec()).unwrap());
        }
        (out, lines.failure)
    }

    #[test]
    fn plain_and_compressed_give_the_same_lines() {
        let folder = tempfile::tempdir().unwrap();
        let text = "first\r\n\nlast without newline";
        let plain = folder.path().join("log.4242");
        std::fs::write(&plain, text).unwrap();
        let gz = folder.path().join("gz");
        let mut encoder = flate2::write::GzEncoder::new(File::create(&gz).unwrap(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap();
        let zst = folder.path().join("zst");
        std::fs::write(&zst, zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
        for path in [&plain, &gz, &zst] {
            assert_eq!(all(path).0, ["first", "", "last without newline"], "{}", path.display());
        }
        assert_eq!(Input::inspect(&plain).unwrap().tid, Some(4242));
    }

    #[test]
    fn a_damaged_gzip_gives_its_lines_and_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cut.gz");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let text: String = (0..20_000).map(|i| format!("line {i} {}\n", i * 7919 % 1_000_003)).collect();
        encoder.write_all(text.as_bytes()).unwrap();
        let bytes = encoder.finish().unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let (lines, failure) = all(&path);
        assert!(lines.len() > 1_000 && failure.is_some());
    }

    #[test]
    fn lines_longer_than_a_block_stay_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        let long = "x".repeat(3 * BLOCK + 17);
        std::fs::write(&path, format!("a\n{long}\nb\n")).unwrap();
        assert_eq!(all(&path).0, ["a", long.as_str(), "b"]);
    }
}
