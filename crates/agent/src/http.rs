//! HTTP for the collector and for an agent's metrics. Connections are accepted within limits, so
//! that no client can keep others from being answered, or use more memory than it is allowed.

use std::{convert::Infallible, future::Future, net::SocketAddr, sync::Arc, time::Duration};

use http_body_util::Full;
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};
use sysdock_table::{Cancel, Fact, facts};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::{
    batch::LONGEST_TEXT,
    error::AgentError,
    json,
    room::{Client, Notice, Place, Room, unless},
};

/// Limits for clients.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Connections whose client has not shown a token.
    pub(crate) strangers: Room,
    /// Connections whose client has.
    pub(crate) known: Room,
    /// How long a TLS handshake, or the head of a request, may take.
    pub(crate) head: Duration,
    /// Size of the head of a request [B], at least 8 KiB.
    pub(crate) head_bytes: usize,
    /// How long a connection may last; it then serves one request only. `None`: as long as the
    /// client keeps it open.
    pub(crate) whole: Option<Duration>,
}

/// Connections that may wait to be accepted.
const QUEUE: i32 = 4096;
/// How long an answer may stay unread.
const UNREAD: Duration = Duration::from_secs(30);
/// Header lines of a request.
const MOST_HEADERS: usize = 32;

/// Listen at an address.
///
/// # Errors
/// [`AgentError::Io`] with the address in place of a path.
pub(crate) fn listen(address: SocketAddr) -> Result<std::net::TcpListener, AgentError> {
    let failed = |error| AgentError::Io(address.to_string().into(), error);
    let listener = std::net::TcpListener::bind(address).map_err(failed)?;
    // Clients that come at the same moment wait for a moment, and not for a second.
    rustix::net::listen(&listener, QUEUE).map_err(|error| failed(error.into()))?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// The client at the other end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) client: Client,
    known: Room,
    /// Its place, among strangers or among those who are known.
    place: Arc<Mutex<(bool, Place)>>,
    notice: Notice,
}

impl Visitor {
    /// A stranger, if there is room for one.
    fn new(client: Client, limits: &Limits) -> Option<Visitor> {
        let notice = Notice::default();
        let place = limits.strangers.borrow(client, 1, &notice)?;
        Some(Visitor { client, known: limits.known.clone(), place: Arc::new(Mutex::new((false, place))), notice })
    }

    /// The client has shown a token: its connection is one of those, if there is room for it.
    pub(crate) fn is_known(&self) -> bool {
        let mut held = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let (is_known, place) = &mut *held;
        if !*is_known {
            let Some(known) = self.known.borrow(self.client, 1, &self.notice) else { return false };
            // Its place among strangers is free.
            (*is_known, *place) = (true, known);
        }
        true
    }
}

/// A client whose request is complete: its connection does not have to give way until it is answered.
#[derive(Debug)]
pub(crate) struct Served(Visitor);

impl Visitor {
    /// The request is complete.
    pub(crate) fn served(&self) -> Served {
        self.place.lock().unwrap_or_else(PoisonError::into_inner).1.settle();
        Served(self.clone())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.place.lock().unwrap_or_else(PoisonError::into_inner).1.lend(&self.0.notice);
    }
}

/// Answer requests in this thread until cancelled.
///
/// # Errors
/// [`AgentError::Io`]: the system provides no event queue.
pub(crate) fn serve<F, R>(
    listener: std::net::TcpListener,
    tls: Option<TlsAcceptor>,
    limits: Limits,
    cancel: &Cancel,
    answer: F,
) -> Result<(), AgentError>
where
    F: Fn(Request<Incoming>, Visitor) -> R + Clone + Send + 'static,
    R: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| AgentError::Io("HTTP".into(), error))?;
    runtime.block_on(accept(listener, tls, limits, cancel, answer));
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(())
}

async fn accept<F, R>(listener: std::net::TcpListener, tls: Option<TlsAcceptor>, limits: Limits, cancel: &Cancel, answer: F)
where
    F: Fn(Request<Incoming>, Visitor) -> R + Clone + Send + 'static,
    R: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    const STEP: Duration = Duration::from_millis(100);
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    while !cancel.requested() {
        let (stream, address) = match tokio::time::timeout(STEP, listener.accept()).await {
            Ok(Ok(accepted)) => accepted,
            // Descriptors or memory are used up; the client waits until there are some again.
            Ok(Err(_)) => {
                tokio::time::sleep(STEP).await;
                continue;
            }
            Err(_) => continue,
        };
        let client = Client::of(address.ip());
        let Some(visitor) = Visitor::new(client, &limits) else { continue };
        let notice = visitor.notice.clone();
        let (answer, tls, limits) = (answer.clone(), tls.clone(), limits.clone());
        tokio::spawn(unless(notice, visit(stream, tls, limits, visitor, answer)));
        // Each is heard before others can take its place.
        tokio::task::yield_now().await;
    }
}

async fn visit<F, R>(stream: TcpStream, tls: Option<TlsAcceptor>, limits: Limits, visitor: Visitor, answer: F)
where
    F: Fn(Request<Incoming>, Visitor) -> R,
    R: Future<Output = Response<Full<Bytes>>>,
{
    let _ = stream.set_nodelay(true);
    // A client that does not read its answer is left.
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, UNREAD.as_millis() as u32);
    // Buffers are for clients that say something.
    if !matches!(tokio::time::timeout(limits.head, stream.readable()).await, Ok(Ok(()))) {
        return;
    }
    match tls {
        None => Box::pin(converse(TokioIo::new(stream), limits, visitor, answer)).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = Box::pin(tokio::time::timeout(limits.head, tls.accept(stream))).await {
                Box::pin(converse(TokioIo::new(stream), limits, visitor, answer)).await;
            }
        }
    }
}

async fn converse<S, F, R>(stream: S, limits: Limits, visitor: Visitor, answer: F)
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin,
    F: Fn(Request<Incoming>, Visitor) -> R,
    R: Future<Output = Response<Full<Bytes>>>,
{
    let answer = move |request| {
        let answered = answer(request, visitor.clone());
        async move { Ok::<_, Infallible>(answered.await) }
    };
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(limits.head).max_buf_size(limits.head_bytes).max_headers(MOST_HEADERS);
    server.keep_alive(limits.whole.is_none());
    let connection = server.serve_connection(stream, service_fn(answer));
    // A client that disconnects or is too slow asks again.
    match limits.whole {
        None => drop(connection.await),
        Some(whole) => drop(tokio::time::timeout(whole, connection).await),
    }
}

/// Why a request is refused: JSON in the body of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum RequestRefusal {
    /// Nothing is at this path.
    UnknownPath,
    /// Nobody is known by this token.
    UnknownToken,
    /// Metrics can only be read.
    ReadOnly,
    /// The body is longer than any batch.
    TooLong,
    /// The body ends before the length that was stated, is too long, or takes too long.
    Body,
    /// The body is not packed as stated, or too long when unpacked.
    Packing,
    /// The batches are not in the lake, and must be sent again.
    NotLanded,
    /// The request does not state its length.
    NoLength,
    /// There is no room for the request at this time.
    Busy,
    /// The text of another program, or of an earlier version.
    Stated { text: String },
}

impl RequestRefusal {
    /// The answer with this reason. The connection ends with it, as the rest of a body may follow.
    pub(crate) fn answer(&self) -> Response<Full<Bytes>> {
        let mut response = plain(self.status(), self.to_json());
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }

    pub(crate) fn to_json(&self) -> String {
        json::text(self) + "\n"
    }

    /// The status of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            RequestRefusal::UnknownPath => StatusCode::NOT_FOUND,
            RequestRefusal::UnknownToken => StatusCode::UNAUTHORIZED,
            RequestRefusal::ReadOnly => StatusCode::METHOD_NOT_ALLOWED,
            RequestRefusal::TooLong | RequestRefusal::Body => StatusCode::PAYLOAD_TOO_LARGE,
            RequestRefusal::NoLength => StatusCode::LENGTH_REQUIRED,
            RequestRefusal::NotLanded | RequestRefusal::Busy => StatusCode::SERVICE_UNAVAILABLE,
            RequestRefusal::Packing | RequestRefusal::Stated { .. } => StatusCode::BAD_REQUEST,
        }
    }

    /// From the body of an answer.
    pub(crate) fn from_body(body: &[u8]) -> RequestRefusal {
        let stated = || String::from_utf8_lossy(body).trim().chars().take(LONGEST_TEXT).collect();
        serde_json::from_slice(body).unwrap_or_else(|_| RequestRefusal::Stated { text: stated() })
    }

    /// As a fact.
    #[must_use]
    pub fn fact(&self) -> Fact {
        match self {
            RequestRefusal::UnknownPath => facts::agent::unknown_path(),
            RequestRefusal::UnknownToken => facts::agent::unknown_token(),
            RequestRefusal::ReadOnly => facts::agent::read_only(),
            RequestRefusal::TooLong => facts::agent::body_too_long(),
            RequestRefusal::Body => facts::agent::body_not_read(),
            RequestRefusal::Packing => facts::agent::packing(),
            RequestRefusal::NotLanded => facts::agent::not_landed(),
            RequestRefusal::NoLength => facts::agent::no_length(),
            RequestRefusal::Busy => facts::agent::busy(),
            RequestRefusal::Stated { text } => facts::agent::stated(text.as_str()),
        }
    }
}

/// A response of plain text.
pub(crate) fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response
}

/// A response in OpenMetrics 1.0.
pub(crate) fn open_metrics(text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = plain(StatusCode::OK, text);
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// The bearer token of a request; empty if there is none.
pub(crate) fn bearer(request: &Request<Incoming>) -> &str {
    let value = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    value.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[test]
    fn a_refusal_is_read_as_it_was_written() {
        let answer = RequestRefusal::UnknownToken.answer();
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let body = runtime.block_on(answer.into_body().collect()).unwrap().to_bytes();
        assert_eq!(&body[..], b"{\"code\":\"unknown_token\"}\n");
        assert_eq!(RequestRefusal::from_body(b"{\"code\":\"unknown_token\"}\n"), RequestRefusal::UnknownToken);
        let stated = RequestRefusal::Stated { text: "502 Bad Gateway".into() };
        assert_eq!(RequestRefusal::from_body(b"502 Bad Gateway\r\n"), stated);
        let page = RequestRefusal::from_body("<p>\u{e9}".repeat(100_000).as_bytes());
        assert!(matches!(page, RequestRefusal::Stated { text } if text.chars().count() == LONGEST_TEXT));
    }
}
