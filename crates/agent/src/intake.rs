//! Unpacks and checks what agents send, in a thread of its own, so that connections are answered
//! meanwhile. It works on a request for a moment, then on the one of the client that took the least
//! time until now: a client that sends much does not make others wait.

use std::{
    collections::{BTreeMap, HashMap},
    io::Read,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::sync::oneshot;
use zstd::stream::read::Decoder;

use crate::{
    answers::RefusedLine,
    batch::Refusal,
    http::RequestRefusal,
    line::Line,
    room::{Client, Place},
    tokens::Token,
};

/// Longest content of a request, uncompressed [B].
pub(crate) const MOST_UNPACKED: usize = 8 << 20;
/// Batches in one request.
pub(crate) const MOST_BATCHES: usize = 8_192;
/// Memory that a batch takes in addition to its text [B].
const OF_BATCH: usize = 640;
/// Largest window of compressed content, as a power of 2: a frame may demand 128 MiB.
const WINDOW: u32 = 22;
/// How long a request waits for memory.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a request is worked on at a time.
const MOMENT: Duration = Duration::from_millis(2);
/// What is unpacked in one step [B].
const STEP: usize = 64 << 10;
/// Contents up to this length come first [B].
const SHORT: usize = 64 << 10;
/// After so many short ones, a long one is next.
const IN_A_ROW: u32 = 3;
/// Refused lines of a request that are named. Agents check what they send: who sends more is none.
const MOST_REFUSED: usize = 256;

/// A request whose content has arrived.
pub(crate) struct Content {
    pub(crate) client: Client,
    pub(crate) place: Place,
    pub(crate) body: Bytes,
    pub(crate) is_packed: bool,
    /// The token of the sender.
    pub(crate) token: Token,
    /// The clock that batches must not be ahead of [ns, Unix time].
    pub(crate) now_ns: i64,
    pub(crate) done: oneshot::Sender<Result<Checked, RequestRefusal>>,
}

/// The batches of a request.
pub(crate) struct Checked {
    pub(crate) lines: Vec<Line>,
    pub(crate) refused: Vec<RefusedLine>,
    /// Number of all, with those that were not checked.
    pub(crate) batches: usize,
    pub(crate) place: Place,
}

/// How far the work on a request is.
enum Stage {
    Begun { body: Bytes, is_packed: bool },
    Checking { text: Bytes, at: usize, number: usize, checked: Lines },
}

/// The lines of a request that were checked.
#[derive(Default)]
struct Lines {
    taken: Vec<Line>,
    refused: Vec<RefusedLine>,
    /// Number of all.
    batches: usize,
}

/// What comes of a step.
enum Stepped {
    /// There is more to do.
    More(Stage),
    /// There is no memory for the next step.
    NoMemory(Stage),
    Done(Lines),
}

/// What a request is checked with.
struct Sender {
    client: Client,
    token: Token,
    now_ns: i64,
}

/// A request that is worked on.
struct Work {
    sender: Sender,
    place: Place,
    done: oneshot::Sender<Result<Checked, RequestRefusal>>,
    stage: Stage,
    is_long: bool,
    /// Since when there is no memory for it.
    waits: Option<Instant>,
    /// It is not tried again before memory may have been given back.
    is_held: bool,
}

/// Requests that wait to be worked on.
#[derive(Default)]
pub(crate) struct Intake {
    queue: Mutex<Queue>,
    filled: Condvar,
}

/// Works in the order in which they are done: by the time that their clients took until they came into
/// the queue, then in the order in which they came.
type Ordered = BTreeMap<(u64, u64), Work>;

#[derive(Default)]
struct Queue {
    short: Ordered,
    long: Ordered,
    /// Works without memory, which are not tried again before some may have been given back.
    held: Vec<Work>,
    came: u64,
    /// Time that clients took [us]; halved again and again.
    spent: HashMap<Client, u64>,
    halved: Option<Instant>,
    in_a_row: u32,
    is_over: bool,
}

impl Intake {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, content: Content) {
        self.queue().push(Work::begin(content));
        self.filled.notify_one();
    }

    /// No more will come.
    pub(crate) fn end(&self) {
        self.queue().is_over = true;
        self.filled.notify_one();
    }

    /// Work until [`Intake::end`].
    pub(crate) fn run(&self) {
        while let Some(work) = self.next() {
            let (client, begun) = (work.sender.client, Instant::now());
            let more = work.work();
            let mut queue = self.queue();
            queue.add(client, begun.elapsed());
            if let Some(work) = more {
                queue.push(work);
            }
        }
    }

    fn next(&self) -> Option<Work> {
        const PAUSE: Duration = Duration::from_millis(10);
        let mut queue = self.queue();
        loop {
            match queue.next() {
                Some(next) => return Some(next),
                None if queue.is_over => return None,
                // Memory is given back by others.
                None if !queue.held.is_empty() => {
                    let waited = self.filled.wait_timeout(queue, PAUSE);
                    queue = waited.unwrap_or_else(PoisonError::into_inner).0;
                    queue.try_again();
                }
                None => queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Queue {
    fn push(&mut self, work: Work) {
        if work.is_held {
            self.held.push(work);
            return;
        }
        self.came += 1;
        let spent = self.spent.get(&work.sender.client).copied().unwrap_or(0);
        let queue = if work.is_long { &mut self.long } else { &mut self.short };
        queue.insert((spent, self.came), work);
    }

    fn next(&mut self) -> Option<Work> {
        let long_ones_turn = self.in_a_row >= IN_A_ROW;
        let (first, second) = if long_ones_turn { (&mut self.long, &mut self.short) } else { (&mut self.short, &mut self.long) };
        let (_, work) = first.pop_first().or_else(|| second.pop_first())?;
        self.in_a_row = if work.is_long { 0 } else { self.in_a_row + 1 };
        Some(work)
    }

    /// Those without memory may have some now.
    fn try_again(&mut self) {
        for work in std::mem::take(&mut self.held) {
            self.push(Work { is_held: false, ..work });
        }
    }

    fn add(&mut self, client: Client, time: Duration) {
        const HALF_LIFE: Duration = Duration::from_secs(5);
        *self.spent.entry(client).or_default() += time.as_micros() as u64;
        if self.halved.get_or_insert_with(Instant::now).elapsed() >= HALF_LIFE {
            self.spent.values_mut().for_each(|spent| *spent /= 2);
            self.spent.retain(|_, spent| *spent > 0);
            self.halved = Some(Instant::now());
        }
    }
}

impl Work {
    fn begin(content: Content) -> Work {
        let Content { client, place, body, is_packed, token, now_ns, done } = content;
        let length = if is_packed { stated_length(&body) } else { body.len() };
        let sender = Sender { client, token, now_ns };
        let stage = Stage::Begun { body, is_packed };
        Work { sender, place, done, stage, is_long: length > SHORT, waits: None, is_held: false }
    }

    /// Work for a moment; returns what is left to do.
    fn work(self) -> Option<Work> {
        let Work { sender, place, done, mut stage, is_long, waits, .. } = self;
        if done.is_closed() {
            // The sender does not wait for it any more.
            return None;
        }
        let until = Instant::now() + MOMENT;
        let result = loop {
            let since = waits.unwrap_or_else(Instant::now);
            match stage.step(&place, &sender) {
                Ok(Stepped::More(next)) if Instant::now() < until => stage = next,
                Ok(Stepped::More(stage)) => {
                    return Some(Work { sender, place, done, stage, is_long, waits: None, is_held: false });
                }
                Ok(Stepped::NoMemory(stage)) if since.elapsed() < PATIENCE => {
                    return Some(Work { sender, place, done, stage, is_long, waits: Some(since), is_held: true });
                }
                Ok(Stepped::NoMemory(_)) => break Err(RequestRefusal::Busy),
                Ok(Stepped::Done(Lines { taken, refused, batches })) => {
                    break Ok(Checked { lines: taken, refused, batches, place });
                }
                Err(why) => break Err(why),
            }
        };
        let _ = done.send(result);
        None
    }
}

impl Stage {
    fn step(self, place: &Place, sender: &Sender) -> Result<Stepped, RequestRefusal> {
        match self {
            Stage::Begun { body, is_packed: true } => unpack(body, place),
            Stage::Begun { body, is_packed: false } => begin_checking(body, place),
            Stage::Checking { text, at, number, checked } => Ok(check(text, at, number, checked, sender)),
        }
    }
}

/// What compressed content says of its length. More than that is not unpacked.
fn stated_length(body: &[u8]) -> usize {
    let stated = zstd::zstd_safe::get_frame_content_size(body).ok().flatten();
    stated.and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX)
}

/// Unpack, each step after its memory was taken. One content is unpacked at a time, as each needs
/// memory for its window, too: where there is none for the next step, it begins again later.
fn unpack(body: Bytes, place: &Place) -> Result<Stepped, RequestRefusal> {
    let packing = |_| RequestRefusal::Packing;
    let most = stated_length(&body);
    if most > MOST_UNPACKED && most != usize::MAX {
        return Err(RequestRefusal::TooLong);
    }
    let mut decoder = Decoder::with_buffer(&body[..]).map_err(packing)?.single_frame();
    decoder.window_log_max(WINDOW).map_err(packing)?;
    let mut text = Vec::new();
    loop {
        if !place.resize(body.len() + text.len() + STEP) {
            place.resize(body.len());
            return Ok(Stepped::NoMemory(Stage::Begun { body, is_packed: true }));
        }
        text.reserve_exact(STEP);
        match decoder.by_ref().take(STEP as u64).read_to_end(&mut text).map_err(packing)? {
            _ if text.len() > most => return Err(RequestRefusal::Packing),
            _ if text.len() > MOST_UNPACKED => return Err(RequestRefusal::TooLong),
            0 => break,
            _ => {}
        }
    }
    text.shrink_to_fit();
    begin_checking(text.into(), place)
}

fn begin_checking(text: Bytes, place: &Place) -> Result<Stepped, RequestRefusal> {
    let batches = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).take(MOST_BATCHES + 1).count();
    if text.len() > MOST_UNPACKED || batches > MOST_BATCHES {
        return Err(RequestRefusal::TooLong);
    }
    if !place.resize(text.len() + batches * OF_BATCH) {
        return Ok(Stepped::NoMemory(Stage::Begun { body: text, is_packed: false }));
    }
    let checked = Lines { batches, ..Lines::default() };
    Ok(Stepped::More(Stage::Checking { text, at: 0, number: 0, checked }))
}

/// Check the line that begins at this place of the text.
fn check(text: Bytes, at: usize, number: usize, mut checked: Lines, sender: &Sender) -> Stepped {
    let rest = text.slice(at.min(text.len())..);
    if rest.is_empty() || checked.refused.len() >= MOST_REFUSED {
        return Stepped::Done(checked);
    }
    let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let at = at + end + 1;
    if end == 0 {
        return Stepped::More(Stage::Checking { text, at, number, checked });
    }
    match Line::parse(rest.slice(..end), sender.now_ns) {
        Ok(line) if sender.token.allows(&line.id.cluster) => checked.taken.push(line),
        Ok(line) => checked.refuse(number, &Refusal::Cluster { name: line.id.cluster }),
        Err(why) => checked.refuse(number, &why),
    }
    Stepped::More(Stage::Checking { text, at, number: number + 1, checked })
}

impl Lines {
    fn refuse(&mut self, line: usize, why: &Refusal) {
        self.refused.push(RefusedLine { line, why: why.to_json() });
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::{line::tests::NOW, room::Room};

    const MEMORY: usize = 32 << 20;

    fn client(number: u8) -> Client {
        Client::of(Ipv4Addr::new(10, 0, 0, number).into())
    }

    fn content(
        client: Client,
        place: Place,
        body: Vec<u8>,
        is_packed: bool,
        done: oneshot::Sender<Result<Checked, RequestRefusal>>,
    ) -> Content {
        Content { client, place, body: body.into(), is_packed, token: Token::new("x"), now_ns: NOW, done }
    }

    fn checked(room: &Room, body: Vec<u8>) -> Result<Checked, RequestRefusal> {
        let place = room.keep(client(1), body.len()).expect("there is room");
        let (done, mut answer) = oneshot::channel();
        let mut work = Some(Work::begin(content(client(1), place, body, true, done)));
        while let Some(begun) = work {
            work = begun.work();
        }
        answer.try_recv().expect("it is answered")
    }

    fn refusal(body: Vec<u8>) -> Option<RequestRefusal> {
        checked(&Room::new(MEMORY, MEMORY / 2), body).err()
    }

    #[test]
    fn bombs_are_refused_before_they_are_large() {
        let large = vec![b'x'; MOST_UNPACKED + 1];
        // With and without a statement of its length.
        assert_eq!(refusal(zstd::bulk::compress(&large, 1).expect("packed")), Some(RequestRefusal::TooLong));
        assert_eq!(refusal(zstd::encode_all(&large[..], 1).expect("packed")), Some(RequestRefusal::TooLong));
        let lines = b"{}\n".repeat(MOST_BATCHES + 1);
        assert_eq!(refusal(zstd::encode_all(&lines[..], 1).expect("packed")), Some(RequestRefusal::TooLong));
        assert_eq!(refusal(b"not packed".to_vec()), Some(RequestRefusal::Packing));
        let cut = zstd::encode_all(&large[..1 << 20], 1).expect("packed");
        assert_eq!(refusal(cut[..cut.len() - 4].to_vec()), Some(RequestRefusal::Packing));
    }

    #[test]
    fn a_window_that_is_too_large_is_refused() {
        use std::io::Write;
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).expect("an encoder");
        encoder.window_log(27).expect("it can");
        encoder.write_all(&vec![b'x'; 1 << 20]).expect("packed");
        assert_eq!(refusal(encoder.finish().expect("packed")), Some(RequestRefusal::Packing));
    }

    #[test]
    fn what_is_taken_is_given_back() {
        let room = Room::new(MEMORY, MEMORY / 2);
        let body = zstd::encode_all(&vec![b'x'; 1 << 20][..], 1).expect("packed");
        let checked = checked(&room, body).map_err(|why| format!("{why:?}")).expect("one line that is refused");
        assert_eq!((checked.batches, checked.lines.len(), checked.refused.len()), (1, 0, 1));
        drop(checked);
        assert!(room.keep(client(1), MEMORY / 2).is_some());
    }

    #[test]
    fn lines_are_counted_without_empty_ones() {
        let body = zstd::encode_all(&b"\n{}\n\n[]\n{}"[..], 1).expect("packed");
        let checked = checked(&Room::new(MEMORY, MEMORY), body).map_err(|why| format!("{why:?}")).expect("three lines");
        let lines: Vec<usize> = checked.refused.iter().map(|refused| refused.line).collect();
        assert_eq!((checked.batches, lines), (3, vec![0, 1, 2]));
    }

    #[test]
    fn a_request_without_batches_is_not_checked_to_the_end() {
        let body = zstd::encode_all(&b"{}\n".repeat(1000)[..], 1).expect("packed");
        let checked = checked(&Room::new(MEMORY, MEMORY), body).map_err(|why| format!("{why:?}")).expect("it is checked");
        assert_eq!((checked.batches, checked.lines.len(), checked.refused.len()), (1000, 0, MOST_REFUSED));
    }

    #[test]
    fn without_memory_it_is_busy() {
        let room = Room::new(1 << 20, 1 << 20);
        let body = zstd::encode_all(&vec![b'x'; 2 << 20][..], 1).expect("packed");
        assert_eq!(checked(&room, body).err(), Some(RequestRefusal::Busy));
    }

    #[test]
    fn the_client_that_took_the_least_time_is_next() {
        let room = Room::new(MEMORY, MEMORY / 2);
        let mut queue = Queue::default();
        queue.add(client(2), Duration::from_millis(5));
        queue.add(client(3), Duration::from_millis(1));
        let mut answers = Vec::new();
        for (number, length) in [(1, SHORT + 1), (2, 9), (2, 9), (3, 9), (3, 9), (4, 9), (4, 9)] {
            let (done, answer) = oneshot::channel();
            answers.push(answer);
            let place = room.keep(client(number), 1).expect("there is room");
            let work = Work::begin(content(client(number), place, vec![b'x'; length], false, done));
            queue.push(Work { is_held: answers.len() == 3, ..work });
        }
        let order: Vec<Client> = std::iter::from_fn(|| queue.next()).map(|work| work.sender.client).collect();
        assert_eq!(order, [4, 4, 3, 1, 3, 2].map(client), "short ones first, but not for ever; one is held");
        queue.try_again();
        assert_eq!(queue.next().map(|work| work.sender.client), Some(client(2)));
    }
}
