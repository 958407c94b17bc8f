//! Servers that are not the collector, and answers that are not its answer to this request: batches
//! stay, and why is counted.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

use super::*;
use crate::{
    answers::{RefusedLine, digest},
    batch::{Batch, Named},
    json,
    line::tests::NOW,
    rows::{Origin, empty_sample},
    sampling::State,
};

const TOKEN_TEXT: &str = "of-this-site";

/// A request, as a server reads it.
#[derive(Clone, Debug, Default)]
struct Request {
    path: String,
    head: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn read(stream: &TcpStream) -> Option<Request> {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let mut request = Request { path: line.split(' ').nth(1)?.into(), ..Request::default() };
        loop {
            line.clear();
            stream.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            request.head.push((name.to_ascii_lowercase(), value.into()));
        }
        let length = request.header("content-length").parse().unwrap_or(0);
        request.body.resize(length, 0);
        stream.read_exact(&mut request.body).ok()?;
        Some(request)
    }

    fn header(&self, name: &str) -> &str {
        self.head.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// The batches in it.
    fn ids(&self) -> Vec<Id> {
        let text = zstd::decode_all(&self.body[..]).expect("packed");
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| Line::parse(line.to_vec().into(), NOW).expect("a batch").id).collect()
    }
}

type Answering = Box<dyn Fn(&Request) -> Vec<u8> + Send>;

/// A server on this host that gives prepared answers.
struct Server {
    url: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    fn start(answer: Answering) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
        let server = Server { url, seen: Arc::clone(&seen) };
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let Some(request) = Request::read(&stream) else { continue };
                let text = answer(&request);
                seen.lock().expect("no panic").push(request);
                let _ = stream.write_all(&text);
            }
        });
        server
    }

    fn paths(&self) -> Vec<String> {
        self.seen.lock().expect("no panic").iter().map(|request| request.path.clone()).collect()
    }
}

fn http(status: &str, head: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{head}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()).into_bytes()
}

/// What a collector answers with this token.
fn by_collector(path: &'static str, token: &str, request: &Request, status: u16, body: &str) -> Vec<u8> {
    let signature = Asked::with_nonce(path, request.header(NONCE)).sign(&Token::new(token), status, body.as_bytes());
    http(&status.to_string(), &format!("content-type: {KIND}\r\n{SIGNATURE}: {signature}\r\n"), body)
}

fn ready(request: &Request) -> Vec<u8> {
    by_collector(READY, TOKEN_TEXT, request, 200, &json::text(&Ready { version: VERSION, is_ready: true }))
}

/// The right answer: all landed.
fn all_landed(request: &Request) -> Answer {
    let landed = request.ids();
    Answer { version: VERSION, content: digest(&request.body), batches: landed.len(), landed, refused: Vec::new() }
}

/// A spool with batches.
struct Scene {
    _folder: tempfile::TempDir,
    spool: Spool,
}

fn origin(sequence: i64) -> Origin {
    Origin { cluster: "c".into(), node: "n".into(), agent: "0123456789abcdef".into(), sequence }
}

impl Scene {
    fn new(batches: i64) -> Scene {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Spool::open(&folder.path().join("spool"), 64 << 20).expect("it is made");
        let mut kept = spool.begin().expect("it is empty");
        for sequence in 1..=batches {
            let mut batch = Batch::new(&origin(sequence), NOW);
            batch.job_samples.push(empty_sample(&origin(sequence), NOW, 10, "files"));
            spool.keep(&mut kept, State::default(), &batch).expect("there is room");
        }
        Scene { _folder: folder, spool }
    }

    fn push(&self, url: &str) -> Result<Outcome, AgentError> {
        let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(60)));
        let client = config.http_status_as_error(false).max_redirects(0).build().new_agent();
        let waiting = self.spool.waiting().expect("it can be read");
        Push::new(client, url.into(), TOKEN_TEXT).send(&self.spool, &waiting)
    }

    /// Numbers of the batches that wait, and whether they were sent.
    fn waiting(&self) -> Vec<(i64, bool)> {
        self.spool.waiting().expect("it can be read").iter().map(|one| (one.sequence, one.was_sent)).collect()
    }
}

fn uncounted(outcome: Result<Outcome, AgentError>) -> &'static str {
    match outcome {
        Err(AgentError::Collector(Unsent::Uncounted(why))) => why.code(),
        Err(AgentError::Collector(Unsent::Answers(..))) => "answers",
        Err(AgentError::Collector(Unsent::Unreachable(_))) => "unreachable",
        Err(AgentError::Collector(Unsent::NotReady(_))) => "not ready",
        other => panic!("{other:?}"),
    }
}

const PAGE: &str = "<html>Welcome to the guest network</html>";

#[test]
fn before_a_collector_is_there_nothing_is_sent() {
    let cases: Vec<(&str, Answering)> = vec![
        ("content_type", Box::new(|_| http("200 OK", "content-type: text/html\r\n", PAGE))),
        ("redirect", Box::new(|_| http("302 Found", "location: http://127.0.0.1:1/login\r\n", ""))),
        ("redirect", Box::new(|_| http("307 Temporary Redirect", "location: /v1/ready\r\n", ""))),
        ("answers", Box::new(|_| http("502 Bad Gateway", "content-type: text/html\r\n", PAGE))),
        ("answers", Box::new(|_| http("511 Network Authentication Required", "", PAGE))),
        ("answers", Box::new(|_| http("204 No Content", "", ""))),
        // A collector before 0.4.
        ("unsigned", Box::new(|_| http("200 OK", "", "ready\n"))),
        ("unsigned", Box::new(|_| http("200 OK", &format!("content-type: {KIND}\r\n"), "{\"version\":1,\"is_ready\":true}"))),
        ("signature", Box::new(|request| by_collector(READY, "forged", request, 200, "{\"version\":1,\"is_ready\":true}"))),
        // The answer to another kind of request.
        ("signature", Box::new(|request| by_collector(BATCHES, TOKEN_TEXT, request, 200, "{\"version\":1,\"is_ready\":true}"))),
        ("form", Box::new(|request| by_collector(READY, TOKEN_TEXT, request, 200, "{\"version\":2,\"is_ready\":true}"))),
        ("form", Box::new(|request| by_collector(READY, TOKEN_TEXT, request, 200, "[]"))),
        ("not ready", Box::new(|request| by_collector(READY, TOKEN_TEXT, request, 503, "{\"version\":1,\"is_ready\":false}"))),
        ("unreachable", Box::new(|_| Vec::new())),
        ("unreachable", Box::new(|_| b"SSH-2.0-OpenSSH_9.2\r\n".to_vec())),
    ];
    let scene = Scene::new(2);
    for (code, answer) in cases {
        let server = Server::start(answer);
        assert_eq!(uncounted(scene.push(&server.url)), code);
        assert_eq!(scene.waiting(), [(1, false), (2, false)], "{code}: they were not sent");
        assert_eq!(server.paths(), [READY]);
        let seen = server.seen.lock().expect("no panic");
        assert!(seen[0].head.iter().all(|(_, value)| !value.contains(TOKEN_TEXT)), "{code}: the token was not shown");
    }
}

#[test]
fn only_the_answer_to_this_request_counts() {
    type Of = fn(&Request) -> Vec<u8>;
    fn signed(request: &Request, answer: &Answer) -> Vec<u8> {
        by_collector(BATCHES, TOKEN_TEXT, request, 200, &json::text(answer))
    }
    let cases: [(&str, Of); 13] = [
        ("content_type", |_| http("200 OK", "content-type: text/html\r\n", PAGE)),
        ("redirect", |_| http("301 Moved", "location: https://127.0.0.1:1/v1/batches\r\n", "")),
        ("answers", |_| http("503 Service Unavailable", "content-type: text/html\r\n", PAGE)),
        // What earlier collectors answer.
        ("unsigned", |_| http("200 OK", "", "{\"refused\":[]}")),
        ("unsigned", |_| http("200 OK", "", "")),
        ("signature", |request| by_collector(BATCHES, "forged", request, 200, &json::text(&all_landed(request)))),
        ("broken", |request| {
            let whole = signed(request, &all_landed(request));
            whole[..whole.len() - 20].to_vec()
        }),
        // Cut off by a proxy that states the length of what is left.
        ("signature", |request| {
            let body = json::text(&all_landed(request));
            let signature = Asked::with_nonce(BATCHES, request.header(NONCE)).sign(&Token::new(TOKEN_TEXT), 200, body.as_bytes());
            http("200 OK", &format!("content-type: {KIND}\r\n{SIGNATURE}: {signature}\r\n"), &body[..40])
        }),
        // The same content, with another type.
        ("content_type", |request| {
            let text = String::from_utf8(signed(request, &all_landed(request))).expect("text");
            text.replace(KIND, "application/json").into_bytes()
        }),
        ("other_batches", |request| signed(request, &Answer { batches: 1, ..all_landed(request) })),
        ("other_batches", |request| signed(request, &Answer { content: digest(b"another"), ..all_landed(request) })),
        ("other_batches", |request| {
            let other = Id { cluster: "d".into(), agent: "0123456789abcdef".into(), sequence: 1 };
            signed(request, &Answer { landed: vec![other], ..all_landed(request) })
        }),
        ("form", |request| signed(request, &Answer { version: 2, ..all_landed(request) })),
    ];
    for (code, answer) in cases {
        let scene = Scene::new(2);
        let server = Server::start(Box::new(move |request| if request.path == READY { ready(request) } else { answer(request) }));
        assert_eq!(uncounted(scene.push(&server.url)), code);
        assert_eq!(scene.waiting(), [(1, true), (2, true)], "{code}: they may have been taken");
        // The collector itself answers then.
        let server =
            Server::start(Box::new(
                move |request| {
                    if request.path == READY { ready(request) } else { signed(request, &all_landed(request)) }
                },
            ));
        assert!(matches!(scene.push(&server.url), Ok(Outcome::Landed)), "{code}");
        assert_eq!(scene.waiting(), []);
    }
}

#[test]
fn an_answer_that_was_recorded_does_not_count() {
    let recorded: Arc<Mutex<[Vec<u8>; 2]>> = Arc::default();
    let recording = Arc::clone(&recorded);
    let good = Server::start(Box::new(move |request| {
        if request.path == READY {
            let answer = ready(request);
            recording.lock().expect("no panic")[0] = answer.clone();
            return answer;
        }
        let answer = by_collector(BATCHES, TOKEN_TEXT, request, 200, &json::text(&all_landed(request)));
        recording.lock().expect("no panic")[1] = answer.clone();
        answer
    }));
    assert!(Scene::new(2).push(&good.url).is_ok());
    let [was_ready, was_taken] = recorded.lock().expect("no panic").clone();
    assert!(!was_ready.is_empty() && !was_taken.is_empty());
    let scene = Scene::new(2);
    let replaying = Server::start(Box::new(move |_| was_ready.clone()));
    assert_eq!(uncounted(scene.push(&replaying.url)), "signature");
    assert_eq!(scene.waiting(), [(1, false), (2, false)]);
    // The same batches, with the same content: only the number of the request is another.
    let replaying =
        Server::start(Box::new(move |request| if request.path == READY { ready(request) } else { was_taken.clone() }));
    assert_eq!(uncounted(scene.push(&replaying.url)), "signature");
    assert_eq!(scene.waiting(), [(1, true), (2, true)]);
}

#[test]
fn what_is_not_named_stays_and_what_is_refused_is_set_aside() {
    let scene = Scene::new(4);
    let server = Server::start(Box::new(|request| {
        if request.path == READY {
            return ready(request);
        }
        let mut answer = all_landed(request);
        answer.landed.retain(|id| id.sequence == 1 || id.sequence == 4);
        answer.refused = vec![RefusedLine { line: 1, why: Refusal::Name { of: Named::Node }.to_json() }];
        by_collector(BATCHES, TOKEN_TEXT, request, 200, &json::text(&answer))
    }));
    assert!(matches!(scene.push(&server.url), Ok(Outcome::Refused(Refusal::Name { of: Named::Node }))));
    assert_eq!(scene.waiting(), [(3, true)]);
    assert_eq!(scene.spool.aside().reasons.get("name"), Some(&1));
    // It stays, and says so, where the collector takes none.
    let server = Server::start(Box::new(|request| {
        let none = |request: &Request| Answer { landed: Vec::new(), ..all_landed(request) };
        if request.path == READY {
            ready(request)
        } else {
            by_collector(BATCHES, TOKEN_TEXT, request, 200, &json::text(&none(request)))
        }
    }));
    assert_eq!(uncounted(scene.push(&server.url)), "answers");
    assert_eq!(scene.waiting(), [(3, true)]);
}

#[test]
fn one_bad_batch_stops_nobody() {
    let scene = Scene::new(3);
    let path = |one: &Waiting| {
        let files = std::fs::read_dir(scene.spool.path()).expect("a folder").flatten().map(|entry| entry.path());
        files.into_iter().find(|path| path.to_string_lossy().contains(&format!("batch-{:016}-", one.sequence))).expect("its file")
    };
    let waiting = scene.spool.waiting().expect("it can be read");
    std::fs::write(path(&waiting[0]), "{\"format\":1,").expect("damaged");
    let large = format!("{{\"x\":\"{}\",", "x".repeat(MOST_UNPACKED));
    let text = std::fs::read_to_string(path(&waiting[1])).expect("it is there");
    std::fs::write(path(&waiting[1]), text.replacen('{', &large, 1)).expect("it is long");
    let server = Server::start(Box::new(|request| {
        if request.path == READY {
            ready(request)
        } else {
            by_collector(BATCHES, TOKEN_TEXT, request, 200, &json::text(&all_landed(request)))
        }
    }));
    assert!(matches!(scene.push(&server.url), Ok(Outcome::Refused(Refusal::TooLong { .. }))));
    assert_eq!(scene.waiting(), []);
    let aside = scene.spool.aside();
    assert_eq!((aside.batches, aside.reasons.get("malformed"), aside.reasons.get("too_long")), (2, Some(&1), Some(&1)));
    assert_eq!(server.seen.lock().expect("no panic")[1].ids().len(), 1);
}
