//! Parses an answer in parts, as they arrive: HTTP/1.1 (RFC 9112), as far as answers to GET and
//! POST need it.
//!
//! States: *head* -> (*length* | *chunk size* -> *chunk* -> *chunk size* ... -> *trailer* | *until
//! close*) -> done.

use std::sync::Arc;

use crc32fast::Hasher;

/// What is kept of answers besides their status and length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Names of header fields whose numbers are added up.
    pub sums: Vec<String>,
    /// Whether to compute a checksum of the content.
    pub checksums: bool,
}

/// Longest head, and longest line with a size [B]: longer ones are not those of a web server.
const LONGEST_HEAD: usize = 64 << 10;

/// State of the parser.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Head,
    /// This many bytes of the content are missing.
    Length(u64),
    ChunkSize,
    /// This many bytes of the chunk are missing, including the line end after it.
    Chunk(u64),
    Trailer,
    UntilClose,
    Done,
}

/// An answer that is being parsed.
#[derive(Clone, Debug)]
pub(super) struct Response {
    state: State,
    /// The received part of an incomplete head or line.
    line: Vec<u8>,
    pub(super) status: u16,
    /// Size of the content so far [B].
    pub(super) content_bytes: u64,
    pub(super) keeps_alive: bool,
    /// Whether anything was received.
    pub(super) began: bool,
    wanted: Arc<Wanted>,
    /// Numbers of the fields that are added up, in the order of `wanted`.
    pub(super) numbers: Vec<Option<u64>>,
    /// Checksum of the content so far, if wanted.
    checksum: Hasher,
}

/// Result of parsing a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The answer is not complete.
    More,
    /// The answer is complete.
    Complete,
    /// The answer is invalid, or followed by unrequested data.
    Wrong,
}

impl Default for Response {
    fn default() -> Self {
        Response::new(&Arc::default())
    }
}

impl Response {
    pub(super) fn new(wanted: &Arc<Wanted>) -> Self {
        Response {
            state: State::Head,
            line: Vec::new(),
            status: 0,
            content_bytes: 0,
            keeps_alive: true,
            began: false,
            wanted: Arc::clone(wanted),
            numbers: vec![None; wanted.sums.len()],
            checksum: Hasher::new(),
        }
    }

    /// The CRC-32 of the content so far. `None`: it is not wanted.
    pub(super) fn crc32(&self) -> Option<u32> {
        self.wanted.checksums.then(|| self.checksum.clone().finalize())
    }

    /// Parse the next bytes.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Step {
        self.began |= !bytes.is_empty();
        while !bytes.is_empty() {
            let taken = match &mut self.state {
                State::Head => self.head(bytes),
                State::Length(left) => {
                    let taken = (*left).min(bytes.len() as u64);
                    *left -= taken;
                    if *left == 0 {
                        self.state = State::Done;
                    }
                    self.content(bytes.get(..taken as usize).unwrap_or_default());
                    Some(taken as usize)
                }
                State::Chunk(left) => {
                    let taken = (*left).min(bytes.len() as u64);
                    // The last two bytes of a chunk are a line end.
                    let of_content = taken.min(left.saturating_sub(2));
                    *left -= taken;
                    if *left == 0 {
                        self.state = State::ChunkSize;
                    }
                    self.content(bytes.get(..of_content as usize).unwrap_or_default());
                    Some(taken as usize)
                }
                State::ChunkSize | State::Trailer => self.chunk_line(bytes),
                State::UntilClose => {
                    self.content(bytes);
                    Some(bytes.len())
                }
                State::Done => None,
            };
            let Some(rest) = taken.and_then(|taken| bytes.get(taken..)) else { return Step::Wrong };
            bytes = rest;
        }
        if self.state == State::Done { Step::Complete } else { Step::More }
    }

    fn content(&mut self, bytes: &[u8]) {
        self.content_bytes += bytes.len() as u64;
        if self.wanted.checksums {
            self.checksum.update(bytes);
        }
    }

    /// The server closed the connection. Returns whether that completes the answer.
    pub(super) fn close(&mut self) -> bool {
        self.keeps_alive = false;
        matches!(self.state, State::UntilClose | State::Done)
    }

    /// Parse a part of the head. `None`: it is invalid.
    fn head(&mut self, bytes: &[u8]) -> Option<usize> {
        const END: &[u8] = b"\r\n\r\n";
        /// The head comes first, so little of a large answer is copied.
        const PIECE: usize = 2048;
        let bytes = bytes.get(..PIECE).unwrap_or(bytes);
        let before = self.line.len();
        // The end may extend across two parts.
        self.line.extend_from_slice(bytes);
        let from = before.saturating_sub(END.len() - 1);
        match self.line.get(from..)?.windows(END.len()).position(|window| window == END) {
            Some(place) => {
                let end = from + place + END.len();
                let head = std::mem::take(&mut self.line);
                self.understand(head.get(..end)?)?;
                Some(end - before)
            }
            None if self.line.len() > LONGEST_HEAD || self.line.iter().zip(b"HTTP/1.").any(|(found, known)| found != known) => {
                None
            }
            None => Some(bytes.len()),
        }
    }

    fn understand(&mut self, head: &[u8]) -> Option<()> {
        let text = std::str::from_utf8(head).ok()?;
        let mut lines = text.split("\r\n");
        let first = lines.next()?.strip_prefix("HTTP/1.")?;
        let (version, rest) = first.split_once(' ')?;
        self.status = rest.get(..3)?.parse().ok()?;
        let (mut length, mut is_chunked) = (None, false);
        self.keeps_alive = version != "0";
        for line in lines {
            let Some((name, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                length = Some(value.parse::<u64>().ok()?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                is_chunked = value.to_ascii_lowercase().ends_with("chunked");
            } else if name.eq_ignore_ascii_case("connection") {
                self.keeps_alive = match value {
                    _ if value.eq_ignore_ascii_case("close") => false,
                    _ if value.eq_ignore_ascii_case("keep-alive") => true,
                    _ => self.keeps_alive,
                };
            } else if let Some(place) = self.wanted.sums.iter().position(|wanted| name.eq_ignore_ascii_case(wanted)) {
                self.numbers.get_mut(place).into_iter().for_each(|number| *number = value.parse().ok());
            }
        }
        self.state = match (self.status, length) {
            // An interim answer.
            (100..=199, _) => State::Head,
            (204 | 304, _) => State::Done,
            _ if is_chunked => State::ChunkSize,
            (_, Some(0)) => State::Done,
            (_, Some(length)) => State::Length(length),
            (_, None) => State::UntilClose,
        };
        Some(())
    }

    /// Parse a part of a line with the size of a chunk, or after the last chunk. `None`: it is
    /// invalid.
    fn chunk_line(&mut self, bytes: &[u8]) -> Option<usize> {
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            self.line.extend_from_slice(bytes);
            return (self.line.len() <= LONGEST_HEAD).then_some(bytes.len());
        };
        self.line.extend_from_slice(bytes.get(..end)?);
        let line = std::mem::take(&mut self.line);
        let line = std::str::from_utf8(&line).ok()?.trim_end_matches('\r');
        self.state = match self.state {
            State::Trailer if line.is_empty() => State::Done,
            State::Trailer => State::Trailer,
            _ => match u64::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16).ok()? {
                0 => State::Trailer,
                size => State::Chunk(size.checked_add(2)?),
            },
        };
        Some(end + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses an answer in parts of this length.
    fn read(text: &[u8], piece: usize) -> (Step, Response) {
        let mut response = Response::default();
        let mut step = Step::More;
        for bytes in text.chunks(piece) {
            step = response.read(bytes);
        }
        (step, response)
    }

    #[test]
    fn answers_are_read_however_they_are_cut() {
        let answers: [(&[u8], u16, u64, bool); 5] = [
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, 5, true),
            (b"HTTP/1.1 404 Not Found\r\nconnection: Close\r\ncontent-length: 0\r\n\r\n", 404, 0, false),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1f;x=y\r\n0123456789012345678901234567890\r\n0\r\nX: y\r\n\r\n", 200, 36, true),
            (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", 204, 0, true),
            (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, 1, false),
        ];
        for (text, status, bytes, keeps_alive) in answers {
            for piece in [1, 2, 3, 7, 1000] {
                let (step, response) = read(text, piece);
                let found = (step, response.status, response.content_bytes, response.keeps_alive);
                assert_eq!(found, (Step::Complete, status, bytes, keeps_alive), "{piece}: {}", text.escape_ascii());
            }
        }
    }

    #[test]
    fn numbers_and_checksums_are_kept_where_they_are_wanted() {
        let wanted = Arc::new(Wanted { sums: vec!["lines".into(), "cents".into()], checksums: true });
        let answers: [&[u8]; 2] = [
            b"HTTP/1.1 201 Created\r\nCents: 4560\r\nContent-Length: 9\r\nLines: many\r\n\r\n123456789",
            b"HTTP/1.1 201 Created\r\ncents: 4560\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n1234\r\n5\r\n56789\r\n0\r\n\r\n",
        ];
        for text in answers {
            for piece in [1, 3, 1000] {
                let mut response = Response::new(&wanted);
                text.chunks(piece).for_each(|bytes| _ = response.read(bytes));
                // The check value of CRC-32.
                assert_eq!((response.crc32(), &response.numbers[..]), (Some(0xCBF4_3926), &[None, Some(4560)][..]));
            }
        }
        assert_eq!(read(answers[0], 1000).1.crc32(), None);
    }

    #[test]
    fn content_without_a_length_ends_with_the_connection() {
        let (step, mut response) = read(b"HTTP/1.1 200 OK\r\n\r\nsome", 3);
        assert_eq!((step, response.content_bytes, response.close()), (Step::More, 4, true));
        let (_, mut cut) = read(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome", 1000);
        assert!(!cut.close());
    }

    #[test]
    fn what_is_no_answer_is_wrong() {
        let none: [&[u8]; 5] = [
            b"SSH-2.0-OpenSSH_9.2\r\n",
            b"HTTP/1.1 abc\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy",
        ];
        for text in none {
            assert_eq!(read(text, 1000).0, Step::Wrong, "{}", text.escape_ascii());
        }
        assert_eq!(read(&[b'H'; 1], 1).0, Step::More);
        let endless = [b"HTTP/1.1 200 OK\r\nX: ".to_vec(), vec![b'x'; LONGEST_HEAD]].concat();
        assert_eq!(read(&endless, 1 << 20).0, Step::Wrong);
    }
}
