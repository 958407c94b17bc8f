//! `sysdock-native record`: records with the kernel's own events where permitted, otherwise with
//! strace.

use crate::{
    arguments::{self, Recorder},
    by_kernel, by_strace,
    command::{self, Exit},
    environment, inherited,
    messages::{self, Message},
    privileges::Caller,
    progress,
};

/// Record; returns how the command ended.
pub(crate) fn run(arguments: &arguments::Record) -> Result<Exit, Message> {
    progress::keep_to_ourselves(&arguments.progress);
    inherited::hear_of_children();
    if !environment::proc_is_ours() {
        let hint = "mount one of this namespace: unshare has --mount-proc for it, or mount -t proc proc /proc";
        return Err(Message::new("/proc is not mounted, or shows the processes of another PID namespace", hint));
    }
    if let Some(program) = arguments.command.first() {
        let caller = if arguments.as_root { None } else { Caller::find() };
        command::check_command(program, command::find_command(&arguments.command, caller.as_ref()).is_some())?;
    } else if arguments.target.is_empty() {
        return Err(Message::new("nothing to record", "give a command after --, or -p PID, --cgroup PATH or -a"));
    }
    let named = arguments.details.preset.is_some() || arguments.what.iter().any(|word| word != sysdock_bpf::IO);
    let no_places = arguments.details.probe.is_empty() && arguments.request.is_empty() && !arguments.probe_stacks;
    let calls_only = !named && no_places && arguments.details.stacks.is_none() && arguments.details.freq.is_none();
    let strace_can = !arguments.command.is_empty() && arguments.target.is_empty() && !arguments.no_loss && calls_only;
    match arguments.recorder {
        Recorder::Strace if strace_can => by_strace::run(arguments, &arguments.output),
        Recorder::Strace => {
            let hint = "leave out --with strace, or give a command after --, without --no-loss, --stacks, --freq, --what, --preset, --probe and --request";
            Err(Message::new("strace records system calls of commands only", hint))
        }
        Recorder::Kernel => by_kernel::run(arguments).map_err(by_kernel::Refusal::into_message),
        Recorder::Auto => match by_kernel::run(arguments) {
            Err(by_kernel::Refusal::Unable(reason)) if strace_can => {
                messages::note(&format!("recording with strace, which slows programs down much more: {reason}"));
                by_strace::run(arguments, &arguments.output)
            }
            outcome => outcome.map_err(by_kernel::Refusal::into_message),
        },
    }
}
