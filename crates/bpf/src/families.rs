//! What is recorded beside system calls and processes. Each family has programs of its own, so that a kernel that lacks what one of them
//! needs still records the others.

/// A family of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name in `--what` and in a recording.
    pub word: &'static str,
    /// What it shows, for the help and for messages.
    pub shows: &'static str,
    /// Whether it is recorded unless something else is asked for.
    pub is_usual: bool,
    /// Its programs; none: it is a part of those for system calls.
    pub(crate) object: &'static [u8],
    /// Names of programs to leave out, because a kernel lacks what they need or they are for other kernels: what is tried, in this order.
    pub(crate) left_out: &'static [&'static [&'static str]],
}

/// Operations of io_uring.
pub(crate) const URING: Family = Family {
    word: "uring",
    shows: "operations of io_uring",
    is_usual: true,
    object: include_bytes!(concat!(env!("OUT_DIR"), "/uring.bpf.o")),
    // In 6.1 the tracepoint of the submission has another name, and up to 6.12 that of the completion has other arguments.
    left_out: &[&["submitted_early", "completed_early"], &["submitted_early", "completed"], &["submitted", "completed"]],
};

/// Page faults on mapped files.
pub(crate) const FAULTS: Family = Family {
    word: "faults",
    shows: "page faults on mapped files",
    is_usual: true,
    object: include_bytes!(concat!(env!("OUT_DIR"), "/faults.bpf.o")),
    left_out: &[&[], &["map_around"]],
};

/// What the page cache has a block device do for files.
pub(crate) const CACHE: Family = Family {
    word: "cache",
    shows: "reads and writes of the disk for files",
    is_usual: true,
    object: include_bytes!(concat!(env!("OUT_DIR"), "/cache.bpf.o")),
    left_out: &[&[]],
};

/// Where in programs calls are made.
pub const STACKS: Family =
    Family { word: "stacks", shows: "where in programs calls are made", is_usual: false, left_out: &[], object: &[] };

/// All there are.
pub const FAMILIES: [Family; 4] = [URING, FAULTS, CACHE, STACKS];

/// What `--what` calls the system calls and processes, which are always recorded.
pub const IO: &str = "io";

/// The families that a list of words names. Without words: the usual ones.
///
/// # Errors
/// The first word that names none.
pub fn chosen<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Vec<Family>, &'a str> {
    let mut words = words.into_iter().peekable();
    if words.peek().is_none() {
        return Ok(FAMILIES.into_iter().filter(|family| family.is_usual).collect());
    }
    let mut chosen = Vec::new();
    for word in words.filter(|word| *word != IO) {
        let family = FAMILIES.into_iter().find(|family| family.word == word).ok_or(word)?;
        if !chosen.contains(&family) {
            chosen.push(family);
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_choose_families() {
        assert_eq!(chosen(["io"]), Ok(vec![]));
        assert_eq!(chosen(["uring", "io", "uring"]), Ok(vec![URING]));
        assert_eq!(chosen(["io", "urine"]), Err("urine"));
        assert!(chosen([]).expect("no word is wrong").contains(&URING));
    }
}
