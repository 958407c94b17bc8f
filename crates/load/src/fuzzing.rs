//! What the fuzzing targets call (feature `fuzzing`), and a test with the inputs that fuzzing begins with.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use crate::{
    Plan,
    workspace::{Creator, identity, is_a_workers},
};

/// Any bytes as a plan, as the file that names the creator of a workspace, and as names in it: a plan is refused, or something is
/// to be done in each step, and only what this process wrote says that it lives.
///
/// # Panics
/// If not.
pub fn plan(data: &[u8], _: &Path) {
    if let Ok(plan) = serde_json::from_slice::<Plan>(data) {
        for step in plan.steps.iter().filter(|step| step.check().is_ok()) {
            assert!(!step.wanted().is_empty());
            let _ = (step.estimate_ns(), step.room(), step.size(), step.share());
        }
    }
    let text = String::from_utf8_lossy(data);
    let own = identity(std::process::id());
    let is_own = || text.lines().take(3).eq(own.lines());
    assert!(Creator::of(&text) != Creator::Alive || is_own());
    assert_eq!(Creator::of(&own), Creator::Alive);
    for name in data.split(|byte| *byte == b'\n') {
        let is_plain = || name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
        assert!(!is_a_workers(OsStr::from_bytes(name)) || is_plain());
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_bytes_are_a_plan() {
        sysdock_seeds::each("plan", 20_000, 16_384, super::plan);
    }
}
