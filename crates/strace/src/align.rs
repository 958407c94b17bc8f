//! Estimates how far the clocks of several hosts differ, from files that more than one of them
//! uses.
//!
//! Host B cannot find a file before host A has created it, and cannot miss it after that. With `d`
//! added to B's times: if B finds the file, `d >= created.start - found.end`; if B does not find it
//! yet, `d <= created.end - missed.start`. Many files narrow the range. Paths that were removed or
//! renamed are not used.

use rustc_hash::FxHashMap;

use crate::{fields::Call, open_flags::OpenFlags};
use sysdock_calls::{
    CallRow, NONE, ObjectId,
    syscalls::{Class, Shape},
};

/// strace starts the clock of a duration only after it has printed the arguments, so a call may end
/// up to this much later than time stamp plus duration.
const SLACK_NS: i64 = 1_000_000;

/// Start and end of a call.
type Span = (i64, i64);

/// Uses of one path by one session.
#[derive(Clone, Copy, Debug, Default)]
struct Sighting {
    created: Option<Span>,
    /// The last lookup that failed before the first one that succeeded.
    missed: Option<Span>,
    found: Option<Span>,
}

/// Sightings of all sessions by path. A path that was removed or renamed is kept, marked as
/// unusable.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    paths: FxHashMap<ObjectId, Option<FxHashMap<u32, Sighting>>>,
}

/// Offset to add to the times of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The middle of the range; 0 if the range contains 0; its only end if it has just one.
    pub offset_ns: i64,
    /// Least and greatest offset that agrees with all files; `i64::MIN` and `i64::MAX` if there is
    /// no limit.
    pub range_ns: (i64, i64),
    /// Number of files that were compared.
    pub files: u64,
}

impl Sightings {
    /// Record a call on a path.
    pub(crate) fn see(&mut self, session: u32, shape: Shape, class: Class, call: &Call<'_>, row: &CallRow) {
        let Ok(object) = ObjectId::try_from(row.object) else { return };
        let failed = call.returned.errno == Some(b"ENOENT");
        if call.returned.value.is_none() && !failed {
            return;
        }
        let path = self.paths.entry(object).or_insert_with(|| Some(FxHashMap::default()));
        if matches!(shape, Shape::Remove(..) | Shape::Rename(..)) && !failed {
            *path = None;
        }
        let Some(sessions) = path else { return };
        let sighting = sessions.entry(session).or_default();
        let dur_ns = if row.dur_ns == NONE { 0 } else { row.dur_ns };
        let span = (row.ts_ns, row.ts_ns.saturating_add(dur_ns).saturating_add(SLACK_NS));
        let flags = match shape {
            Shape::Open(_, _, flags) => OpenFlags::of(call.arguments.get(flags)),
            _ => OpenFlags::default(),
        };
        match (failed, shape) {
            (true, _) if sighting.found.is_none() => sighting.missed = Some(span),
            (true, _) => {}
            (false, Shape::Open(..)) if flags.create && (flags.exclusive || sighting.missed.is_some()) => {
                sighting.created.get_or_insert(span);
                sighting.found.get_or_insert(span);
            }
            // It is unknown whether the file existed before.
            (false, Shape::Open(..)) if flags.create => {
                sighting.found.get_or_insert(span);
            }
            (false, Shape::Path(_) | Shape::PathAt(..)) if class == Class::Name => {
                sighting.created.get_or_insert(span);
                sighting.found.get_or_insert(span);
            }
            (false, Shape::Open(..) | Shape::Path(_) | Shape::PathAt(..)) => {
                sighting.found.get_or_insert(span);
            }
            _ => {}
        }
    }

    /// The offset of each session relative to those before it; the first session has offset 0.
    /// `None` if no file relates it to another session.
    pub(crate) fn offsets(&self, sessions: u32) -> Vec<Option<Estimate>> {
        let mut known: Vec<Option<Estimate>> = Vec::new();
        for session in 0..sessions {
            let estimate = match session {
                0 => Some(Estimate { offset_ns: 0, range_ns: (0, 0), files: 0 }),
                _ => self.against(session, &known),
            };
            known.push(estimate);
        }
        known
    }

    fn against(&self, session: u32, known: &[Option<Estimate>]) -> Option<Estimate> {
        let (mut least, mut greatest, mut files) = (i64::MIN, i64::MAX, 0);
        for sightings in self.paths.values().flatten() {
            let Some(own) = sightings.get(&session) else { continue };
            let before = (files, least, greatest);
            for (other, offset) in known.iter().enumerate().filter_map(|(other, known)| Some((other, known.as_ref()?.offset_ns)))
            {
                let Some(theirs) = sightings.get(&(other as u32)) else { continue };
                if let Some((start, end)) = theirs.created {
                    own.found.iter().for_each(|found| least = least.max(start.saturating_add(offset).saturating_sub(found.1)));
                    own.missed
                        .iter()
                        .for_each(|missed| greatest = greatest.min(end.saturating_add(offset).saturating_sub(missed.0)));
                } else if let Some((start, end)) = own.created {
                    theirs
                        .found
                        .iter()
                        .for_each(|found| greatest = greatest.min(found.1.saturating_add(offset).saturating_sub(start)));
                    theirs.missed.iter().for_each(|missed| least = least.max((missed.0 + offset).saturating_sub(end)));
                }
            }
            files += u64::from((least, greatest) != (before.1, before.2));
        }
        if files == 0 || least > greatest {
            return None;
        }
        let offset_ns = match (least, greatest) {
            (least, greatest) if least <= 0 && greatest >= 0 => 0,
            (i64::MIN, only) | (only, i64::MAX) => only,
            (least, greatest) => ((i128::from(least) + i128::from(greatest)) / 2) as i64,
        };
        Some(Estimate { offset_ns, range_ns: (least, greatest), files })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sightings(of: &[(u32, Sighting)]) -> Sightings {
        Sightings { paths: FxHashMap::from_iter([(0, Some(of.iter().copied().collect()))]) }
    }

    #[test]
    fn a_file_that_is_missed_and_then_found_gives_both_bounds() {
        let creator = Sighting { created: Some((1000, 1010)), missed: None, found: Some((1000, 1010)) };
        // A clock that is 500 behind saw the file missing at 495 and found it at 515.
        let looker = Sighting { created: None, missed: Some((495, 496)), found: Some((515, 516)) };
        let estimates = sightings(&[(0, creator), (1, looker)]).offsets(2);
        assert_eq!(estimates[1], Some(Estimate { offset_ns: 499, range_ns: (484, 515), files: 1 }));
        let reversed = sightings(&[(1, creator), (0, looker)]).offsets(2);
        assert_eq!(reversed[1].unwrap().range_ns, (-515, -484));
    }

    #[test]
    fn clocks_that_agree_are_left_alone_and_without_a_shared_file_nothing_is_said() {
        let creator = Sighting { created: Some((1000, 1010)), ..Sighting::default() };
        let looker = Sighting { found: Some((1020, 1030)), ..Sighting::default() };
        assert_eq!(sightings(&[(0, creator), (1, looker)]).offsets(2)[1].unwrap().offset_ns, 0);
        assert_eq!(sightings(&[(0, creator)]).offsets(2)[1], None);
    }
}
