//! Writes an event file.

use std::fs::File;
use std::io::{self, Write};

use crate::coding::{Encoder, STREAMS};
use crate::{BLOCKS, Block, EVENTS, FACTS, Facts, HEADER, INDEX, Indexed, MAGIC, SECTION_EVENTS, dictionary};

const LEVEL: i32 = 3;

/// Encodes and writes events. Without [`Writer::finish`], the last section is lost.
pub struct Writer {
    file: File,
    offset: u64,
    /// Number of instructions of each block.
    counts: Vec<u32>,
    new_blocks: Vec<u8>,
    last_address: u64,
    encoder: Encoder,
    index: Vec<Indexed>,
    /// Number of events and steps of the written sections, and of steps of the current one.
    events: u64,
    first_step: u64,
    steps: u64,
}

/// Totals of a file.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Summary {
    /// Number of words.
    pub events: u64,
    /// Number of instructions of the blocks that were entered.
    pub steps: u64,
    /// Number of entries of the dictionary.
    pub blocks: u64,
    /// Size of the file [B].
    pub bytes: u64,
}

impl Writer {
    /// Create an empty file.
    ///
    /// # Errors
    ///
    /// The file cannot be written. The same holds for all other functions.
    pub fn create(file: File, header: &Facts) -> io::Result<Writer> {
        let mut writer = Writer {
            file,
            offset: 0,
            counts: Vec::new(),
            new_blocks: Vec::new(),
            last_address: 0,
            encoder: Encoder::new(),
            index: Vec::new(),
            events: 0,
            first_step: 0,
            steps: 0,
        };
        writer.file.write_all(&MAGIC)?;
        writer.offset = MAGIC.len() as u64;
        writer.section(HEADER, &serde_json::to_vec(header)?, None)?;
        Ok(writer)
    }

    /// Define a block. Returns its number: 0, 1, 2 and so on. The caller defines each block once.
    pub fn define(&mut self, block: &Block) -> u32 {
        dictionary::encode(block, self.last_address, &mut self.new_blocks);
        self.last_address = block.address;
        self.counts.push(block.lengths.len() as u32);
        self.counts.len() as u32 - 1
    }

    /// Write events in the form of [`crate::Event::pack`].
    ///
    /// # Errors
    ///
    /// See [`Writer::create`].
    pub fn push(&mut self, words: &[u64]) -> io::Result<()> {
        for &word in words {
            if word >> 62 == 0 {
                // Sections end between blocks.
                if self.encoder.events() >= SECTION_EVENTS {
                    self.end_section()?;
                }
                self.steps += u64::from(self.counts.get(word as usize).copied().unwrap_or(0));
            }
            self.encoder.push(word);
        }
        Ok(())
    }

    /// Write the remaining events, and the index.
    ///
    /// # Errors
    ///
    /// See [`Writer::create`].
    pub fn finish(mut self) -> io::Result<Summary> {
        self.end_section()?;
        let index = serde_json::to_vec(&self.index)?;
        self.section(INDEX, &index, None)?;
        self.file.flush()?;
        Ok(Summary { events: self.events, steps: self.first_step, blocks: self.counts.len() as u64, bytes: self.offset })
    }

    /// Append facts to a complete file.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn append_facts(mut file: File, facts: &Facts) -> io::Result<()> {
        io::Seek::seek(&mut file, io::SeekFrom::End(0))?;
        let plain = serde_json::to_vec(facts)?;
        let packed = zstd::bulk::compress(&plain, LEVEL)?;
        write_section(&mut file, FACTS, &packed, Some(plain.len())).map(|_| ())
    }

    fn end_section(&mut self) -> io::Result<()> {
        if !self.new_blocks.is_empty() {
            let plain = std::mem::take(&mut self.new_blocks);
            let packed = zstd::bulk::compress(&plain, LEVEL)?;
            self.section(BLOCKS, &packed, Some(plain.len()))?;
        }
        let encoder = std::mem::replace(&mut self.encoder, Encoder::new());
        let events = encoder.events();
        if events == 0 {
            return Ok(());
        }
        let entry = Indexed {
            offset: self.offset,
            first_event: self.events,
            events,
            first_step: self.first_step,
            steps: self.steps,
            blocks: self.counts.len() as u32,
        };
        let payload = pack(entry, &encoder.finish())?;
        self.section(EVENTS, &payload, None)?;
        self.index.push(entry);
        self.events += events;
        self.first_step += self.steps;
        self.steps = 0;
        Ok(())
    }

    fn section(&mut self, kind: u32, payload: &[u8], plain: Option<usize>) -> io::Result<()> {
        self.offset += write_section(&mut self.file, kind, payload, plain)?;
        Ok(())
    }
}

/// Numbers of the section, then lengths of its streams (compressed and uncompressed), then the
/// streams.
fn pack(entry: Indexed, streams: &[Vec<u8>; STREAMS]) -> io::Result<Vec<u8>> {
    let packed = streams.iter().map(|stream| zstd::bulk::compress(stream, LEVEL)).collect::<io::Result<Vec<_>>>()?;
    let mut payload = Vec::new();
    for number in [entry.first_event, entry.events, entry.first_step, entry.steps, u64::from(entry.blocks)] {
        payload.extend_from_slice(&number.to_le_bytes());
    }
    for (plain, packed) in streams.iter().zip(&packed) {
        payload.extend_from_slice(&(packed.len() as u64).to_le_bytes());
        payload.extend_from_slice(&(plain.len() as u64).to_le_bytes());
    }
    payload.extend(packed.into_iter().flatten());
    Ok(payload)
}

fn write_section(file: &mut File, kind: u32, payload: &[u8], plain: Option<usize>) -> io::Result<u64> {
    let mut bytes = Vec::with_capacity(24 + payload.len());
    bytes.extend_from_slice(&kind.to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(payload).to_le_bytes());
    bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&(plain.unwrap_or(payload.len()) as u64).to_le_bytes());
    bytes.extend_from_slice(payload);
    file.write_all(&bytes)?;
    Ok(bytes.len() as u64)
}
