//! The files that took the most time, in a bounded list (Space-Saving: Metwally, Agrawal, El Abbadi
//! 2005): when the list is full, a new file replaces the one with the least time, and starts from
//! that time. The time reported for a file is too large by at most `error_ns`.

use serde::{Deserialize, Serialize};
use sysdock_bpf::accounting::JobFile;

/// A bounded list of files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sketch {
    room: usize,
    files: Vec<Counted>,
}

/// A file in the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counted {
    pub(crate) device: u64,
    inode: u64,
    pub(crate) path: String,
    pub(crate) calls: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    pub(crate) time_ns: u64,
    pub(crate) error_ns: u64,
}

impl Sketch {
    pub(crate) fn new(room: usize) -> Sketch {
        Sketch { room: room.max(1), files: Vec::new() }
    }

    pub(crate) fn add(&mut self, file: &JobFile) {
        let path = String::from_utf8_lossy(&file.path);
        let known = self.files.iter_mut().find(|known| (known.device, known.inode) == (file.device, file.inode));
        let counted = match known {
            Some(known) => known,
            None => self.place(file),
        };
        if counted.path.is_empty() {
            counted.path = path.into_owned();
        }
        counted.calls = counted.calls.saturating_add(file.calls);
        counted.read_bytes = counted.read_bytes.saturating_add(file.read_bytes);
        counted.written_bytes = counted.written_bytes.saturating_add(file.written_bytes);
        counted.time_ns = counted.time_ns.saturating_add(file.time_ns);
    }

    /// A place for a file: a new one, or that of the file with the least time.
    fn place(&mut self, file: &JobFile) -> &mut Counted {
        let fresh = Counted { device: file.device, inode: file.inode, ..Counted::default() };
        let place = if self.files.len() < self.room.max(1) {
            self.files.push(fresh);
            self.files.len() - 1
        } else {
            let least = self.files.iter().enumerate().min_by_key(|(_, known)| known.time_ns);
            let (place, time_ns) = least.map_or((0, 0), |(place, known)| (place, known.time_ns));
            if let Some(known) = self.files.get_mut(place) {
                *known = Counted { time_ns, error_ns: time_ns, ..fresh };
            }
            place
        };
        #[expect(clippy::indexing_slicing, reason = "it was pushed, or found, just now")]
        &mut self.files[place]
    }

    /// The files, the one with the most time first.
    pub(crate) fn into_most(mut self) -> Vec<Counted> {
        self.files.sort_by_key(|file| std::cmp::Reverse(file.time_ns));
        self.files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(inode: u64, time_ns: u64) -> JobFile {
        JobFile { inode, time_ns, calls: 1, path: format!("/f{inode}").into_bytes(), ..JobFile::default() }
    }

    /// A reported time is never too small, and too large by at most the reported error.
    #[test]
    fn errors_are_bounded_as_stated() {
        let mut sketch = Sketch::new(8);
        let mut truth = std::collections::BTreeMap::new();
        let mut seed = 1u64;
        for _ in 0..5000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // A few files take most of the time.
            let inode = (seed >> 33) % 4 * ((seed >> 40) % 40) / 2;
            let time_ns = (seed >> 50) % 100;
            *truth.entry(inode).or_insert(0) += time_ns;
            sketch.add(&file(inode, time_ns));
        }
        let most = sketch.into_most();
        assert_eq!(most.len(), 8);
        let least = most.last().expect("eight").time_ns;
        for found in &most {
            let true_ns = truth[&found.inode];
            assert!(found.time_ns >= true_ns && found.time_ns - found.error_ns <= true_ns, "{found:?} {true_ns}");
        }
        for (inode, time_ns) in &truth {
            assert!(most.iter().any(|found| found.inode == *inode) || *time_ns <= least, "{inode}: {time_ns} > {least}");
        }
    }

    #[test]
    fn a_name_that_comes_late_is_taken() {
        let mut sketch = Sketch::new(2);
        sketch.add(&JobFile { path: Vec::new(), ..file(1, 5) });
        sketch.add(&file(1, 5));
        let most = sketch.into_most();
        assert_eq!((most.len(), most[0].path.as_str(), most[0].calls), (1, "/f1", 2));
    }
}
