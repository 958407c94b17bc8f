//! The bytes of a dump file, including the *flattened* format, which makedumpfile writes where it
//! cannot seek, and qemu always for kdump.
//!
//! Flattened: a header of 4096 bytes (`struct makedumpfile_header`: 16 bytes "makedumpfile", type
//! and version as big-endian i64), then records of an offset and a length (big-endian i64) and that
//! many bytes, and a record of -1 at the end. Source: `makedumpfile.h` of makedumpfile 1.7.

use std::{fs::File, os::unix::fs::FileExt, path::Path};

use memmap2::Mmap;

use crate::error::{DumpError, NoDump, io_error};

const SIGNATURE: &[u8] = b"makedumpfile\0\0\0\0";
const HEADER_BYTES: usize = 4096;
const KCORE: &str = "/proc/kcore";

/// A file that is read at any offset.
#[derive(Debug)]
pub(crate) struct Bytes {
    content: Content,
    /// Flattened files only: the offset of each piece in the dump, and in the file.
    /// Sorted, and without overlaps.
    pieces: Option<Vec<Piece>>,
    /// Whether the record of the end is missing.
    pub(crate) is_cut: bool,
}

#[derive(Debug)]
enum Content {
    Map(Mmap),
    /// The memory of the running kernel (proc(5), kcore), which cannot be mapped.
    Kcore(File),
}

impl Content {
    fn map(&self) -> &[u8] {
        match self {
            Content::Map(map) => map,
            Content::Kcore(_) => &[],
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    offset: u64,
    length: u64,
    at: usize,
}

impl Bytes {
    pub(crate) fn open(path: &Path) -> Result<Bytes, DumpError> {
        let file = File::open(path).map_err(io_error(path))?;
        let kind = file.metadata().map_err(io_error(path))?;
        if !kind.is_file() {
            return Err(DumpError::NoDump(path.into(), NoDump::NoRegularFile));
        }
        if path == Path::new(KCORE) {
            return Ok(Bytes { content: Content::Kcore(file), pieces: None, is_cut: false });
        }
        // SAFETY: the map is only read, as bytes. If the file is truncated meanwhile, the kernel
        // ends this process, which does nothing else.
        let map = unsafe { Mmap::map(&file) }.map_err(io_error(path))?;
        let (pieces, is_cut) = if map.starts_with(SIGNATURE) {
            let (pieces, is_cut) = pieces(&map);
            (Some(pieces), is_cut)
        } else {
            (None, false)
        };
        Ok(Bytes { content: Content::Map(map), pieces, is_cut })
    }

    /// Fill `out` from this offset on. Returns whether the file contains all of it.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> bool {
        if let Content::Kcore(file) = &self.content {
            return file.read_exact_at(out, offset).is_ok();
        }
        let map = self.content.map();
        let Some(pieces) = &self.pieces else {
            let found = usize::try_from(offset).ok().and_then(|at| map.get(at..at.checked_add(out.len())?));
            if let Some(found) = found {
                out.copy_from_slice(found);
            }
            return found.is_some();
        };
        let (mut offset, mut rest) = (offset, out);
        while !rest.is_empty() {
            let next = pieces.partition_point(|piece| piece.offset <= offset);
            let Some(piece) = next.checked_sub(1).and_then(|at| pieces.get(at)) else { return false };
            let inside = offset - piece.offset;
            if inside >= piece.length {
                return false;
            }
            let length = rest.len().min(usize::try_from(piece.length - inside).unwrap_or(usize::MAX));
            let at = piece.at + inside as usize;
            let (now, later) = rest.split_at_mut(length);
            let Some(found) = map.get(at..at + length) else { return false };
            now.copy_from_slice(found);
            (offset, rest) = (offset + length as u64, later);
        }
        true
    }

    /// The bytes without a copy, if they are contiguous in memory.
    pub(crate) fn slice(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let at = usize::try_from(offset).ok().filter(|_| self.pieces.is_none())?;
        self.content.map().get(at..at.checked_add(length)?)
    }

    /// Bytes from this offset on, or fewer at the end; at most 64 MiB.
    pub(crate) fn range(&self, offset: u64, length: u64) -> Option<Vec<u8>> {
        let mut out = vec![0; usize::try_from(length).ok().filter(|length| *length <= 64 << 20)?];
        self.read(offset, &mut out).then_some(out)
    }

    /// Offset after the last byte.
    pub(crate) fn end(&self) -> u64 {
        match &self.pieces {
            None if self.is_kcore() => u64::MAX,
            None => self.content.map().len() as u64,
            Some(pieces) => pieces.last().map_or(0, |piece| piece.offset + piece.length),
        }
    }

    /// Whether it is the memory of the running kernel.
    pub(crate) fn is_kcore(&self) -> bool {
        matches!(self.content, Content::Kcore(_))
    }

    pub(crate) fn is_flattened(&self) -> bool {
        self.pieces.is_some()
    }
}

/// Pieces of a flattened file, and whether its end is missing.
fn pieces(map: &[u8]) -> (Vec<Piece>, bool) {
    let number = |at: usize| map.get(at..at + 8).and_then(|part| part.first_chunk()).map(|part| i64::from_be_bytes(*part));
    let (mut at, mut found) = (HEADER_BYTES, Vec::new());
    let is_cut = loop {
        let (Some(offset), Some(length)) = (number(at), number(at + 8)) else { break true };
        if offset < 0 {
            break false;
        }
        at += 16;
        let left = map.len().saturating_sub(at) as u64;
        let (offset, length) = (offset.cast_unsigned(), length.max(0).cast_unsigned().min(left));
        found.push(Piece { offset, length, at });
        at += length as usize;
    };
    (without_overlaps(found), is_cut)
}

/// The pieces in order; of overlapping ones, the later one counts.
fn without_overlaps(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut placed = std::collections::BTreeMap::<u64, Piece>::new();
    for piece in pieces.into_iter().filter(|piece| piece.length > 0) {
        let Some(end) = piece.offset.checked_add(piece.length) else { continue };
        let first = placed.range(..piece.offset).next_back().map_or(piece.offset, |(offset, _)| *offset);
        let touched: Vec<Piece> = placed.range(first..end).map(|(_, old)| *old).collect();
        for old in touched.into_iter().filter(|old| old.offset + old.length > piece.offset) {
            placed.remove(&old.offset);
            if old.offset < piece.offset {
                placed.insert(old.offset, Piece { length: piece.offset - old.offset, ..old });
            }
            let old_end = old.offset + old.length;
            if old_end > end {
                let cut = end - old.offset;
                placed.insert(end, Piece { offset: end, length: old_end - end, at: old.at + cut as usize });
            }
        }
        placed.insert(piece.offset, piece);
    }
    placed.into_values().collect()
}
