//! `sysdock-native http-load`: load on a web server.

use std::{
    fs,
    io::{self, Write},
    sync::Arc,
};

use sysdock_load::http::{HttpLoad, Request, Wanted, http};
use sysdock_table::Cancel;

use crate::{
    arguments,
    messages::{EXIT_INTERRUPTED, Message},
    signals,
};

/// Make the load; returns the exit status, which is independent of the server's behaviour.
pub(crate) fn run(arguments: &arguments::HttpLoad) -> Result<u8, Message> {
    let cancel = Cancel::default();
    signals::cancel_on_signal(&cancel);
    let load = HttpLoad {
        requests: requests(arguments)?,
        wanted: Arc::new(Wanted { sums: arguments.sum.clone(), checksums: arguments.checksums }),
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

/// The requests to make: the addresses, or the lines of a file, sent to one server.
fn requests(arguments: &arguments::HttpLoad) -> Result<Vec<Request>, Message> {
    let urls = &arguments.urls;
    let Some(file) = &arguments.requests else { return Ok(urls.iter().map(|url| Request::get(url)).collect()) };
    let [server] = &urls[..] else {
        return Err(Message::new("requests of a file go to one server", "give one address, http://HOST[:PORT]"));
    };
    let unreadable = |error| Message::new(format!("{}: {error}", file.display()), "write METHOD /PATH in each of its lines");
    let text = fs::read_to_string(file).map_err(unreadable)?;
    Ok(Request::lines(server, &text)?)
}
