//! `sysdock-native flight`: a recorder that keeps the most recent time in memory.
//!
//! A background process ([`recorder`]) has the events. Clients send requests over a socket
//! ([`control`]); each one gets a spool and makes a recording of it ([`receiver`]), with its own
//! rights and at its own cost. Recordings of triggers are made in the same way, by a process that
//! the recorder starts ([`triggered`]).

mod control;
mod receiver;
mod recorder;
mod triggered;

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::{
    arguments::{self, FlightStatus, TopFormat},
    messages::{EXIT_ERROR, Message},
};

/// Run a subcommand; returns the exit status.
pub(crate) fn run(verb: &arguments::Flight) -> Result<u8, Message> {
    match verb {
        arguments::Flight::Start(arguments) => recorder::start(arguments),
        arguments::Flight::Status(arguments) => status(arguments),
        arguments::Flight::Dump(arguments) => receiver::dump(arguments),
        arguments::Flight::Receive(arguments) => receiver::receive(arguments, &mut io::stdin()),
        arguments::Flight::Stop(arguments) => {
            let (_, mut stream) = control::send_request(&arguments.name, &json!({ "do": "stop" }))?;
            // The recorder closes the connection when it ends.
            let _ = io::copy(&mut stream, &mut io::sink());
            Ok(0)
        }
    }
}

fn status(arguments: &FlightStatus) -> Result<u8, Message> {
    let (answer, _) = control::send_request(&arguments.name.name, &json!({ "do": "status" }))?;
    let text = match arguments.format {
        TopFormat::Json => format!("{answer}\n"),
        TopFormat::Text => text_of(&answer),
    };
    Ok(if io::stdout().write_all(text.as_bytes()).is_ok() { 0 } else { EXIT_ERROR })
}

fn text_of(answer: &Value) -> String {
    let number = |name: &str| answer[name].as_f64().unwrap_or(0.0);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let mib = |name: &str| format!("{:.1} MiB", number(name) / f64::from(1 << 20));
    let words = |name: &str| answer[name].as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join(", ");
    let mut lines = vec![
        ("process", format!("{}", number("pid"))),
        ("recording since", text(&answer["since"])),
        ("records", format!("{}; {}", text(&answer["target"]), words("what"))),
        ("keeps", format!("{} s", number("keep_s"))),
        ("holds", format!("{:.1} s, {} of {}", number("holds_s"), mib("used_bytes"), mib("memory_bytes"))),
        ("events", format!("{:.1} kB/s on average, {} lost", number("bytes_per_s") / 1000.0, number("lost_events"))),
        ("triggers", words("triggers")),
        ("triggers ignored", format!("{}", number("ignored"))),
        ("removed", format!("{} to make room", number("removed"))),
    ];
    for missing in answer["missing"].as_array().into_iter().flatten() {
        lines.push(("not recorded", text(missing)));
    }
    for dump in answer["dumps"].as_array().into_iter().flatten() {
        lines.push((
            "written",
            format!("{} {} {}: {}", text(&dump["at"]), text(&dump["path"]), text(&dump["state"]), text(&dump["cause"])),
        ));
    }
    lines.iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| format!("{name:<17} {value}\n")).collect()
}
