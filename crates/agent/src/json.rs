//! Values as JSON.

use serde::Serialize;

/// A value of this crate as JSON.
#[expect(clippy::expect_used, reason = "it fails for keys that are no text, and no type of this crate has such keys")]
pub(crate) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("keys are text")
}
