//! HTTP for the collector and for an agent's metrics. Connections are accepted within limits, so
//! that no client can keep others from being answered, or use more memory than it is allowed.

use std::{convert::Infallible, future::Future, net::SocketAddr, sync::Arc, time::Duration};

use http_body_util::Full;
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::{Deserialize, Serialize};
use sysdock_table::Cancel;
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_rustls::TlsAcceptor;

use crate::error::AgentError;

/// Limits for clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections at a time; further ones are closed at once.
    pub(crate) connections: usize,
    /// How long a TLS handshake, or the head of a request, may take.
    pub(crate) head: Duration,
    /// Size of the head of a request [B], at least 8 KiB.
    pub(crate) head_bytes: usize,
    /// How long a connection may last; it then serves one request only. `None`: as long as the
    /// client keeps it open.
    pub(crate) whole: Option<Duration>,
}

/// Listen at an address.
///
/// # Errors
/// [`AgentError::Io`] with the address in place of a path.
pub(crate) fn listen(address: SocketAddr) -> Result<std::net::TcpListener, AgentError> {
    let failed = |error| AgentError::Io(address.to_string().into(), error);
    let listener = std::net::TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// Answer requests in this thread until cancelled. `turned_away` is called for each connection
/// above the limit.
///
/// # Errors
/// [`AgentError::Io`]: the system provides no event queue.
pub(crate) fn serve<F, R>(
    listener: std::net::TcpListener,
    tls: Option<TlsAcceptor>,
    limits: Limits,
    cancel: &Cancel,
    answer: F,
    turned_away: &dyn Fn(),
) -> Result<(), AgentError>
where
    F: Fn(Request<Incoming>) -> R + Clone + Send + 'static,
    R: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| AgentError::Io("HTTP".into(), error))?;
    runtime.block_on(accept(listener, tls, limits, cancel, answer, turned_away));
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(())
}

async fn accept<F, R>(
    listener: std::net::TcpListener,
    tls: Option<TlsAcceptor>,
    limits: Limits,
    cancel: &Cancel,
    answer: F,
    turned_away: &dyn Fn(),
) where
    F: Fn(Request<Incoming>) -> R + Clone + Send + 'static,
    R: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let room = Arc::new(Semaphore::new(limits.connections));
    while !cancel.requested() {
        let next = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
        let stream = match next {
            Ok(Ok((stream, _))) => stream,
            // Out of descriptors: wait until open connections end.
            Ok(Err(_)) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
            Err(_) => continue,
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
            turned_away();
            continue;
        };
        let (answer, tls) = (answer.clone(), tls.clone());
        tokio::spawn(async move {
            let _place = place;
            let _ = stream.set_nodelay(true);
            match tls {
                None => converse(TokioIo::new(stream), limits, answer).await,
                Some(tls) => {
                    if let Ok(Ok(stream)) = tokio::time::timeout(limits.head, tls.accept(stream)).await {
                        converse(TokioIo::new(stream), limits, answer).await;
                    }
                }
            }
        });
    }
}

async fn converse<S, F, R>(stream: S, limits: Limits, answer: F)
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin,
    F: Fn(Request<Incoming>) -> R,
    R: Future<Output = Response<Full<Bytes>>>,
{
    let answer = move |request| {
        let answered = answer(request);
        async move { Ok::<_, Infallible>(answered.await) }
    };
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(limits.head).max_buf_size(limits.head_bytes);
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
    /// The text of another program, or of an earlier version.
    Stated { text: String },
}

impl RequestRefusal {
    /// The answer with this reason.
    pub(crate) fn with(&self, status: StatusCode) -> Response<Full<Bytes>> {
        plain(status, serde_json::to_string(self).expect("keys are text") + "\n")
    }

    /// From the body of an answer.
    pub(crate) fn from_body(body: &str) -> RequestRefusal {
        serde_json::from_str(body).unwrap_or_else(|_| RequestRefusal::Stated { text: body.trim().into() })
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
        let answer = RequestRefusal::UnknownToken.with(StatusCode::UNAUTHORIZED);
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let body = runtime.block_on(answer.into_body().collect()).unwrap().to_bytes();
        assert_eq!(&body[..], b"{\"code\":\"unknown_token\"}\n");
        assert_eq!(RequestRefusal::from_body("{\"code\":\"unknown_token\"}\n"), RequestRefusal::UnknownToken);
        let stated = RequestRefusal::Stated { text: "502 Bad Gateway".into() };
        assert_eq!(RequestRefusal::from_body("502 Bad Gateway\r\n"), stated);
    }
}
