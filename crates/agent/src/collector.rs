//! The collector: it receives batches over HTTP(S) from agents. It keeps no state that another
//! collector would need, so several may run on one lake.
//!
//! `POST /v1/batches`: lines of JSON ([`Batch`]), plain or compressed with zstd, with
//! `Authorization: Bearer TOKEN`; answered when they are durable. `GET /v1/ready`. `GET /metrics`:
//! totals of what was received, without any names.

use std::{
    fs::File,
    io::{BufReader, Read},
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, SyncSender},
    },
    time::{Duration, SystemTime},
};

use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::CONTENT_ENCODING,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sysdock_table::Cancel;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::{
    batch::{Batch, Refusal},
    error::AgentError,
    http::{self, Limits, RequestRefusal, bearer, open_metrics, plain},
    lake::Lake,
    landing::{Lander, Landing, Received},
    sending::{Answer, Tokens},
};

/// Longest request, compressed and uncompressed [B].
const MOST_PACKED: usize = 16 << 20;
const MOST_UNPACKED: u64 = 64 << 20;
/// How long a request may take to arrive.
const SLOWEST: Duration = Duration::from_secs(60);
/// Thousands of agents keep their connections open; the real limit is the number of descriptors.
const LIMITS: Limits = Limits { connections: 1 << 20, head: Duration::from_secs(30), head_bytes: 400 << 10, whole: None };
/// Requests that may wait to be landed.
const QUEUE: usize = 20_000;

/// How a collector works.
#[derive(Clone, Debug)]
pub struct CollectorOptions {
    pub listen: SocketAddr,
    /// The lake that batches are written to.
    pub lake: PathBuf,
    /// File of tokens.
    pub tokens: PathBuf,
    /// Certificate chain and key in PEM; `None`: plain HTTP.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Landing intervals.
    pub landing: Landing,
}

/// Totals of what was received.
#[derive(Debug, Default)]
struct Counters {
    requests: AtomicU64,
    batches: AtomicU64,
    rows: AtomicU64,
    refused: AtomicU64,
    unauthorized: AtomicU64,
    failed: AtomicU64,
}

/// A collector that listens.
pub struct Collector {
    listener: std::net::TcpListener,
    options: CollectorOptions,
    tokens: Tokens,
    tls: Option<TlsAcceptor>,
}

struct Shared {
    tokens: Tokens,
    queue: SyncSender<Received>,
    counters: Arc<Counters>,
}

impl Collector {
    /// Listen.
    ///
    /// # Errors
    /// [`AgentError`]: the address is in use, the tokens or certificates cannot be used, or the
    /// lake belongs to another user.
    pub fn open(options: CollectorOptions) -> Result<Collector, AgentError> {
        let tokens = Tokens::read(&options.tokens)?;
        let tls = options.tls.as_ref().map(|(chain, key)| acceptor(chain, key)).transpose()?;
        let listener = http::listen(options.listen)?;
        raise_files();
        Ok(Collector { listener, options, tokens, tls })
    }

    /// Address that it listens on, with the port that the system chose.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Accept batches until cancelled; those that were received by then still land.
    ///
    /// # Errors
    /// [`AgentError`]: the lake cannot be opened.
    pub fn run(self, cancel: &Cancel, report: impl Fn(AgentError) + Send + 'static) -> Result<(), AgentError> {
        let lake = Lake::open(&self.options.lake, &writer_name())?;
        let counters = Arc::new(Counters::default());
        let (queue, received) = mpsc::sync_channel(QUEUE);
        let lander = Lander::new(lake, self.options.landing);
        let counted = Arc::clone(&counters);
        let landing = std::thread::spawn(move || {
            lander.run(&received, &|error| {
                counted.failed.fetch_add(1, Ordering::Relaxed);
                report(error);
            });
        });
        let shared = Arc::new(Shared { tokens: self.tokens, queue, counters });
        let served = http::serve(
            self.listener,
            self.tls,
            LIMITS,
            cancel,
            move |request| {
                let shared = Arc::clone(&shared);
                async move { respond(request, &shared).await }
            },
            &|| {},
        );
        // Requests that still wait are answered by the last landing.
        let _ = landing.join();
        served
    }
}

async fn respond(request: Request<Incoming>, shared: &Shared) -> Response<Full<Bytes>> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/v1/ready") => plain(StatusCode::OK, "ready\n"),
        (&Method::GET, "/metrics") => metrics(&shared.counters),
        (&Method::POST, "/v1/batches") => take(request, shared).await,
        _ => RequestRefusal::UnknownPath.with(StatusCode::NOT_FOUND),
    }
}

async fn take(request: Request<Incoming>, shared: &Shared) -> Response<Full<Bytes>> {
    let counters = &shared.counters;
    counters.requests.fetch_add(1, Ordering::Relaxed);
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_string);
    let token = bearer(&request).to_string();
    // The token is checked before the body of a stranger's request is read.
    if shared.tokens.allows(&token, "").is_none() {
        counters.unauthorized.fetch_add(1, Ordering::Relaxed);
        return RequestRefusal::UnknownToken.with(StatusCode::UNAUTHORIZED);
    }
    let is_packed = header(CONTENT_ENCODING.as_str()).as_deref() == Some("zstd");
    let was_sent = header("x-sysdock-sent-before").as_deref() != Some("0");
    if hyper::body::Body::size_hint(request.body()).lower() > MOST_PACKED as u64 {
        return RequestRefusal::TooLong.with(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let body = tokio::time::timeout(SLOWEST, Limited::new(request.into_body(), MOST_PACKED).collect()).await;
    let Ok(Ok(body)) = body else {
        return RequestRefusal::Body.with(StatusCode::PAYLOAD_TOO_LARGE);
    };
    let Some(body) = unpacked(&body.to_bytes(), is_packed) else {
        return RequestRefusal::Packing.with(StatusCode::BAD_REQUEST);
    };
    let (batches, refused) = parse(&body, &token, &shared.tokens);
    counters.refused.fetch_add(refused.len() as u64, Ordering::Relaxed);
    counters.batches.fetch_add(batches.len() as u64, Ordering::Relaxed);
    counters.rows.fetch_add(batches.iter().map(|batch| batch.rows() as u64).sum(), Ordering::Relaxed);
    if !batches.is_empty() && !land(batches, was_sent, shared).await {
        return RequestRefusal::NotLanded.with(StatusCode::SERVICE_UNAVAILABLE);
    }
    let answer = serde_json::to_string(&Answer { refused }).expect("keys are text");
    plain(StatusCode::OK, answer)
}

async fn land(batches: Vec<Batch>, was_sent: bool, shared: &Shared) -> bool {
    let (answer, answered) = oneshot::channel();
    let answer = Box::new(move |is_safe| {
        let _ = answer.send(is_safe);
    });
    let is_queued = shared.queue.try_send(Received { batches, was_sent, answer }).is_ok();
    is_queued && answered.await.unwrap_or(false)
}

fn unpacked(body: &Bytes, is_packed: bool) -> Option<Vec<u8>> {
    if !is_packed {
        return Some(body.to_vec());
    }
    let mut out = Vec::new();
    zstd::stream::read::Decoder::new(&body[..]).ok()?.take(MOST_UNPACKED + 1).read_to_end(&mut out).ok()?;
    (out.len() as u64 <= MOST_UNPACKED).then_some(out)
}

fn parse(body: &[u8], token: &str, tokens: &Tokens) -> (Vec<Batch>, Vec<(usize, String)>) {
    let now_ns = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
    let (mut batches, mut refused) = (Vec::new(), Vec::new());
    for (place, line) in body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate() {
        match Batch::parse(line, now_ns) {
            Ok(batch) if tokens.allows(token, &batch.cluster) == Some(true) => batches.push(batch),
            Ok(batch) => refused.push((place, Refusal::Cluster { name: batch.cluster }.to_json())),
            Err(why) => refused.push((place, why.to_json())),
        }
    }
    (batches, refused)
}

fn metrics(counters: &Counters) -> Response<Full<Bytes>> {
    let all = [
        ("requests", "Requests with batches.", &counters.requests),
        ("batches", "Batches that came.", &counters.batches),
        ("rows", "Rows of them.", &counters.rows),
        ("refused_batches", "Batches that were refused.", &counters.refused),
        ("unauthorized_requests", "Requests with a token that is not known.", &counters.unauthorized),
        ("failed_landings", "Landings that failed.", &counters.failed),
    ];
    let family = |(name, text, value): (&str, &str, &AtomicU64)| {
        let value = value.load(Ordering::Relaxed);
        format!(
            "# HELP sysdock_collector_{name} {text}\n# TYPE sysdock_collector_{name} counter\nsysdock_collector_{name}_total {value}\n"
        )
    };
    open_metrics(all.map(family).concat() + "# EOF\n")
}

fn acceptor(chain: &PathBuf, key: &PathBuf) -> Result<TlsAcceptor, AgentError> {
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
    let bad = |path: &PathBuf, error: &dyn std::fmt::Display| AgentError::Certificate(path.clone(), error.to_string());
    let certificates = CertificateDer::pem_file_iter(chain).map_err(|error| bad(chain, &error))?;
    let certificates = certificates.collect::<Result<Vec<_>, _>>().map_err(|error| bad(chain, &error))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| bad(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(certificates, private))
        .map_err(|error| bad(chain, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Raise the limit of open files as far as this process may.
fn raise_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// A name that distinguishes the parts of this process from all others in the lake.
fn writer_name() -> String {
    let mut bytes = [0; 4];
    let read = File::open("/dev/urandom").and_then(|file| BufReader::with_capacity(4, file).read_exact(&mut bytes));
    let number = if read.is_ok() { u32::from_ne_bytes(bytes) } else { std::process::id() };
    format!("{number:08x}")
}
