//! Groups logs to sessions and relates their clocks.
//!
//! `strace -ff` writes a file for each thread: one *session*, in which thread ids are unique. Logs
//! of MPI ranks, of several hosts, or of several runs are separate sessions, in which the same id
//! may mean different threads.

use std::path::Path;

use rustc_hash::FxHashMap;

use crate::{import::ImportError, merge::Feed};

/// Assign logs to sessions; returns a name for each session, made of the parts in which the logs'
/// names differ.
pub(crate) fn assign(feeds: &mut [Feed]) -> Vec<String> {
    let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
    let mut firsts = Vec::new();
    let sets = sets(feeds);
    for (index, feed) in feeds.iter_mut().enumerate() {
        let path = feed.input.path.to_string_lossy().into_owned();
        let key = if sets[index] { base(&feed.input.path) } else { path.clone() };
        if !sets[index] {
            feed.input.tid = None;
        }
        let next = u32::try_from(numbers.len()).expect("fewer than 2^32 logs");
        feed.input.session = *numbers.entry(key.clone()).or_insert_with(|| {
            firsts.push(key);
            next
        });
    }
    separate_without_clock(feeds);
    names(&firsts)
}

/// For each log, whether it is one thread's part of a set: several logs have the same name except
/// for a thread id, and no line has an id. Numbers counted from 0 or 1 are ranks, not threads.
fn sets(feeds: &[Feed]) -> Vec<bool> {
    let mut members: FxHashMap<String, (usize, i32)> = FxHashMap::default();
    let thread = |feed: &Feed| feed.input.tid.filter(|_| !feed.has_thread_ids());
    for feed in feeds {
        if let Some(tid) = thread(feed) {
            let (count, least) = members.entry(base(&feed.input.path)).or_insert((0, i32::MAX));
            (*count, *least) = (*count + 1, (*least).min(tid));
        }
    }
    let is_set = |feed: &Feed| {
        let (count, least) = members.get(&base(&feed.input.path)).copied().unwrap_or_default();
        thread(feed).is_some() && least > 1 && (count > 1 || feeds.len() == 1)
    };
    feeds.iter().map(is_set).collect()
}

/// The name without `.TID`.
fn base(path: &Path) -> String {
    path.with_extension("").to_string_lossy().into_owned()
}

/// Logs of a set without a clock, or with relative times only, are read one after another, in order
/// of their thread ids: parents come before their children.
fn separate_without_clock(feeds: &mut [Feed]) {
    if feeds.len() < 2 {
        return;
    }
    let mut order: Vec<usize> = (0..feeds.len()).filter(|index| !feeds[*index].has_clock()).collect();
    order.sort_by_key(|index| (feeds[*index].input.session, feeds[*index].input.tid));
    for (place, index) in (1..).zip(order) {
        feeds[index].place = place;
    }
}

/// The distinguishing parts of paths: file names, the folders above them, or the whole paths.
fn names(paths: &[String]) -> Vec<String> {
    let file =
        |path: &String| Path::new(path).file_name().map_or_else(|| path.clone(), |name| name.to_string_lossy().into_owned());
    let folder =
        |path: &String| Path::new(path).parent().map_or_else(String::new, |parent| file(&parent.to_string_lossy().into_owned()));
    for part in [&file as &dyn Fn(&String) -> String, &folder] {
        let parts: Vec<String> = paths.iter().map(part).collect();
        let mut distinct: Vec<&String> = parts.iter().filter(|part| !part.is_empty()).collect();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() == paths.len() {
            return parts;
        }
    }
    paths.to_vec()
}

/// Add offsets to the clocks of the named logs. A name is that of a session, or a folder or dotted
/// part of a path.
///
/// # Errors
/// [`ImportError::NoSuchLog`] if no log has the name.
pub(crate) fn shift(feeds: &mut [Feed], names: &[String], offsets: &[(String, i64)]) -> Result<(), ImportError> {
    for (name, offset_ns) in offsets {
        let mut found = false;
        for feed in &mut *feeds {
            let session = &names[feed.input.session as usize];
            let path = feed.input.path.to_string_lossy();
            if session == name || path.split(['/', '.']).any(|part| part == name) {
                feed.shift_ns += offset_ns;
                found = true;
            }
        }
        if !found {
            return Err(ImportError::NoSuchLog(name.clone(), names.to_vec()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_parts_in_which_paths_differ() {
        let of = |paths: &[&str]| names(&paths.iter().map(|path| (*path).to_string()).collect::<Vec<_>>());
        assert_eq!(of(&["/a/x.log", "/a/y.log"]), ["x.log", "y.log"]);
        assert_eq!(of(&["/a/n1/run", "/a/n2/run"]), ["n1", "n2"]);
        assert_eq!(of(&["/a/n1/run", "/b/n1/run"]), ["/a/n1/run", "/b/n1/run"]);
        assert_eq!(of(&["run"]), ["run"]);
    }
}
