//! `GET /metrics` of an agent. The text is made once per interval for all clients, so a client can
//! neither make the agent work nor read more than every client may.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Method, Request, Response,
    body::{Bytes, Incoming},
    header::{ALLOW, HeaderValue},
};
use sysdock_table::Cancel;

use crate::{
    error::AgentError,
    http::{self, Limits, RequestRefusal, bearer, open_metrics},
    room::Room,
    tokens::Tokens,
};

/// Connections at a time. A scraper sends few requests, and reads the answers quickly.
const CONNECTIONS: usize = 16;

/// Where metrics are served, and to whom.
#[derive(Clone, Debug)]
pub struct MetricsOptions {
    /// Address and port; port 0: the system chooses one.
    pub listen: SocketAddr,
    /// File of tokens, one of which a client must send; `None`: every client that reaches the
    /// address may read.
    pub tokens: Option<PathBuf>,
    /// Limit for the number of series.
    pub series: usize,
}

/// The listening endpoint.
pub(crate) struct Endpoint {
    listener: std::net::TcpListener,
    tokens: Option<Arc<Tokens>>,
    page: Page,
}

/// The served text; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    text: Arc<Mutex<Bytes>>,
    room: Room,
}

impl Page {
    /// The page until the first interval ends: no series, and the end mark that OpenMetrics
    /// requires.
    fn new() -> Page {
        Page { text: Arc::new(Mutex::new(Bytes::from_static(b"# EOF\n"))), room: Room::new(CONNECTIONS, CONNECTIONS) }
    }

    pub(crate) fn set(&self, text: String) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text.into();
    }

    fn text(&self) -> Bytes {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Number of connections that were closed because there were too many.
    pub(crate) fn turned_away(&self) -> u64 {
        self.room.gave_way()
    }
}

impl Endpoint {
    /// Listen.
    ///
    /// # Errors
    /// [`AgentError`]: the address is in use, or the tokens cannot be used.
    pub(crate) fn open(options: &MetricsOptions) -> Result<Endpoint, AgentError> {
        let tokens = options.tokens.as_deref().map(Tokens::read).transpose()?.map(Arc::new);
        Ok(Endpoint { listener: http::listen(options.listen)?, tokens, page: Page::new() })
    }

    /// Address that it listens on, with the port that the system chose.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// The page that it serves.
    pub(crate) fn page(&self) -> Page {
        self.page.clone()
    }

    /// Answer requests until cancelled.
    ///
    /// # Errors
    /// [`AgentError::Io`].
    pub(crate) fn serve(self, cancel: &Cancel) -> Result<(), AgentError> {
        let Endpoint { listener, tokens, page } = self;
        let limits = Limits {
            strangers: page.room.clone(),
            known: page.room.clone(),
            head: Duration::from_secs(5),
            head_bytes: 8 << 10,
            whole: Some(Duration::from_secs(10)),
        };
        let answer = move |request: Request<Incoming>, _| {
            let response = respond(&request, tokens.as_deref(), &page);
            async move { response }
        };
        http::serve(listener, None, limits, cancel, answer)
    }
}

fn respond(request: &Request<Incoming>, tokens: Option<&Tokens>, page: &Page) -> Response<Full<Bytes>> {
    if tokens.is_some_and(|tokens| tokens.find(bearer(request)).is_none()) {
        return RequestRefusal::UnknownToken.answer();
    }
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => open_metrics(page.text()),
        (_, "/metrics") => {
            let mut response = RequestRefusal::ReadOnly.answer();
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            response
        }
        _ => RequestRefusal::UnknownPath.answer(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_the_first_interval_the_page_is_complete() {
        assert_eq!(Page::new().text(), "# EOF\n");
    }
}
