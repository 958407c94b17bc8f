//! Why a number of a run is unknown: facts, whose sentences are in `knowhow/sentences/measure.toml`.

use std::{collections::BTreeMap, fmt::Display};

use sysdock_table::{Fact, facts::measure as facts};

/// Unknown fields, each with the reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct Missing(pub(crate) BTreeMap<String, Fact>);

impl Missing {
    /// The value; or `None`, after recording the reason.
    pub(crate) fn known<T>(&mut self, field: impl Into<String>, value: Result<T, Fact>) -> Option<T> {
        match value {
            Ok(value) => Some(value),
            Err(reason) => {
                self.0.insert(field.into(), reason);
                None
            }
        }
    }
}

/// The reason of a file, or of something else with a name, that cannot be read.
pub(crate) fn unreadable(place: impl Display, error: impl Display) -> Fact {
    facts::unreadable(place.to_string(), error.to_string())
}
