//! What a call does, more closely than its class: `knowhow/tables/call_actions.toml`.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use sysdock_table::CALL_ACTIONS;

/// The action of a call, under whichever of its names; empty for calls that no rule tells apart.
#[must_use]
pub fn action(call: &str) -> &'static str {
    static ACTIONS: OnceLock<FxHashMap<&str, &str>> = OnceLock::new();
    ACTIONS.get_or_init(|| CALL_ACTIONS.iter().copied().collect()).get(call).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syscalls::{UNLISTED, number};

    #[test]
    fn each_name_is_a_known_call_and_has_one_action() {
        for (call, action_of_it) in CALL_ACTIONS {
            assert_ne!(number(call.as_bytes()), UNLISTED, "{call}");
            assert_eq!(action(call), *action_of_it, "{call} has two");
        }
        assert_eq!(action("statx"), "");
    }
}
