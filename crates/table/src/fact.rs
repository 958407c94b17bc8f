//! Facts: what a recorder has to say about its own measurement, as a code with named values.
//!
//! A code names an entry of `knowhow/sentences/<subject>.toml`, which has its sentence in every language. The build makes a constructor of
//! each entry ([`facts`](crate::facts)), so a fact without an entry, or without one of its values, does not compile. Tables and
//! `recording.json` hold facts as JSON: `[{"code":"load/too_short","took":3100000}]`.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeMap};

/// One fact: its code, `subject/name`, and its values in the order of the entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    code: Cow<'static, str>,
    values: Vec<(Cow<'static, str>, Value)>,
}

/// Several facts about one thing, the most important first; often none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Facts(Vec<Fact>);

/// A value of a fact. Its unit is stated in the entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A count, a time in ns, a size in bytes.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A recorded name, or an error of the system: the same in every language.
    Text(String),
    /// A part of the sentence that has one of its own.
    Fact(Fact),
    /// Several parts.
    Facts(Facts),
}

impl Fact {
    /// For the constructors that the build makes.
    pub(crate) fn new(code: &'static str, values: Vec<(&'static str, Value)>) -> Self {
        Fact { code: code.into(), values: values.into_iter().map(|(name, value)| (name.into(), value)).collect() }
    }

    /// `subject/name`.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The same with its texts cut to this many bytes: a name from a log may be of any length.
    #[must_use]
    pub fn with_texts_up_to(mut self, bytes: usize) -> Self {
        for (_, value) in &mut self.values {
            match value {
                Value::Text(text) => {
                    text.truncate((0..=bytes.min(text.len())).rfind(|end| text.is_char_boundary(*end)).unwrap_or(0));
                }
                Value::Fact(inner) => *inner = inner.clone().with_texts_up_to(bytes),
                Value::Int(_) | Value::Float(_) | Value::Facts(_) => {}
            }
        }
        self
    }

    /// The value of this name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

impl Facts {
    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Add a fact at the end.
    pub fn push(&mut self, fact: Fact) {
        self.0.push(fact);
    }

    /// Each of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Fact> {
        self.0.iter()
    }

    /// Their codes, in order.
    #[must_use]
    pub fn codes(&self) -> Vec<&str> {
        self.0.iter().map(Fact::code).collect()
    }

    /// As columns hold them: JSON; `None` if there is nothing to say.
    ///
    /// # Panics
    /// Never: a fact can always be written as JSON.
    #[must_use]
    pub fn json(&self) -> Option<String> {
        (!self.is_empty()).then(|| serde_json::to_string(self).expect("a fact is always valid JSON"))
    }
}

impl From<Fact> for Facts {
    fn from(fact: Fact) -> Self {
        Facts(vec![fact])
    }
}

impl FromIterator<Fact> for Facts {
    fn from_iter<I: IntoIterator<Item = Fact>>(facts: I) -> Self {
        Facts(facts.into_iter().collect())
    }
}

impl Extend<Fact> for Facts {
    fn extend<I: IntoIterator<Item = Fact>>(&mut self, facts: I) {
        self.0.extend(facts);
    }
}

impl IntoIterator for Facts {
    type Item = Fact;
    type IntoIter = std::vec::IntoIter<Fact>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

macro_rules! whole_numbers {
    ($($kind:ty),*) => {
        $(impl From<$kind> for Value {
            fn from(number: $kind) -> Self {
                // Larger counts than this do not occur; JSON readers would round them.
                Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
            }
        })*
    };
}
whole_numbers!(i32, i64, u32, u64, usize);

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Value::Float(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(without_error_numbers(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

/// Without the numbers that the standard library adds to the texts of errors: `Permission denied (os
/// error 13)`.
#[must_use]
pub fn without_error_numbers(text: &str) -> String {
    const MARK: &str = " (os error ";
    let mut pieces = text.split(MARK);
    let first = pieces.next().unwrap_or_default().to_string();
    pieces.fold(first, |whole, piece| {
        let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit());
        match rest.strip_prefix(')') {
            Some(after) if rest.len() < piece.len() => whole + after,
            _ => whole + MARK + piece,
        }
    })
}

impl From<Fact> for Value {
    fn from(fact: Fact) -> Self {
        Value::Fact(fact)
    }
}

impl From<Facts> for Value {
    fn from(facts: Facts) -> Self {
        Value::Facts(facts)
    }
}

impl Serialize for Fact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.values.len() + 1))?;
        map.serialize_entry("code", &self.code)?;
        for (name, value) in &self.values {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Fact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> de::Visitor<'de> for Map {
            type Value = Fact;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a fact: an object with a code")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Fact, A::Error> {
                let (mut code, mut values) = (None, Vec::new());
                while let Some(name) = map.next_key::<String>()? {
                    if name == "code" {
                        code = Some(map.next_value::<String>()?);
                    } else {
                        values.push((name.into(), map.next_value()?));
                    }
                }
                let code = code.ok_or_else(|| de::Error::missing_field("code"))?;
                Ok(Fact { code: code.into(), values })
            }
        }
        deserializer.deserialize_map(Map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let inner = Fact::new("load/killed_by_signal", vec![("signal", 9.into())]);
        let values = vec![("count", Value::from(2u64)), ("how", inner.into()), ("part", 0.5.into()), ("name", "a \"b\"".into())];
        let facts: Facts = [Fact::new("load/workers_ended", values)].into_iter().collect();
        let json = facts.json().unwrap();
        assert!(json.starts_with(r#"[{"code":"load/workers_ended","count":2,"how":{"code":"#), "{json}");
        assert_eq!(serde_json::from_str::<Facts>(&json).unwrap(), facts);
        assert_eq!(Facts::default().json(), None);
    }

    #[test]
    fn an_object_without_a_code_is_no_fact() {
        assert!(serde_json::from_str::<Fact>(r#"{"count":2}"#).is_err());
    }

    #[test]
    fn numbers_of_errors_are_left_out() {
        assert_eq!(without_error_numbers("/a: Permission denied (os error 13)"), "/a: Permission denied");
        assert_eq!(without_error_numbers("a (os error 2), b (os error 17); c"), "a, b; c");
        for text in ["", "/a (os error x)/b", "/a (os error )", "(os error 5"] {
            assert_eq!(without_error_numbers(text), text);
        }
        assert_eq!(Value::from("gone (os error 2)"), Value::Text("gone".into()));
    }
}
