//! Lines from files, pipes and compressed files, in bounded memory.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::UNIX_EPOCH,
};

use crate::chunk::Chunk;

/// Size of a block at most [B]: large enough that passing chunks to other threads is cheap compared
/// to parsing them, and small enough that a chunk and its lines stay in a core's cache until they
/// are processed.
const BLOCK: usize = 1 << 18;

/// Size of the blocks of all inputs of an import together [B].
const TOGETHER: usize = 64 << 20;

/// Longer lines are dropped and counted [B]: no call prints that much unless requested (`-s`), and
/// memory must stay bounded.
const LONGEST_LINE: usize = 64 << 20;

/// Size of lines that all inputs of an import may hold together [B]: a few compressed kilobytes may
/// expand to an endless line.
const LONGEST_TOGETHER: usize = 512 << 20;

/// Bytes of a block per line that is handed out at a time, if there are many inputs: a parsed line
/// takes more memory than an empty one.
const BYTES_PER_LINE: usize = 32;

/// Number of blocks of an endless line that are read before the caller is asked again.
const BLOCKS_UNTIL_ASKED: u32 = 256;

/// A log to read.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) path: PathBuf,
    /// Modification time [ns since the epoch]; the current time for a pipe.
    pub(crate) written_ns: i64,
    /// Size on disk [B], if it has one.
    pub(crate) size: Option<u64>,
    /// Thread id from the name of a file that `strace -ff` wrote (`log.4242`).
    pub(crate) tid: Option<i32>,
    /// Number of its session: see [`crate::sessions`].
    pub(crate) session: u32,
    /// A pipe that is open already.
    pipe: Option<File>,
}

impl Input {
    /// Examine a path; `-` is standard input.
    pub(crate) fn inspect(path: &Path) -> io::Result<Self> {
        let now = || std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if path == Path::new("-") {
            return Ok(Input { path: path.into(), written_ns: ns(now()), size: None, tid: None, session: 0, pipe: None });
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
            session: 0,
            pipe: None,
        })
    }

    /// A pipe that a recorder writes into.
    pub(crate) fn of_pipe(pipe: File) -> Self {
        let now = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Input { path: PathBuf::new(), written_ns: ns(now), size: None, tid: None, session: 0, pipe: Some(pipe) }
    }

    /// Open the input; compression is recognized by the first bytes, not by the name.
    ///
    /// `inputs` is the number of inputs read in parallel; their memory together is bounded.
    pub(crate) fn blocks(&self, inputs: usize, follow: bool) -> io::Result<Blocks> {
        let block = (TOGETHER / inputs.max(1)).clamp(4096, BLOCK);
        let read_bytes = Arc::new(AtomicU64::new(0));
        let raw: Box<dyn Read + Send> = match &self.pipe {
            Some(pipe) => Box::new(pipe.try_clone()?),
            None if self.path == Path::new("-") => Box::new(io::stdin()),
            None => Box::new(File::open(&self.path)?),
        };
        let reader = unpacked(Counted { raw, read_bytes: Arc::clone(&read_bytes) }, block)?;
        let follow = follow && self.size.is_some();
        let longest_line = (LONGEST_TOGETHER / inputs.max(1)).clamp(1 << 16, LONGEST_LINE);
        let (rest, whole, skipping, ended, failure) = (Vec::new(), 0, false, false, None);
        let encoding = None;
        Ok(Blocks { reader, encoding, block, longest_line, read_bytes, rest, whole, skipping, follow, ended, failure })
    }
}

/// The contents of a log that may be compressed by gzip or zstd, recognized by its first bytes.
///
/// `block`: size of a read [B].
///
/// # Errors
/// The first bytes cannot be read.
pub fn unpacked(mut log: impl Read + Send + 'static, block: usize) -> io::Result<Box<dyn Read + Send>> {
    let mut magic = [0; 4];
    let got = read_full(&mut log, &mut magic)?;
    let whole = io::Cursor::new(magic[..got].to_vec()).chain(log);
    Ok(match &magic[..got] {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(BufReader::with_capacity(block, whole))),
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(zstd::Decoder::new(whole)?),
        _ => Box::new(whole),
    })
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

/// Counts bytes as they are on disk, for the progress line.
struct Counted {
    raw: Box<dyn Read + Send>,
    read_bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.raw.read(buffer)?;
        self.read_bytes.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Result of [`Blocks::next`].
#[derive(Debug)]
pub(crate) enum Next {
    /// Whole lines; only the last line of an input may lack its newline.
    Chunk(Chunk),
    /// No line yet: the read was interrupted by a signal, a followed file has not grown, or a line
    /// is very long.
    Interrupted,
    /// End of input.
    End,
}

/// A unit of UTF-16 in an order of bytes.
type FromBytes = fn([u8; 2]) -> u16;

/// How the bytes of an input become UTF-8.
enum Text {
    /// They are UTF-8, or single bytes.
    Bytes,
    /// UTF-16, as some programs of Windows write it.
    Wide {
        number: FromBytes,
        /// The beginning of a character that was not read as a whole.
        rest: Vec<u8>,
    },
}

impl Text {
    /// Decide by the first bytes, which begin at `start`. A byte order mark is removed.
    fn begun(text: &mut Vec<u8>, start: usize) -> Text {
        // Without a mark, a log begins with two characters of ASCII.
        let (mark, number): (usize, Option<FromBytes>) = match text[start..] {
            [0xef, 0xbb, 0xbf, ..] => (3, None),
            [0xff, 0xfe, ..] => (2, Some(u16::from_le_bytes)),
            [0xfe, 0xff, ..] => (2, Some(u16::from_be_bytes)),
            [1..=0x7f, 0, 1..=0x7f, 0, ..] => (0, Some(u16::from_le_bytes)),
            [0, 1..=0x7f, 0, 1..=0x7f, ..] => (0, Some(u16::from_be_bytes)),
            _ => (0, None),
        };
        text.drain(start..start + mark);
        number.map_or(Text::Bytes, |number| Text::Wide { number, rest: Vec::new() })
    }

    /// Decode what was read from `start` on.
    fn decode(&mut self, text: &mut Vec<u8>, start: usize) {
        let Text::Wide { number, rest } = self else { return };
        rest.extend(text.drain(start..));
        let (pairs, odd) = rest.as_chunks::<2>();
        let mut units: Vec<u16> = pairs.iter().map(|pair| number(*pair)).collect();
        // The second half of a pair may come with the next block.
        let cut = units.pop_if(|unit| (0xd800..0xdc00).contains(unit)).map_or(0, |_| 2) + odd.len();
        for unit in char::decode_utf16(units) {
            let mut bytes = [0; 4];
            text.extend_from_slice(unit.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut bytes).as_bytes());
        }
        rest.drain(..rest.len() - cut);
    }
}

/// An input, read block by block and split between lines.
pub(crate) struct Blocks {
    reader: Box<dyn Read + Send>,
    /// Known after the first read.
    encoding: Option<Text>,
    /// Size of a block [B].
    block: usize,
    /// Longer lines are dropped [B].
    pub(crate) longest_line: usize,
    read_bytes: Arc<AtomicU64>,
    /// Lines that were not handed out yet, and the beginning of the next one.
    rest: Vec<u8>,
    /// Size of the whole lines in `rest` [B].
    whole: usize,
    /// Inside a line that is too long to keep.
    skipping: bool,
    follow: bool,
    ended: bool,
    /// Reason why the input ended early (damaged compression, read error).
    pub(crate) failure: Option<io::Error>,
}

impl Blocks {
    /// Whether its bytes are UTF-16, as far as it was read.
    pub(crate) fn is_wide(&self) -> bool {
        matches!(self.encoding, Some(Text::Wide { .. }))
    }

    /// Number of bytes read so far, as they are on disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// The next lines, in the buffers of a chunk that is no longer needed.
    pub(crate) fn next(&mut self, spare: Chunk) -> Next {
        let mut chunk = Chunk { too_long: false, ..spare };
        let mut text = std::mem::take(&mut chunk.text);
        text.clear();
        text.append(&mut self.rest);
        if self.whole > 0 {
            return self.lines(text, self.whole, chunk);
        }
        let mut skipped = 0;
        loop {
            let searched = text.len();
            if self.ended {
                if self.skipping {
                    self.skipping = false;
                    return Next::Chunk(Chunk { too_long: true, ..chunk });
                }
                return if text.is_empty() { Next::End } else { Next::Chunk(Chunk { text, ..chunk }) };
            }
            if !self.fill(&mut text) {
                self.rest = text;
                return Next::Interrupted;
            }
            if self.skipping {
                let Some(newline) = memchr::memchr(b'\n', &text) else {
                    text.clear();
                    skipped += 1;
                    // A few compressed kilobytes may expand to hours of this: let the caller report
                    // progress or stop.
                    if skipped < BLOCKS_UNTIL_ASKED {
                        continue;
                    }
                    return Next::Interrupted;
                };
                self.rest = text.split_off(newline + 1);
                self.skipping = false;
                return Next::Chunk(Chunk { too_long: true, ..chunk });
            }
            if let Some(newline) = memchr::memrchr(b'\n', &text[searched..]) {
                return self.lines(text, searched + newline + 1, chunk);
            }
            if text.len() > self.longest_line {
                text.clear();
                self.skipping = true;
            }
        }
    }

    /// Hand out lines of the first `whole` bytes of a text: all of them, or as many as may be
    /// parsed at a time.
    fn lines(&mut self, mut text: Vec<u8>, whole: usize, chunk: Chunk) -> Next {
        let end = match self.block / BYTES_PER_LINE {
            most if self.block < BLOCK => memchr::memchr_iter(b'\n', &text[..whole]).nth(most - 1).map_or(whole, |at| at + 1),
            _ => whole,
        };
        self.rest.extend_from_slice(&text[end..]);
        self.whole = whole - end;
        text.truncate(end);
        Next::Chunk(Chunk { text, ..chunk })
    }

    /// Append a block to `text`; `false` if there is none yet.
    fn fill(&mut self, text: &mut Vec<u8>) -> bool {
        let held = text.len();
        text.resize(held + self.block, 0);
        let got = self.reader.read(&mut text[held..]);
        text.truncate(held + *got.as_ref().unwrap_or(&0));
        match got {
            Ok(0) if self.follow => {
                return false;
            }
            Ok(0) => self.ended = true,
            Ok(_) => self.encoding.get_or_insert_with(|| Text::begun(text, held)).decode(text, held),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return false,
            Err(error) => {
                self.failure = Some(error);
                self.ended = true;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn all(path: &Path) -> (Vec<String>, Option<io::Error>) {
        let mut blocks = Input::inspect(path).unwrap().blocks(1, false).unwrap();
        let mut out = Vec::new();
        while let Next::Chunk(mut chunk) = blocks.next(Chunk::default()) {
            chunk.parse();
            out.extend(chunk.lines[..chunk.count].iter().map(|line| String::from_utf8(chunk.line(line).to_vec()).unwrap()));
        }
        (out, blocks.failure)
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
    fn text_of_windows_is_decoded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let text = "first \u{e4}\u{1f600}\r\nlast";
        let wide = |text: &str, bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
        let marked = format!("\u{feff}{text}");
        for log in [
            marked.clone().into_bytes(),
            wide(&marked, u16::to_le_bytes),
            wide(&marked, u16::to_be_bytes),
            wide(text, u16::to_le_bytes),
            wide(text, u16::to_be_bytes),
        ] {
            std::fs::write(&path, log).unwrap();
            assert_eq!(all(&path).0, ["first \u{e4}\u{1f600}", "last"]);
        }
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
    fn many_inputs_hand_out_few_lines_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("empty");
        std::fs::write(&path, format!("a\n{}b", "\n".repeat(100_000))).unwrap();
        let mut blocks = Input::inspect(&path).unwrap().blocks(10_000, false).unwrap();
        let mut lines = 0;
        while let Next::Chunk(mut chunk) = blocks.next(Chunk::default()) {
            chunk.parse();
            assert!(chunk.count <= TOGETHER / 10_000 / BYTES_PER_LINE + 1);
            lines += chunk.count;
        }
        assert_eq!(lines, 100_002);
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
