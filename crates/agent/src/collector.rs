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
    body::{Body, Bytes, Incoming},
    header::{CONTENT_ENCODING, HeaderValue, RETRY_AFTER},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sysdock_table::Cancel;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::{
    answers::{self, Answer, Asked, BATCHES, Id, NONCE, READY, Ready, TOKEN, VERSION, digest},
    error::AgentError,
    http::{self, Limits, RequestRefusal, Visitor, bearer, open_metrics, plain},
    intake::{Checked, Content, Intake},
    json,
    lake::Lake,
    landing::{Lander, Landing, Received, counting},
    line::Line,
    room::{Notice, Place, Room, unless},
    tokens::{Token, Tokens},
};

/// Longest content of a request, as it is sent [B].
const MOST_PACKED: u64 = 8 << 20;
/// How long a request may wait for memory, and its content may take to arrive: in addition, the time
/// that it takes at [`SLOWEST`].
const PATIENCE: Duration = Duration::from_secs(5);
/// Slowest client [B/s].
const SLOWEST: u64 = 256 << 10;
/// Requests that may wait to be landed.
const QUEUE: usize = 20_000;
/// Share of all connections for clients that have not shown a token: a quarter.
const STRANGERS: usize = 4;
/// When an agent is to try again that found no room [s].
const LATER: &str = "2";

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
    /// Connections at a time.
    pub connections: usize,
    /// Connections at a time of one address.
    pub connections_of_one: usize,
    /// Memory for requests and for batches that are not in the lake yet [B].
    pub memory: usize,
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
    busy: AtomicU64,
    set_aside: Arc<AtomicU64>,
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
    intake: Arc<Intake>,
    counters: Arc<Counters>,
    limits: Limits,
    /// Memory of requests and batches.
    memory: Room,
}

/// A text that is in memory until it is sent.
struct HeldText {
    text: String,
    _place: Place,
}

impl AsRef<[u8]> for HeldText {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl Shared {
    /// A text that takes room until it is sent; `None`: there is none.
    fn held(&self, visitor: &Visitor, text: String) -> Option<Bytes> {
        let place = self.memory.keep(visitor.client, text.len())?;
        Some(Bytes::from_owner(HeldText { text, _place: place }))
    }
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
        give_back_memory();
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
    /// [`AgentError`]: the lake cannot be opened or written.
    pub fn run(self, cancel: &Cancel, report: impl Fn(AgentError) + Send + 'static) -> Result<(), AgentError> {
        let lake = Lake::open(&self.options.lake, &writer_name())?;
        let counters = Arc::new(Counters::default());
        let memory = Room::new(self.options.memory, self.options.memory / 4 * 3);
        let (queue, received) = mpsc::sync_channel(QUEUE);
        let lander = Lander::new(lake, self.options.landing, memory.clone(), Arc::clone(&counters.set_aside))?;
        let counted = Arc::clone(&counters);
        let landing = std::thread::spawn(move || {
            let _ends = EndsWithThread;
            lander.run(&received, &counting(&counted.failed, report));
        });
        let intake = Arc::new(Intake::default());
        let working = Arc::clone(&intake);
        let taking = std::thread::spawn(move || {
            let _ends = EndsWithThread;
            working.run();
        });
        let limits = self.limits();
        let shared = Shared { tokens: self.tokens, queue, intake: Arc::clone(&intake), counters, limits: limits.clone(), memory };
        let shared = Arc::new(shared);
        let answer = move |request, visitor| {
            let shared = Arc::clone(&shared);
            async move { respond(request, &visitor, &shared).await }
        };
        let served = http::serve(self.listener, self.tls, limits, cancel, answer);
        intake.end();
        let _ = taking.join();
        // Requests that still wait are answered by the last landing.
        let _ = landing.join();
        served
    }

    fn limits(&self) -> Limits {
        let CollectorOptions { connections, connections_of_one: each, .. } = self.options;
        let strangers = (connections / STRANGERS).max(1);
        Limits {
            strangers: Room::new(strangers, each.min(strangers)),
            known: Room::new(connections - strangers, each),
            // Agents keep their connections open from one interval to the next.
            head: Duration::from_secs(30),
            head_bytes: 8 << 10,
            whole: None,
        }
    }
}

async fn respond(request: Request<Incoming>, visitor: &Visitor, shared: &Shared) -> Response<Full<Bytes>> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, READY) => ready(&request, visitor, shared),
        (&Method::GET, "/metrics") => metrics(shared),
        (&Method::POST, BATCHES) => take(request, visitor, shared).await,
        _ => RequestRefusal::UnknownPath.answer(),
    }
}

fn header<'r>(request: &'r Request<Incoming>, name: &str) -> Option<&'r str> {
    request.headers().get(name).and_then(|value| value.to_str().ok())
}

/// Agents before 0.4 do not ask for a signature.
fn ready(request: &Request<Incoming>, visitor: &Visitor, shared: &Shared) -> Response<Full<Bytes>> {
    let Some(nonce) = header(request, NONCE) else { return plain(StatusCode::OK, "ready\n") };
    let Some(token) = header(request, TOKEN).and_then(|name| shared.tokens.named(name)) else {
        return unauthorized(shared);
    };
    let is_ready = visitor.is_known();
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    answers::signed(&Asked::with_nonce(READY, nonce), token, status, json::text(&Ready { version: VERSION, is_ready }))
}

fn unauthorized(shared: &Shared) -> Response<Full<Bytes>> {
    shared.counters.unauthorized.fetch_add(1, Ordering::Relaxed);
    RequestRefusal::UnknownToken.answer()
}

async fn take(request: Request<Incoming>, visitor: &Visitor, shared: &Shared) -> Response<Full<Bytes>> {
    shared.counters.requests.fetch_add(1, Ordering::Relaxed);
    // The token is checked before the body of a stranger's request is read.
    let Some(token) = shared.tokens.find(bearer(&request)) else { return unauthorized(shared) };
    // Before 0.4, agents did not ask for a signature.
    let asked = header(&request, NONCE).map(|nonce| (Asked::with_nonce(BATCHES, nonce), token));
    let (is_packed, was_sent) =
        (header(&request, CONTENT_ENCODING.as_str()) == Some("zstd"), header(&request, "x-sysdock-sent-before") != Some("0"));
    let answered = async {
        let (body, place) = read(request, visitor, shared).await?;
        let _served = visitor.served();
        let content = digest(&body);
        let checked = check(body, place, is_packed, visitor, token, shared).await?;
        land(checked, content, was_sent, asked.is_some(), shared).await
    };
    let answered = answered.await;
    match (answered, asked) {
        (Ok(answer), Some((asked, token))) => match shared.held(visitor, json::text(&answer)) {
            Some(text) => answers::signed(&asked, token, StatusCode::OK, text),
            // What has landed is found when it is sent again.
            None => refused(&RequestRefusal::Busy, Some((asked, token)), shared),
        },
        (Ok(answer), None) => plain(StatusCode::OK, json::text(&OldAnswer::from(answer))),
        (Err(why), asked) => refused(&why, asked, shared),
    }
}

/// An answer for agents before 0.4: what is not refused has landed.
#[derive(serde::Serialize)]
struct OldAnswer {
    refused: Vec<(usize, String)>,
}

impl From<Answer> for OldAnswer {
    fn from(answer: Answer) -> OldAnswer {
        OldAnswer { refused: answer.refused.into_iter().map(|refused| (refused.line, refused.why)).collect() }
    }
}

fn refused(why: &RequestRefusal, asked: Option<(Asked, &Token)>, shared: &Shared) -> Response<Full<Bytes>> {
    if *why == RequestRefusal::Busy {
        shared.counters.busy.fetch_add(1, Ordering::Relaxed);
    }
    let mut response = why.answer();
    if let Some((asked, token)) = asked {
        let signed = answers::signed(&asked, token, why.status(), why.to_json());
        response.headers_mut().extend(signed.headers().clone());
    }
    if *why == RequestRefusal::Busy {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static(LATER));
    }
    response
}

/// The content of a request. Memory for it is taken before it is read.
async fn read(request: Request<Incoming>, visitor: &Visitor, shared: &Shared) -> Result<(Bytes, Place), RequestRefusal> {
    if !visitor.is_known() {
        return Err(RequestRefusal::Busy);
    }
    let length = request.body().size_hint().exact().ok_or(RequestRefusal::NoLength)?;
    if length > MOST_PACKED {
        return Err(RequestRefusal::TooLong);
    }
    // While it is put together, it is there twice.
    let amount = 2 * length as usize + 1;
    let notice = Notice::default();
    let place = shared.memory.borrow_within(visitor.client, amount, &notice, PATIENCE).await;
    let place = place.ok_or(RequestRefusal::Busy)?;
    let body = receive(request.into_body(), length, notice).await?;
    // From now on it is ours to be quick.
    if place.settle() { Ok((body, place)) } else { Err(RequestRefusal::Busy) }
}

async fn receive(body: Incoming, length: u64, notice: Notice) -> Result<Bytes, RequestRefusal> {
    let limit = PATIENCE + Duration::from_millis(length * 1000 / SLOWEST);
    let body = tokio::time::timeout(limit, Limited::new(body, length as usize).collect());
    match unless(notice, body).await {
        // A copy of its own size: what the connection was read into is larger.
        Some(Ok(Ok(body))) => Ok(Bytes::copy_from_slice(&body.to_bytes())),
        Some(_) => Err(RequestRefusal::Body),
        None => Err(RequestRefusal::Busy),
    }
}

/// The batches of a request.
async fn check(
    body: Bytes,
    place: Place,
    is_packed: bool,
    visitor: &Visitor,
    token: &Token,
    shared: &Shared,
) -> Result<Checked, RequestRefusal> {
    let (done, checked) = oneshot::channel();
    let now_ns = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
    shared.intake.push(Content { client: visitor.client, place, body, is_packed, token: token.clone(), now_ns, done });
    let checked = checked.await.unwrap_or(Err(RequestRefusal::Busy))?;
    shared.counters.refused.fetch_add(checked.refused.len() as u64, Ordering::Relaxed);
    shared.counters.batches.fetch_add(checked.lines.len() as u64, Ordering::Relaxed);
    shared.counters.rows.fetch_add(checked.lines.iter().map(|line| line.rows).sum(), Ordering::Relaxed);
    Ok(checked)
}

/// What became of batches. `can_wait`: the agent understands that some of them must be sent again.
async fn land(
    checked: Checked,
    content: String,
    was_sent: bool,
    can_wait: bool,
    shared: &Shared,
) -> Result<Answer, RequestRefusal> {
    let Checked { lines, refused, batches, place } = checked;
    let ids: Vec<Id> = lines.iter().map(|line| line.id.clone()).collect();
    let is_durable = if lines.is_empty() { Vec::new() } else { hand_over(lines, was_sent, place, shared).await? };
    let settled = is_durable.iter().filter(|is_durable| **is_durable).count() + refused.len();
    if settled < batches && (!can_wait || settled == 0) {
        return Err(RequestRefusal::NotLanded);
    }
    let landed: Vec<Id> = ids.into_iter().zip(is_durable).filter(|(_, is_durable)| *is_durable).map(|(id, _)| id).collect();
    Ok(Answer { version: VERSION, content, batches, landed, refused })
}

async fn hand_over(lines: Vec<Line>, was_sent: bool, place: Place, shared: &Shared) -> Result<Vec<bool>, RequestRefusal> {
    let (answer, answered) = oneshot::channel();
    let answer = Box::new(move |is_durable| drop(answer.send(is_durable)));
    let received = Received { lines, was_sent, place: Some(place), answer };
    shared.queue.try_send(received).map_err(|_| RequestRefusal::Busy)?;
    answered.await.map_err(|_| RequestRefusal::NotLanded)
}

fn metrics(shared: &Shared) -> Response<Full<Bytes>> {
    let Shared { counters, limits, .. } = shared;
    let all = [
        ("requests", "Requests with batches.", &counters.requests),
        ("batches", "Batches that came.", &counters.batches),
        ("rows", "Rows of them.", &counters.rows),
        ("refused_batches", "Batches that were refused.", &counters.refused),
        ("unauthorized_requests", "Requests with a token that is not known.", &counters.unauthorized),
        ("failed_landings", "Landings that failed.", &counters.failed),
        ("busy_answers", "Requests that found no room.", &counters.busy),
        ("set_aside_batches", "Batches that were pending and could not be read any more.", &counters.set_aside),
    ];
    let closed = limits.strangers.gave_way() + limits.known.gave_way();
    let all = all.map(|(name, text, value)| (name, text, value.load(Ordering::Relaxed)));
    let closed = ("closed_connections", "Connections that were closed because there were too many.", closed);
    let family = |(name, text, value): (&str, &str, u64)| {
        format!(
            "# HELP sysdock_collector_{name} {text}\n# TYPE sysdock_collector_{name} counter\nsysdock_collector_{name}_total {value}\n"
        )
    };
    open_metrics(all.into_iter().chain([closed]).map(family).collect::<String>() + "# EOF\n")
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

/// Ends the process if its thread panics: a collector that cannot land must be started again, and not
/// say for ever that it is busy.
struct EndsWithThread;

impl Drop for EndsWithThread {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

/// Large pieces of memory go back to the system when they are free. Otherwise, the C library keeps
/// them for later, for each thread.
fn give_back_memory() {
    const LARGE: i32 = 128 << 10;
    // SAFETY: these set parameters of the allocator, and are allowed at any time.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        libc::mallopt(libc::M_TRIM_THRESHOLD, LARGE);
    }
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
