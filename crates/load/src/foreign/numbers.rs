//! Numbers as people and tools write them.

/// No device, network or memory transfers as many bytes, or does as many operations, in a second,
/// and no result is as large.
pub(super) const MOST: f64 = (1_u64 << 60) as f64;

/// A plain number; `None` if it is none, is not finite, or is impossible for a result.
pub(super) fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number| possible(*number))
}

/// Whether a result could have this number.
pub(super) fn possible(number: f64) -> bool {
    (0.0..=MOST).contains(&number)
}

/// The nearest whole number.
pub(super) fn whole(number: f64) -> i64 {
    // In range, as `possible` numbers are; others are clamped by the cast.
    number.round() as i64
}

/// A number of processes, files and the like.
pub(super) fn count(text: &str) -> Option<i32> {
    text.trim().parse().ok().filter(|count| *count >= 0)
}

/// Bytes, written as `4k`, `1 MiB`, `262144 bytes`, `1m`; letters mean powers of 1024, as in all
/// tools.
pub(super) fn bytes(text: &str) -> Option<i64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit = unit.trim().to_ascii_lowercase();
    let power = match unit.trim_end_matches("ib").trim_end_matches('b') {
        "" | "bytes" | "byte" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        "p" => 50,
        _ => return None,
    };
    let value = number(digits)? * (1_u64 << power) as f64;
    possible(value).then(|| whole(value))
}

/// `2m5.755s`, `1h2m3s`, `125ms`, in milliseconds.
pub(super) fn milliseconds(text: &str) -> Option<f64> {
    let mut total = 0.0;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (value, after) = (number(&rest[..end])?, &rest[end..]);
        let (factor, length) = if after.starts_with("ms") {
            (1.0, 2)
        } else {
            match after.as_bytes().first()? {
                b'd' => (86_400_000.0, 1),
                b'h' => (3_600_000.0, 1),
                b'm' => (60_000.0, 1),
                b's' => (1000.0, 1),
                _ => return None,
            }
        };
        total += value * factor;
        rest = &after[length..];
    }
    (possible(total) && !text.trim().is_empty()).then_some(total)
}

/// `45us`, `1.2ms`, `3s`, in nanoseconds.
pub(super) fn latency_ns(text: &str) -> Option<i64> {
    let text = text.trim();
    let end = text.find(|c: char| c.is_ascii_alphabetic())?;
    let factor = match &text[end..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    number(&text[..end]).map(|value| value * factor).filter(|ns| possible(*ns)).map(whole)
}

/// `2026-11-25T16:28:17.123+0900` in nanoseconds since the epoch; `None` without the offset,
/// because the time is ambiguous then.
pub(super) fn iso_ns(text: &str) -> Option<i64> {
    let field = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok().filter(|value| *value >= 0);
    let (year, month, day) = (field(0, 4)?, field(5, 7)?, field(8, 10)?);
    let (hour, minute, second) = (field(11, 13)?, field(14, 16)?, field(17, 19)?);
    if !(1970..=2200).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let mut rest = text.get(19..)?;
    let mut fraction_ns = 0;
    if let Some(after) = rest.strip_prefix('.') {
        let end = after.find(|c: char| !c.is_ascii_digit())?;
        fraction_ns = format!("{:0<9}", after.get(..end.min(9))?).parse::<i64>().ok()?;
        rest = &after[end..];
    }
    let offset_s = match rest.as_bytes() {
        b"Z" => 0,
        [sign @ (b'+' | b'-'), digits @ ..] if digits.len() >= 4 && digits.iter().all(|c| c.is_ascii_digit() || *c == b':') => {
            let digits: String = rest[1..].chars().filter(char::is_ascii_digit).collect();
            let (hours, minutes) = (digits.get(..2)?.parse::<i64>().ok()?, digits.get(2..4)?.parse::<i64>().ok()?);
            (hours * 3600 + minutes * 60) * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return None,
    };
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset_s;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction_ns)
}

/// Days since 1970-01-01 in the Gregorian calendar, counted from March on, so that the leap day is
/// the last of a year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + of_year - 719_468
}
