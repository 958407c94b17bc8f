//! Keeps what libbpf prints when the kernel refuses a program, for the message. It is not printed:
//! otherwise a kernel that needs another one of several programs would look broken.

use std::cell::RefCell;

use libbpf_rs::PrintLevel;

/// Limit for the kept text [B]. A log of the verifier may have millions of lines; its reason is at
/// the end of the last part that libbpf passes on.
const MOST_BYTES: usize = 1 << 25;

/// Message of libbpf if not even the smallest program can be loaded.
pub(crate) const NONE_LOADS: &str = "Couldn't load trivial BPF program";

thread_local! {
    /// Messages of this thread, which loads programs alongside others.
    static MESSAGES: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keep messages from now on, instead of printing them.
pub(crate) fn listen() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
        MESSAGES.with_borrow_mut(|messages| {
            if messages.len() + text.len() <= MOST_BYTES {
                messages.push_str(&text);
            }
        });
    })));
    let _ = take();
}

/// The reason in this thread's messages since the last call, as one line; `None`: there is none.
pub(crate) fn take() -> Option<String> {
    reason_in(&MESSAGES.take())
}

/// The verifier's reason precedes its statistics; text before its log is about the kernel.
fn reason_in(messages: &str) -> Option<String> {
    let lines: Vec<&str> = messages.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_statistic =
        |line: &str| ["processed ", "verification time ", "stack depth "].iter().any(|start| line.starts_with(start));
    let statistics = lines.iter().position(|line| is_statistic(line));
    let reason = statistics.and_then(|place| lines.get(place.checked_sub(1)?)).or(lines.first())?;
    Some(reason.trim_start_matches("libbpf: ").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_that_of_the_verifier_or_of_the_kernel() {
        // Messages on a kernel 6.1.
        let verifier = "libbpf: prog 'enter': BPF program load failed: -EACCES\nlibbpf: prog 'enter': -- BEGIN PROG LOAD LOG --\n\
            85: (7b) *(u64 *)(r7 +8) = r4\nR7 unbounded memory access, make sure to bounds check any such access\n\
            processed 968 insns (limit 1000000) max_states_per_insn 3\n-- END PROG LOAD LOG --\n";
        let reason = "R7 unbounded memory access, make sure to bounds check any such access";
        assert_eq!(reason_in(verifier), Some(reason.to_string()));
        let kernel = "libbpf: prog 'submitted': failed to find kernel BTF type ID of 'io_uring_submit_req': -3\n\
            libbpf: prog 'submitted': failed to prepare load attributes: -3\n";
        let reason = "prog 'submitted': failed to find kernel BTF type ID of 'io_uring_submit_req': -3";
        assert_eq!(reason_in(kernel), Some(reason.to_string()));
        assert_eq!(reason_in(""), None);
    }
}
