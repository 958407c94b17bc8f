//! A first look over a spool: what is whole, which frames are whose, and everything that later events refer to backwards and forwards.
//!
//! Paths are collected here, because a path may be reported by another CPU than the one whose call names the file. Only the headers of other
//! events are converted.

use std::{fs::File, path};

use rustc_hash::FxHashMap;
use sysdock_table::Cancel;

use crate::{
    BpfError,
    conversion::places::Places,
    events,
    families::Families,
    transport::{
        frames::{FrameRange, Frames},
        notes::{self, Note},
        spool::FrameKind,
        streams::Stream,
    },
};

/// What a spool holds.
pub(crate) struct Survey {
    pub(crate) file: File,
    /// By CPU, in order of their first frame.
    pub(crate) streams: Vec<Stream>,
    pub(crate) places: Places,
    /// What families have made of the events that later ones refer to.
    pub(crate) families: Families,
    pub(crate) notes: Vec<Note>,
    /// Whole events, and how many of them are of kinds that this version does not know.
    pub(crate) events: u64,
    pub(crate) unknown: u64,
    /// Events that end their frame, because they cannot be read.
    pub(crate) broken: u64,
    /// Notes that cannot be read.
    pub(crate) broken_notes: u64,
    /// Bytes that are no frame, and stretches of them, before a frame; and after the last.
    pub(crate) damaged_bytes: u64,
    pub(crate) damages: u64,
    pub(crate) cut_bytes: u64,
    /// Size of the file.
    pub(crate) bytes: u64,
}

impl Survey {
    /// Read the spool once.
    ///
    /// # Errors
    /// [`BpfError`] if it cannot be read, or holds no frame at all.
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

/// A survey in progress.
#[derive(Default)]
struct Pass {
    streams: Vec<Stream>,
    /// Indices of streams by CPU.
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
            // A stream ends where its events end to make sense, so that this is decided once.
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
        // A spool that was forged may name millions of CPUs.
        match self.cpus.get(&cpu) {
            Some(stream) => self.streams[*stream].add(place),
            None => {
                self.cpus.insert(cpu, self.streams.len());
                self.streams.push(Stream::new(place));
            }
        }
    }

    fn notes(&mut self, payload: &[u8]) {
        /// They come about once a second: these are for months.
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
