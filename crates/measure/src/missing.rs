//! What is not known, and why.

use std::collections::BTreeMap;

/// Fields that are not known, each with the reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct Missing(pub(crate) BTreeMap<String, String>);

impl Missing {
    /// The value, or the reason is noted.
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
