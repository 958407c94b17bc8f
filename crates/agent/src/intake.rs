//! Unpacks and checks what agents send, in a thread of its own, so that connections are answered
//! meanwhile. What is short comes first, and of that what comes from the client that took the least
//! time until now: one that sends much does not make others wait.

use std::{
    collections::HashMap,
    io::Read,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use hyper::body::Bytes;
use tokio::sync::oneshot;

use crate::{
    answers::RefusedLine,
    http::RequestRefusal,
    line::Line,
    room::{Client, Place},
};

/// Longest content of a request, uncompressed [B].
pub(crate) const MOST_UNPACKED: usize = 8 << 20;
/// Batches in one request.
pub(crate) const MOST_BATCHES: usize = 8_192;
/// Memory that a batch takes in addition to its text [B].
const OF_BATCH: usize = 640;
/// Largest window of compressed content, as a power of 2: a frame may demand 128 MiB.
const WINDOW: u32 = 22;
/// Contents up to this length come first [B].
const SHORT: usize = 256 << 10;
/// After so many short ones, the one that waits longest is next.
const IN_A_ROW: u32 = 3;
/// How long unpacking waits for memory.
const PATIENCE: Duration = Duration::from_secs(2);
const STEP: usize = 64 << 10;

/// A request whose content has arrived.
pub(crate) struct Content {
    pub(crate) client: Client,
    pub(crate) place: Place,
    pub(crate) body: Bytes,
    pub(crate) is_packed: bool,
    /// The clock that batches must not be ahead of [ns, Unix time].
    pub(crate) now_ns: i64,
    pub(crate) done: oneshot::Sender<Result<Checked, RequestRefusal>>,
}

/// The batches of a request.
pub(crate) struct Checked {
    /// Each with its place in the request, counted from 0.
    pub(crate) lines: Vec<(usize, Line)>,
    pub(crate) refused: Vec<RefusedLine>,
    /// Number of all.
    pub(crate) batches: usize,
    pub(crate) place: Place,
}

/// Requests that wait to be unpacked.
#[derive(Default)]
pub(crate) struct Intake {
    queue: Mutex<Queue>,
    filled: Condvar,
}

#[derive(Default)]
struct Queue {
    /// In the order of their arrival.
    waiting: Vec<Content>,
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
        self.queue().waiting.push(content);
        self.filled.notify_one();
    }

    /// No more will come.
    pub(crate) fn end(&self) {
        self.queue().is_over = true;
        self.filled.notify_one();
    }

    /// Work until [`Intake::end`].
    pub(crate) fn run(&self) {
        while let Some(content) = self.next() {
            let (client, begun) = (content.client, Instant::now());
            let Content { place, body, is_packed, now_ns, done, .. } = content;
            let _ = done.send(checked(place, body, is_packed, now_ns));
            self.queue().add(client, begun.elapsed());
        }
    }

    fn next(&self) -> Option<Content> {
        let mut queue = self.queue();
        loop {
            if let Some(next) = queue.next() {
                return Some(next);
            }
            if queue.is_over {
                return None;
            }
            queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Queue {
    fn next(&mut self) -> Option<Content> {
        // The sender does not wait for it any more.
        self.waiting.retain(|one| !one.done.is_closed());
        let order = |one: &Content| (one.length() > SHORT, self.spent.get(&one.client).copied().unwrap_or(0));
        let first = self.waiting.iter().enumerate().min_by_key(|(place, one)| (order(one), *place)).map(|(place, _)| place)?;
        let place = if self.in_a_row >= IN_A_ROW { 0 } else { first };
        self.in_a_row = if place == 0 { 0 } else { self.in_a_row + 1 };
        Some(self.waiting.remove(place))
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

impl Content {
    /// How long it is at most when it is unpacked.
    fn length(&self) -> usize {
        if self.is_packed { stated_length(&self.body) } else { self.body.len() }
    }
}

/// What compressed content says of its length. More than that is not unpacked.
fn stated_length(body: &[u8]) -> usize {
    let stated = zstd::zstd_safe::get_frame_content_size(body).ok().flatten();
    stated.and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX)
}

fn checked(place: Place, body: Bytes, is_packed: bool, now_ns: i64) -> Result<Checked, RequestRefusal> {
    let text = if is_packed { unpacked(&place, &body)? } else { body };
    if text.len() > MOST_UNPACKED {
        return Err(RequestRefusal::TooLong);
    }
    let batches = split(&text).take(MOST_BATCHES + 1).count();
    if batches > MOST_BATCHES {
        return Err(RequestRefusal::TooLong);
    }
    if !place.resize_within(text.len() + batches * OF_BATCH, PATIENCE) {
        return Err(RequestRefusal::Busy);
    }
    let (mut lines, mut refused) = (Vec::with_capacity(batches), Vec::new());
    for (at, line) in split(&text).enumerate() {
        match Line::parse(text.slice_ref(line), now_ns) {
            Ok(line) => lines.push((at, line)),
            Err(why) => refused.push(RefusedLine { line: at, why: why.to_json() }),
        }
    }
    Ok(Checked { lines, refused, batches, place })
}

fn split(text: &Bytes) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// Unpack, step by step, as far as there is memory.
fn unpacked(place: &Place, body: &Bytes) -> Result<Bytes, RequestRefusal> {
    let packing = |_| RequestRefusal::Packing;
    let mut decoder = zstd::stream::read::Decoder::with_buffer(&body[..]).map_err(packing)?;
    decoder.window_log_max(WINDOW).map_err(packing)?;
    let mut decoder = decoder.single_frame();
    let most = stated_length(body).min(MOST_UNPACKED);
    let mut text = Vec::new();
    loop {
        if !place.resize_within(body.len() + text.len() + STEP, PATIENCE) {
            return Err(RequestRefusal::Busy);
        }
        text.reserve_exact(STEP);
        if decoder.by_ref().take(STEP as u64).read_to_end(&mut text).map_err(packing)? == 0 {
            text.shrink_to_fit();
            return Ok(text.into());
        }
        if text.len() > most {
            return Err(if most < MOST_UNPACKED { RequestRefusal::Packing } else { RequestRefusal::TooLong });
        }
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

    fn refusal(body: Vec<u8>) -> Option<RequestRefusal> {
        let room = Room::new(MEMORY, MEMORY / 2);
        let place = room.keep(client(1), body.len()).expect("there is room");
        checked(place, body.into(), true, NOW).err()
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
        let place = room.keep(client(1), 100).expect("there is room");
        let body = zstd::encode_all(&vec![b'x'; 1 << 20][..], 1).expect("packed");
        let checked = checked(place, body.into(), true, NOW).map_err(|why| format!("{why:?}")).expect("one line that is refused");
        assert_eq!((checked.batches, checked.lines.len(), checked.refused.len()), (1, 0, 1));
        assert!(room.keep(client(2), MEMORY / 2).is_some());
        drop(checked);
        assert!(!room.is_tight());
    }

    #[test]
    fn without_memory_it_is_busy() {
        let room = Room::new(1 << 20, 1 << 20);
        let place = room.keep(client(1), 100).expect("there is room");
        let body = zstd::encode_all(&vec![b'x'; 2 << 20][..], 1).expect("packed");
        assert_eq!(checked(place, body.into(), true, NOW).err(), Some(RequestRefusal::Busy));
    }

    #[test]
    fn what_is_short_comes_first_and_nobody_waits_for_ever() {
        let room = Room::new(MEMORY, MEMORY / 2);
        let mut queue = Queue::default();
        let mut answers = Vec::new();
        let mut push = |queue: &mut Queue, number: u8, length: usize| {
            let (done, answer) = oneshot::channel();
            answers.push(answer);
            let place = room.keep(client(number), 1).expect("there is room");
            let body = vec![b'x'; length].into();
            queue.waiting.push(Content { client: client(number), place, body, is_packed: false, now_ns: NOW, done });
        };
        push(&mut queue, 1, SHORT + 1);
        for number in [2, 2, 3, 3, 4] {
            push(&mut queue, number, 10);
        }
        queue.add(client(2), Duration::from_millis(5));
        queue.add(client(3), Duration::from_millis(1));
        let order: Vec<Client> = std::iter::from_fn(|| queue.next()).map(|content| content.client).collect();
        assert_eq!(order, [4, 3, 3, 1, 2, 2].map(client));
    }
}
