//! The first pass over a spool: which parts are whole, which frames belong to which CPU, and
//! everything that later or earlier events refer to.
//!
//! Paths are collected here, because a path may be reported by another CPU than the one whose call
//! names the file. Of other events, only the headers are read.

use std::{fs::File, path};

use rustc_hash::FxHashMap;
use sysdock_table::Cancel;

use super::streams::Stream;
use crate::{
    BpfError,
    conversion::places::Places,
    events,
    families::Families,
    transport::{
        frames::{FrameRange, Frames},
        notes::{self, Note},
        spool::FrameKind,
    },
};

/// Result of the first pass.
pub(crate) struct Survey {
    pub(crate) file: File,
    /// By CPU, in order of their first frame.
    pub(crate) streams: Vec<Stream>,
    pub(crate) places: Places,
    /// The families, with what they have kept of events that others refer to.
    pub(crate) families: Families,
    pub(crate) notes: Vec<Note>,
    /// Number of whole events, and how many of them are of kinds that this version does not know.
    pub(crate) events: u64,
    pub(crate) unknown: u64,
    /// Number of events that end their frame, because they cannot be read.
    pub(crate) broken: u64,
    /// Number of notes that cannot be read.
    pub(crate) broken_notes: u64,
    /// Bytes that belong to no frame, the number of such stretches before a frame, and the bytes
    /// after the last frame.
    pub(crate) damaged_bytes: u64,
    pub(crate) damages: u64,
    pub(crate) cut_bytes: u64,
    /// Size of the file [B].
    pub(crate) bytes: u64,
}

impl Survey {
    /// Read the spool once.
    ///
    /// # Errors
    /// [`BpfError`] if it cannot be read, or contains no frame.
    pub(crate) fn of(mut frames: Frames, spool: &path::Path, cancel: &Cancel) -> Result<Self, BpfError> {
        let failed = |error| BpfError::spool(spool, error);
        let mut look = Pass::default();
        let mut payload = Vec::new();
        let mut whole = 0u64;
        while let Some((header, place)) = frames.next(&mut payload).map_err(failed)? {
            whole += 1;
            match header.kind {
                FrameKind::Events => look.events(header.cpu, place, &payload),
                FrameKind::Notes => look.notes(&payload),
            }
            if cancel.requested() {
                break;
            }
        }
        if whole == 0 {
            return Err(BpfError::NotASpool(spool.into()));
        }
        let Pass { streams, places, families, notes, events, unknown, broken, broken_notes, .. } = look;
        let (damaged_bytes, damages, cut_bytes) = (frames.damaged_bytes, frames.damages, frames.cut_bytes);
        let bytes = frames.length();
        let file = frames.into_file();
        Ok(Survey {
            file,
            streams,
            places,
            families,
            notes,
            events,
            unknown,
            broken,
            broken_notes,
            damaged_bytes,
            damages,
            cut_bytes,
            bytes,
        })
    }
}

/// A first pass in progress.
#[derive(Default)]
struct Pass {
    streams: Vec<Stream>,
    /// Index into `streams` by CPU.
    cpus: FxHashMap<u32, usize>,
    places: Places,
    families: Families,
    notes: Vec<Note>,
    events: u64,
    unknown: u64,
    broken: u64,
    broken_notes: u64,
}

impl Pass {
    fn events(&mut self, cpu: u32, place: FrameRange, payload: &[u8]) {
        let mut rest = payload;
        while !rest.is_empty() {
            let Some((event, after)) = events::split(rest) else {
                self.broken += 1;
                break;
            };
            // A stream ends at its first event that makes no sense, so this is decided once.
            let whole = Families::is_whole(&event);
            if whole == Some(false) {
                self.broken += 1;
                break;
            }
            self.events += 1;
            self.unknown += u64::from(whole.is_none());
            self.families.survey(&event, &mut self.places);
            rest = after;
        }
        let length = place.length - u32::try_from(rest.len()).unwrap_or(0);
        let place = FrameRange { length, ..place };
        // A forged spool may name millions of CPUs.
        match self.cpus.get(&cpu) {
            Some(stream) => self.streams[*stream].add(place),
            None => {
                self.cpus.insert(cpu, self.streams.len());
                self.streams.push(Stream::new(place));
            }
        }
    }

    fn notes(&mut self, payload: &[u8]) {
        /// Notes of the clock, about one per second: enough for months.
        const MOST: usize = 1 << 24;
        let (notes, broken) = notes::parse(payload);
        self.broken_notes += broken;
        for note in &notes {
            if let Note::Start(start) = note {
                self.families.begins(start, &mut self.places);
            }
        }
        if self.notes.len() < MOST {
            self.notes.extend(notes);
        }
    }
}
