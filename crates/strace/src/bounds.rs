//! Limits of the numbers in a log.
//!
//! A log may state any number, but numbers in the tables are added up in 64 bits. Lines with a
//! number beyond these limits are refused; the limits are far greater than anything a kernel does,
//! and small enough that no sum overflows.

use sysdock_calls::{
    CallRow, LONGEST_NS, NONE,
    syscalls::{Class, Shape},
};

use sysdock_table::{Fact, facts::issues as facts};

use crate::{fields::Call, text};

/// The year 2200. Nanoseconds since 1970 overflow in 2262, so durations can be added to any
/// accepted time.
const LATEST_NS: i64 = 7_258_118_400 * 1_000_000_000;

/// 128 TiB, the address space of a process. Linux transfers at most 2 GiB per call (man 2 read).
const MOST_BYTES: i64 = 1 << 47;

/// 64 PiB, the address space of a process with five-level page tables, which limits the length of a
/// mapping.
const LONGEST_MAPPING: i64 = 1 << 56;

/// 4 EiB, beyond the end of any file. Negative offsets are kernel addresses (`/proc/kcore`,
/// `/dev/mem`), and calls return addresses, so the limit applies to both signs.
const FARTHEST: i64 = 1 << 62;

/// Whether a line can have this time.
pub(crate) fn is_time(ns: i64) -> bool {
    (-LATEST_NS..=LATEST_NS).contains(&ns)
}

fn is_near(number: i64) -> bool {
    (-FARTHEST..=FARTHEST).contains(&number)
}

/// The duration of an operation [ns]; `None` if it is impossible.
pub(crate) fn duration(ns: i64) -> Option<i64> {
    Some(ns).filter(|ns| *ns <= LONGEST_NS)
}

/// An offset that an operation names; `None` if it is impossible.
pub(crate) fn place(offset: i64) -> Option<i64> {
    Some(offset).filter(|offset| is_near(*offset))
}

/// Number of bytes that an operation moved; `None` if it is impossible.
pub(crate) fn transferred(bytes: i64) -> Option<i64> {
    Some(bytes).filter(|bytes| *bytes <= MOST_BYTES)
}

/// Describe the impossible part of a call, duration or result; `None` if there is none.
#[inline]
pub(crate) fn impossible(shape: &Shape, call: &Call<'_>) -> Option<Fact> {
    // Nearly all calls are short and return small values.
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

/// Whether the call returns the result of another call or a leftover register value.
fn is_register(name: &[u8]) -> bool {
    name.ends_with(b"sigreturn") || name == b"restart_syscall"
}

/// The result as stored in its column.
pub(crate) fn result(value: Option<i64>) -> i64 {
    value.filter(|value| is_near(*value)).unwrap_or(NONE)
}

/// Describe the impossible part of a row, an offset or the length of a mapping; `None` if there is
/// none. For a call that failed, such values are removed instead, since they may be the reason for
/// the error.
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
