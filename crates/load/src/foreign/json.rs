//! JSON as it occurs in logs: with text around it, cut off, and with numbers that JSON does not
//! allow.

use std::borrow::Cow;

use serde_json::{Deserializer, Value};

use super::numbers;

/// The document at the beginning of a text.
pub(super) enum Document {
    /// A whole one, and its length in bytes.
    Whole(Value, usize),
    /// The beginning of one; the text ends within it.
    Cut,
    /// No document, and why.
    Broken(String),
}

/// Read the document at the beginning of a text. Nesting is bounded by the parser (128 levels).
pub(super) fn document(text: &str) -> Document {
    let mut documents = Deserializer::from_str(text).into_iter::<Value>();
    match documents.next() {
        Some(Ok(value)) => Document::Whole(value, documents.byte_offset()),
        Some(Err(error)) if error.is_eof() => Document::Cut,
        Some(Err(error)) => Document::Broken(error.to_string()),
        None => Document::Cut,
    }
}

/// Replace `nan` and `-inf`, which `printf` writes, by empty strings of the same length, so that
/// the rest of the document can be read. Strings are left alone; no string extends across lines.
pub(super) fn without_nan(text: Cow<'_, str>) -> Cow<'_, str> {
    let found = |line: &str| line.contains("nan") || line.contains("inf") || line.contains("NaN") || line.contains("Inf");
    if !found(&text) {
        return text;
    }
    let lines = text.split_inclusive('\n').map(|line| if found(line) { without_nan_in_line(line) } else { line.to_string() });
    Cow::Owned(lines.collect())
}

fn without_nan_in_line(line: &str) -> String {
    const WORDS: [&str; 7] = ["-nan", "nan", "NaN", "-inf", "inf", "-Infinity", "Infinity"];
    let mut result = String::with_capacity(line.len());
    let (mut quoted, mut escaped, mut skip) = (false, false, 0);
    for (place, c) in line.char_indices() {
        if place < skip {
            continue;
        }
        let before = result.trim_end().as_bytes().last().copied();
        let word = WORDS.iter().filter(|word| line[place..].starts_with(**word)).max_by_key(|word| word.len());
        match word {
            // A value follows a colon, a comma or a bracket.
            Some(word) if !quoted && matches!(before, Some(b':' | b',' | b'[')) => {
                result.push_str(&format!("{:<1$}", "\"\"", word.len()));
                skip = place + word.len();
                continue;
            }
            _ => result.push(c),
        }
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
    }
    result
}

/// A number in an object, also one that is written as text.
pub(super) fn number(value: &Value, key: &str) -> Option<f64> {
    match value.get(key)? {
        Value::Number(number) => number.as_f64().filter(|number| numbers::possible(*number)),
        Value::String(text) => numbers::number(text),
        _ => None,
    }
}

/// A number in an object, rounded.
pub(super) fn whole(value: &Value, key: &str) -> Option<i64> {
    number(value, key).map(numbers::whole)
}

/// A text in an object, also one that is written as a number.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> Option<Cow<'a, str>> {
    match value.get(key)? {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Bool(flag) => Some(Cow::Owned(u8::from(*flag).to_string())),
        _ => None,
    }
}
