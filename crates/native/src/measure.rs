//! `sysdock-native measure`: one run of a command, and the resources that it used.

use std::io::{self, Write};

use sysdock_measure::Command;

use crate::{
    arguments,
    messages::{EXIT_INTERRUPTED, Message},
};

/// Run the command; returns the exit status, which is independent of that of the command.
pub(crate) fn run(arguments: &arguments::Measure) -> Result<u8, Message> {
    let measured = sysdock_measure::measure(&Command {
        words: arguments.command.clone(),
        output: arguments.output.clone(),
        errors: arguments.errors.clone(),
        directory: arguments.directory.clone(),
        environment: arguments.env.clone(),
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
