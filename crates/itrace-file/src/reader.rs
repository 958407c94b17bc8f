//! Reads an event file, including damaged and unfinished ones.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::coding::{STREAMS, decode};
use crate::{BLOCKS, Block, EVENTS, FACTS, Facts, FileError, HEADER, INDEX, Indexed, MAGIC, SECTION_EVENTS, dictionary};

/// More than any writer puts into one section, uncompressed [B].
const MOST_BYTES: u64 = 1 << 28;
const HEAD: u64 = 24;
/// Five numbers, and two lengths for each stream [B].
const EVENTS_HEAD: usize = 8 * (5 + 2 * STREAMS);

/// An event file.
pub struct Reader {
    file: File,
    /// The facts known when recording began.
    pub header: Facts,
    /// The facts known since.
    pub facts: Facts,
    /// The executed code.
    pub blocks: Vec<Block>,
    /// The sections of events, in order.
    pub sections: Vec<Indexed>,
    complete: bool,
    damaged: Vec<u64>,
}

struct Head {
    kind: u32,
    crc: u32,
    length: u64,
    plain: u64,
}

impl Reader {
    /// Read everything except the events.
    ///
    /// # Errors
    ///
    /// [`FileError`]; damaged sections are no error here, but listed in [`Reader::damaged`].
    pub fn open(file: File) -> Result<Reader, FileError> {
        let length = file.metadata()?.len();
        let mut magic = [0; 8];
        if file.read_exact_at(&mut magic, 0).is_err() || magic[..4] != MAGIC[..4] {
            return Err(FileError::NoEventFile);
        }
        if magic != MAGIC {
            return Err(FileError::Version(u32::from_le_bytes([magic[4], magic[5], magic[6], magic[7]])));
        }
        let mut reader = Reader {
            file,
            header: Facts::new(),
            facts: Facts::new(),
            blocks: Vec::new(),
            sections: Vec::new(),
            complete: false,
            damaged: Vec::new(),
        };
        let mut offset = MAGIC.len() as u64;
        while offset < length {
            let Some(head) = reader.head(offset, length) else {
                reader.complete = false;
                reader.damaged.push(offset);
                break;
            };
            if reader.take(offset, &head).is_err() {
                reader.damaged.push(offset);
                if head.kind == BLOCKS {
                    // The numbers of all later blocks would be wrong.
                    reader.complete = false;
                    break;
                }
            }
            offset += HEAD + head.length;
        }
        Ok(reader)
    }

    /// Whether its writer completed it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Offsets of sections that are damaged or cut off.
    #[must_use]
    pub fn damaged(&self) -> &[u64] {
        &self.damaged
    }

    /// Append the words of a section.
    ///
    /// # Errors
    ///
    /// It is damaged, or cannot be read. Nothing is appended then.
    pub fn events(&self, section: &Indexed, words: &mut Vec<u64>) -> Result<(), FileError> {
        let before = words.len();
        let damaged = || FileError::Damaged(section.offset);
        let length = self.file.metadata()?.len();
        let head = self.head(section.offset, length).ok_or_else(damaged)?;
        let payload = self.payload(section.offset, &head)?;
        let streams = unpack(&payload).ok_or_else(damaged)?;
        let slices = streams.each_ref().map(Vec::as_slice);
        words.reserve(section.events as usize);
        decode(&slices, section.events, self.blocks.len(), words).map_err(|_| {
            words.truncate(before);
            damaged()
        })
    }

    fn take(&mut self, offset: u64, head: &Head) -> Result<(), FileError> {
        let damaged = || FileError::Damaged(offset);
        if head.kind == EVENTS {
            let section = self.events_head(offset, head).ok_or_else(damaged)?;
            self.sections.push(section);
            return Ok(());
        }
        let payload = self.payload(offset, head)?;
        match head.kind {
            HEADER => self.header = serde_json::from_slice(&payload).map_err(|_| damaged())?,
            FACTS => {
                let plain = unpacked(&payload, head.plain).ok_or_else(damaged)?;
                self.facts = serde_json::from_slice(&plain).map_err(|_| damaged())?;
            }
            INDEX => {
                let listed: Vec<Indexed> = serde_json::from_slice(&payload).map_err(|_| damaged())?;
                // A section whose kind or numbers are damaged is not among the intact ones.
                let lost = listed.iter().filter(|entry| !self.sections.contains(entry)).map(|entry| entry.offset);
                let lost: Vec<u64> = lost.filter(|offset| !self.damaged.contains(offset)).collect();
                self.damaged.extend(lost);
                self.complete = true;
            }
            BLOCKS => {
                let plain = unpacked(&payload, head.plain).ok_or_else(damaged)?;
                dictionary::decode(&plain, &mut self.blocks).map_err(|_| damaged())?;
            }
            // A section of a later version, which can be ignored.
            _ => {}
        }
        Ok(())
    }

    fn head(&self, offset: u64, length: u64) -> Option<Head> {
        let mut bytes = [0; HEAD as usize];
        self.file.read_exact_at(&mut bytes, offset).ok()?;
        let [words, stored, plain] = numbers(&bytes);
        let head = Head { kind: words as u32, crc: (words >> 32) as u32, length: stored, plain };
        let end = offset.checked_add(HEAD)?.checked_add(head.length)?;
        (end <= length && head.length <= MOST_BYTES && head.plain <= MOST_BYTES).then_some(head)
    }

    fn payload(&self, offset: u64, head: &Head) -> Result<Vec<u8>, FileError> {
        let mut payload = vec![0; head.length as usize];
        self.file.read_exact_at(&mut payload, offset + HEAD)?;
        if cfg!(fuzzing) || crc32c::crc32c(&payload) == head.crc { Ok(payload) } else { Err(FileError::Damaged(offset)) }
    }

    /// The numbers of a section of events. Its checksum covers them only together with its streams,
    /// so they are checked where they are used.
    fn events_head(&self, offset: u64, head: &Head) -> Option<Indexed> {
        let mut bytes = [0; EVENTS_HEAD];
        if head.length < EVENTS_HEAD as u64 {
            return None;
        }
        self.file.read_exact_at(&mut bytes, offset + HEAD).ok()?;
        let [first_event, events, first_step, steps, blocks] = numbers(&bytes);
        // Only the last block of a section may exceed the limit, by its accesses.
        (events <= 2 * SECTION_EVENTS).then_some(Indexed {
            offset,
            first_event,
            events,
            first_step,
            steps,
            blocks: u32::try_from(blocks).ok()?,
        })
    }
}

/// Numbers of 8 bytes; 0 beyond the end.
fn numbers<const COUNT: usize>(bytes: &[u8]) -> [u64; COUNT] {
    let mut found = bytes.as_chunks::<8>().0.iter().map(|eight| u64::from_le_bytes(*eight));
    std::array::from_fn(|_| found.next().unwrap_or_default())
}

/// Decompress. While fuzzing, uncompressed data is accepted, too, because no mutation yields a
/// valid checksum or compressed stream.
fn unpacked(packed: &[u8], length: u64) -> Option<Vec<u8>> {
    let plain = zstd::bulk::decompress(packed, usize::try_from(length).ok()?).ok();
    if cfg!(fuzzing) { plain.or_else(|| Some(packed.to_vec())) } else { plain }
}

fn unpack(payload: &[u8]) -> Option<[Vec<u8>; STREAMS]> {
    let lengths: [u64; 2 * STREAMS] = numbers(payload.get(40..EVENTS_HEAD)?);
    let mut rest = payload.get(EVENTS_HEAD..)?;
    let mut streams = <[Vec<u8>; STREAMS]>::default();
    for (stream, [packed_bytes, bytes]) in streams.iter_mut().zip(lengths.as_chunks::<2>().0) {
        let (packed, tail) = rest.split_at_checked(usize::try_from(*packed_bytes).ok()?)?;
        rest = tail;
        if *bytes > MOST_BYTES {
            return None;
        }
        *stream = unpacked(packed, *bytes)?;
    }
    Some(streams)
}
