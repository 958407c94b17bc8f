//! `sysdock-native`: the part of sysdock that records and imports. It needs no Python and can be copied alone to another machine.

use std::process::ExitCode;

mod arguments;
mod environment;
mod import;
mod messages;
mod progress;
mod record;
mod signals;

fn main() -> ExitCode {
    let verb = arguments::parse();
    let outcome = match verb {
        arguments::Verb::Import(arguments) => import::run(&arguments),
        arguments::Verb::Record(arguments) => record::run(&arguments),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            messages::print(&message);
            ExitCode::from(messages::EXIT_ERROR)
        }
    }
}
