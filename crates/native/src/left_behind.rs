//! Processes that a command leaves running when it ends: whether they are recorded to their end,
//! and the message about them.

use std::time::{Duration, Instant};

use crate::{arguments::Wait, messages, watched};

/// Time that these processes have to end before a message is printed.
const PATIENCE: Duration = Duration::from_secs(1);
const MOST_NAMED: usize = 5;

/// Decides about these processes once the command has ended.
pub(crate) struct LeftBehind {
    wait: Wait,
    since: Option<Instant>,
    is_reported: bool,
}

impl LeftBehind {
    pub(crate) fn new(wait: Wait) -> Self {
        LeftBehind { wait, since: None, is_reported: false }
    }

    /// The command has ended, and these processes have not: whether to wait for them.
    pub(crate) fn is_waited_for(&mut self, left: impl FnOnce() -> Vec<u32>) -> bool {
        if self.wait == Wait::No {
            return false;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        if !self.is_reported && since.elapsed() >= PATIENCE {
            self.is_reported = true;
            messages::note(&note_on(&left()));
        }
        true
    }
}

fn note_on(left: &[u32]) -> String {
    let mut named: Vec<String> = left.iter().take(MOST_NAMED).map(|pid| format!("{} ({pid})", watched::name(*pid))).collect();
    named.extend((left.len() > MOST_NAMED).then(|| format!("and {} more", left.len() - MOST_NAMED)));
    let named = named.join(", ");
    format!(
        "the command has ended; recording goes on until the processes that it left running have ended, too: {named}. \
         Ctrl-C ends the recording; --wait=no does not wait for them"
    )
}
