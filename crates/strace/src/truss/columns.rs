//! The time columns of truss: parses them, and detects which ones a log has.

use super::{SLEEPING, base, name};

/// The time columns of a log, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// `-d`
    pub(crate) stamp: bool,
    /// `-D`
    pub(crate) since_last: bool,
    /// `-E`
    pub(crate) system_cpu: bool,
}

impl Columns {
    /// Parse option letters: any of `d`, `D`, `E`, in any order; empty for none.
    #[must_use]
    pub fn from_letters(letters: &str) -> Option<Self> {
        let mut columns = Columns::default();
        for letter in letters.chars() {
            let column = match letter {
                'd' => &mut columns.stamp,
                'D' => &mut columns.since_last,
                'E' => &mut columns.system_cpu,
                _ => return None,
            };
            if std::mem::replace(column, true) {
                return None;
            }
        }
        Some(columns)
    }

    pub(crate) fn count(self) -> usize {
        usize::from(self.stamp) + usize::from(self.since_last) + usize::from(self.system_cpu)
    }
}

/// Properties common to all lines of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) columns: Columns,
    /// Whether the log itself determines its columns. If not, the user should be told and asked.
    pub(crate) certain: bool,
    /// The base time of `-d`, since the Unix epoch [ns].
    pub(crate) base_ns: Option<i64>,
}

/// Number of lines that are examined to detect the columns, and limit of those with columns among
/// them.
const LINES: usize = 100_000;
const SAMPLES: usize = 1_000;

/// Process and LWP.
type Thread = (Option<i32>, Option<i32>);

/// One line with columns of unknown meaning. Values are in units of 0.1 ms.
struct Sample {
    thread: Thread,
    values: [i64; 3],
    count: usize,
    /// The thread's line before was `(sleeping...)`.
    slept: bool,
}

impl Layout {
    /// The layout that the user gave.
    pub(crate) fn given(columns: Columns) -> Self {
        Layout { columns, certain: true, base_ns: None }
    }

    /// Add the base time, if the base line is among these first lines.
    pub(crate) fn based<'a>(self, lines: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Layout { base_ns: lines.into_iter().take(LINES).find_map(base), ..self }
    }

    /// Detect the columns from the first lines of a log. The three columns look alike, so:
    ///
    /// - Their number is that of most lines with columns. Three are `-d -D -E`.
    /// - The base line is printed with `-d` only. If it was cut off, a first column is still `-d`
    ///   if it rises at least [`Self::RISES`] times and never falls within a thread: intervals and
    ///   CPU times fall.
    /// - Two with `-d`: the second is `-D` if it equals the difference of the stamps of its thread
    ///   (main.c:timestamp computes both from the same rounded numbers, so this is exact);
    ///   otherwise `-E`. Two without `-d` are `-D -E`.
    /// - One that is not `-d`: truss prints `(sleeping...)` after a second without an event, so
    ///   that thread's next value is one second or more for `-D`, and next to nothing for `-E`.
    ///   Without such a line the two cannot be distinguished: `-D` is assumed, and `certain` is
    ///   false. It is also false if there are fewer than [`Self::ENOUGH`] comparisons.
    ///
    /// The second value: whether more lines would not change the result.
    pub(crate) fn detect<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> (Self, bool) {
        let Samples { samples, bare, lines, base_ns } = Samples::of(lines);
        let mut widths = [0usize; 4];
        samples.iter().for_each(|sample| widths[sample.count] += 1);
        let width = (1..4).max_by_key(|&width| (widths[width], width)).filter(|&width| widths[width] > 0).unwrap_or(0);
        let (mut rises, mut falls, mut equal, mut compared, mut gaps, mut cpu_times) = (0, 0, 0, 0, 0, 0);
        let mut last: Vec<(Thread, i64)> = Vec::new();
        for sample in samples.iter().filter(|sample| sample.count == width) {
            let [first, second, _] = sample.values;
            match last.iter_mut().find(|(thread, _)| *thread == sample.thread) {
                Some((_, before)) => {
                    rises += usize::from(first > *before);
                    falls += usize::from(first < *before);
                    // Two zeros show nothing.
                    if second != 0 || first != *before {
                        compared += 1;
                        equal += usize::from(second == first - *before);
                    }
                    *before = first;
                }
                None => last.push((sample.thread, first)),
            }
            if sample.slept {
                gaps += usize::from(first >= 9_000);
                cpu_times += usize::from(first < 5_000);
            }
        }
        let stamp = base_ns.is_some() || (falls == 0 && rises >= Self::RISES);
        let gaps_follow_stamps = equal * 10 >= compared * 9;
        let (letters, certain) = match (width, stamp) {
            (0, false) => ("", true),
            (0 | 1, true) => ("d", true),
            (1, false) if gaps != cpu_times => (if gaps > cpu_times { "D" } else { "E" }, true),
            (1, false) => ("D", false),
            (2, true) => (if gaps_follow_stamps { "dD" } else { "dE" }, compared >= Self::ENOUGH),
            (2, false) => ("DE", falls > 0),
            _ => ("dDE", true),
        };
        let enough = samples.len() == SAMPLES || lines == LINES || (certain && samples.len() + bare >= Self::PLENTY);
        (Layout { columns: Columns::from_letters(letters).unwrap_or_default(), certain, base_ns }, enough)
    }

    const RISES: usize = 8;
    const ENOUGH: usize = 4;
    /// Number of lines after which a certain layout is final.
    const PLENTY: usize = 64;
}

/// Evidence about the columns in the first lines of a log.
struct Samples {
    samples: Vec<Sample>,
    /// Number of calls without columns.
    bare: usize,
    lines: usize,
    base_ns: Option<i64>,
}

impl Samples {
    fn of<'a>(all: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut found = Samples { samples: Vec::new(), bare: 0, lines: 0, base_ns: None };
        let mut sleeping = Vec::new();
        for line in all.into_iter().take(LINES) {
            if found.samples.len() == SAMPLES {
                break;
            }
            found.lines += 1;
            found.base_ns = found.base_ns.or_else(|| base(line));
            let (prefix, rest) = name(line);
            let thread = (prefix.pid, prefix.lwp);
            let (values, count, _) = values(rest, 3);
            if count > 0 {
                let slept = sleeping.iter().position(|other| *other == thread).map(|at| sleeping.swap_remove(at)).is_some();
                found.samples.push(Sample { thread, values, count, slept });
            } else if rest.ends_with(SLEEPING) {
                if !sleeping.contains(&thread) && sleeping.len() < 64 {
                    sleeping.push(thread);
                }
            } else if matches!(rest.first(), Some(b'a'..=b'z' | b'_')) {
                found.bare += 1;
            }
        }
        found
    }
}

/// Up to `limit` columns in units of 0.1 ms, their number, and the text after them.
pub(super) fn values(line: &[u8], limit: usize) -> ([i64; 3], usize, &[u8]) {
    let mut values = [0; 3];
    let mut rest = line;
    for count in 0..limit.min(3) {
        let Some((value, tail)) = value(rest) else { return (values, count, rest) };
        values[count] = value;
        rest = tail;
    }
    (values, limit.min(3), rest)
}

/// Parse `%2d.%4.4d` and a tab (main.c:timestamp). Seconds are rounded down and the fraction counts
/// up: `-1.9999` is -0.1 ms.
fn value(line: &[u8]) -> Option<(i64, &[u8])> {
    let body = line.strip_prefix(b" ").unwrap_or(line);
    let (negative, body) = body.strip_prefix(b"-").map_or((false, body), |body| (true, body));
    let digit = |at: usize| body.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10).map(i64::from);
    let (mut seconds, mut len) = (0, 0);
    while let Some(digit) = digit(len) {
        seconds = seconds * 10 + digit;
        len += 1;
        if len > 11 {
            return None;
        }
    }
    if len == 0 || body.get(len) != Some(&b'.') {
        return None;
    }
    let fraction = digit(len + 1)? * 1000 + digit(len + 2)? * 100 + digit(len + 3)? * 10 + digit(len + 4)?;
    let rest = &body[len + 5..];
    let rest = match rest {
        [b'\t', tail @ ..] => tail,
        [b' ', ..] => rest.trim_ascii_start(),
        _ => return None,
    };
    Some((if negative { -seconds } else { seconds } * 10_000 + fraction, rest))
}
