//! Names of functions and variables of a kernel, in the form of /proc/kallsyms (proc(5)): each line
//! has address, kind, name and, for a module, its name in brackets.

/// A symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'t> {
    pub address: u64,
    pub kind: &'t str,
    pub name: &'t str,
    /// The name of its module, in brackets.
    pub module: Option<&'t str>,
}

impl<'t> Line<'t> {
    /// `None` for a line without an address.
    fn of(line: &'t str) -> Option<Line<'t>> {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address != 0)?;
        Some(Line { address, kind: words.next()?, name: words.next()?, module: words.next() })
    }

    /// Whether it is in a section of code.
    #[must_use]
    pub fn is_code(&self) -> bool {
        matches!(self.kind, "t" | "T" | "w" | "W")
    }
}

/// The symbols of a text. Lines without an address are left out, which are all without the right to
/// see addresses.
pub fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().filter_map(Line::of)
}

/// Where some symbols are in a text: addresses, and offsets of their lines, ordered by address.
#[derive(Debug, Default)]
pub struct Places(Vec<(u64, usize)>);

impl Places {
    /// The places of the symbols that are `wanted`.
    pub fn of(text: &str, wanted: impl Fn(&Line<'_>) -> bool) -> Places {
        let begin = |line: &str| line.as_ptr() as usize - text.as_ptr() as usize;
        let place = |line| Line::of(line).filter(&wanted).map(|found| (found.address, begin(line)));
        let mut places: Vec<_> = text.lines().filter_map(place).collect();
        // The sort is stable: of several names of one address the first in the file is kept.
        places.sort_by_key(|(address, _)| *address);
        places.dedup_by_key(|(address, _)| *address);
        Places(places)
    }

    /// Their number.
    #[must_use]
    pub fn number(&self) -> usize {
        self.0.len()
    }

    /// The last symbol at or before an address; `text`: the one with these places.
    #[must_use]
    pub fn before<'t>(&self, text: &'t str, address: u64) -> Option<Line<'t>> {
        let (_, begin) = self.0[..self.0.partition_point(|(start, _)| *start <= address)].last()?;
        Line::of(text[*begin..].lines().next()?)
    }
}
