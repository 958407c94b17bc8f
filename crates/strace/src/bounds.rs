//! Numbers that no real call has.
//!
//! A log may say anything, and what gets into the tables is added up, and laid end to end, in 64 bits. So a line is refused whose numbers are out of
//! all reason; the bounds lie far beyond what a kernel does, and far below what would not fit.

use sysdock_calls::{
    CallRow, LONGEST_NS, NONE,
    syscalls::{Class, Shape},
};

use sysdock_table::{Fact, facts::issues as facts};

use crate::{fields::Call, text};

/// The year 2200. Nanoseconds since 1970 end in 2262: there is room for what is added to a time.
const LATEST_NS: i64 = 7_258_118_400 * 1_000_000_000;

/// 128 TiB, the addresses of a process. Linux transfers 2 GiB in a call at most (man 2 read).
const MOST_BYTES: i64 = 1 << 47;

/// 64 PiB, the addresses of a process where page tables have five levels: no mapping is longer.
const LONGEST_MAPPING: i64 = 1 << 56;

/// 4 EiB. Files end there at the latest, whatever their file system says, and places before 0 are addresses of the kernel, seen through a file.
/// Addresses that a call returns lie within it on both sides too.
const FARTHEST: i64 = 1 << 62;

/// Whether a line can have this time.
pub(crate) fn is_time(ns: i64) -> bool {
    (-LATEST_NS..=LATEST_NS).contains(&ns)
}

fn is_near(number: i64) -> bool {
    (-FARTHEST..=FARTHEST).contains(&number)
}

/// How long an operation took, if that can be.
pub(crate) fn duration(ns: i64) -> Option<i64> {
    Some(ns).filter(|ns| *ns <= LONGEST_NS)
}

/// A place in a file that an operation names, if it can be one.
pub(crate) fn place(offset: i64) -> Option<i64> {
    Some(offset).filter(|offset| is_near(*offset))
}

/// How much an operation moved, if that can be.
pub(crate) fn transferred(bytes: i64) -> Option<i64> {
    Some(bytes).filter(|bytes| *bytes <= MOST_BYTES)
}

/// What of a call cannot be, if anything: its duration or its result.
#[inline]
pub(crate) fn impossible(shape: &Shape, call: &Call<'_>) -> Option<Fact> {
    // Nearly all calls are short, and return little.
    let value = call.returned.value.unwrap_or(0);
    let is_common = value.unsigned_abs() <= MOST_BYTES.unsigned_abs() && call.dur_ns.unwrap_or(0) <= LONGEST_NS;
    if is_common { None } else { implausible_call(shape, call) }
}

#[cold]
fn implausible_call(shape: &Shape, call: &Call<'_>) -> Option<Fact> {
    let too_long = call.dur_ns.is_some_and(|ns| ns > LONGEST_NS);
    let value = call.returned.value.unwrap_or(0);
    let fits = match shape {
        Shape::Transfer(..) | Shape::Between { .. } | Shape::ReceiveMessage => (-FARTHEST..=MOST_BYTES).contains(&value),
        _ => is_near(value) || is_register(call.name),
    };
    (too_long || !fits).then(|| explain(too_long, call))
}

#[cold]
fn explain(too_long: bool, call: &Call<'_>) -> Fact {
    let name = String::from_utf8_lossy(&call.name[..call.name.len().min(32)]).into_owned();
    match too_long {
        true => facts::impossible_duration(name, call.dur_ns.unwrap_or(0)),
        false => facts::impossible_result(name, call.returned.value.unwrap_or(0)),
    }
}

/// A call that ends with the result of another, or with whatever is in the register.
fn is_register(name: &[u8]) -> bool {
    name.ends_with(b"sigreturn") || name == b"restart_syscall"
}

/// The result for its column.
pub(crate) fn result(value: Option<i64>) -> i64 {
    value.filter(|value| is_near(*value)).unwrap_or(NONE)
}

/// What of a row cannot be, if anything: places in files, and how long a mapping is. What a call that failed named is left out, as it may have
/// failed for it.
#[inline]
pub(crate) fn impossible_place(shape: &Shape, call: &Call<'_>, row: &mut CallRow) -> Option<Fact> {
    let is_common = |place: i64| place == NONE || is_near(place);
    if *shape != Shape::Map && is_common(row.offset) && is_common(row.to_offset) {
        return None;
    }
    implausible_places(shape, call, row)
}

fn implausible_places(shape: &Shape, call: &Call<'_>, row: &mut CallRow) -> Option<Fact> {
    let has_failed = call.returned.value.is_none_or(|value| value < 0);
    let mut found = None;
    for place in [&mut row.offset, &mut row.to_offset] {
        if *place != NONE && !is_near(*place) {
            found = Some(*place);
            *place = NONE;
        }
    }
    if let Some(offset) = found.filter(|_| !has_failed) {
        return Some(facts::impossible_offset(offset));
    }
    let maps = *shape == Shape::Map && row.class != Class::Memory as u8 && !has_failed;
    let length = if maps { text::leading_number(call.arguments.get(1)).unwrap_or(0) } else { 0 };
    (!(0..=LONGEST_MAPPING).contains(&length)).then(|| facts::impossible_length(length))
}
