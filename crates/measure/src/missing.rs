//! Unknown values, and the reasons.

use std::collections::BTreeMap;

/// Unknown fields, each with the reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct Missing(pub(crate) BTreeMap<String, String>);

impl Missing {
    /// The value; or `None`, after recording the reason.
    pub(crate) fn known<T>(&mut self, field: impl Into<String>, value: Result<T, impl Into<String>>) -> Option<T> {
        match value {
            Ok(value) => Some(value),
            Err(reason) => {
                self.0.insert(field.into(), reason.into());
                None
            }
        }
    }
}
