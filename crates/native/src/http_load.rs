//! `sysdock-native http-load`: load on a web server.

use std::io::{self, Write};

use sysdock_load::http::{HttpLoad, http};
use sysdock_table::Cancel;

use crate::{
    arguments,
    messages::{EXIT_INTERRUPTED, Message},
    signals,
};

/// Make the load; returns the exit status, which says nothing of what the server did.
pub(crate) fn run(arguments: &arguments::HttpLoad) -> Result<u8, Message> {
    let cancel = Cancel::default();
    signals::cancel_on_signal(&cancel);
    let load = HttpLoad {
        urls: arguments.urls.clone(),
        rate: arguments.rate,
        connections: arguments.connections as usize,
        time: arguments.time,
        timeout: arguments.timeout,
        keep_alive: arguments.keep_alive,
        seed: arguments.seed,
        threads: arguments.threads as usize,
    };
    let answered = http(&load, &cancel)?;
    let failed = |error: io::Error| Message::bare(format!("standard output: {error}"));
    let text = serde_json::to_string(&answered).map_err(|error| failed(error.into()))?;
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(failed)?;
    Ok(if answered.interrupted { EXIT_INTERRUPTED } else { 0 })
}
