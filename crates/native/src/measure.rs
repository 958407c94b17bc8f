//! `sysdock-native measure`: one run of a command, and the resources that it used.

use std::io::{self, Write};

use sysdock_measure::Command;

use crate::{
    arguments,
    messages::{EXIT_INTERRUPTED, Message},
    privileges::Caller,
};

/// Run the command; returns the exit status, which is independent of that of the command.
pub(crate) fn run(arguments: &arguments::Measure) -> Result<u8, Message> {
    let caller = if arguments.as_root { None } else { Caller::find() };
    let of_caller = caller.iter().flat_map(Caller::variables).map(|(name, value)| ((*name).into(), value.clone()));
    let measured = sysdock_measure::measure(&Command {
        words: arguments.command.clone(),
        output: arguments.output.clone(),
        errors: arguments.errors.clone(),
        directory: arguments.directory.clone(),
        environment: of_caller.chain(arguments.env.iter().cloned()).collect(),
        user: caller.map(|caller| caller.user),
        cpus: arguments.cpus.as_ref().map(|cpus| cpus.0.clone()),
        timeout: arguments.timeout,
        keep_left_over: arguments.keep_left_over,
        devices: arguments.device.clone(),
    })?;
    let failed = |error: io::Error| Message::bare(format!("standard output: {error}"));
    let text = serde_json::to_string(&measured).map_err(|error| failed(error.into()))?;
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(failed)?;
    Ok(if measured.interrupted { EXIT_INTERRUPTED } else { 0 })
}
