//! Threads that parse chunks ahead of the one thread that rebuilds state.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    thread,
};

use crate::chunk::Chunk;

/// A chunk to parse, and the channel for the result.
type Job = (Chunk, Sender<Chunk>);

/// The parser threads. They end when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Parsers {
    jobs: Option<Sender<Job>>,
    /// Number of chunks that an input may have in progress.
    ahead: usize,
}

impl Parsers {
    /// Start `threads` parsers; with none, chunks are parsed when they are needed.
    pub(crate) fn start(threads: usize) -> Self {
        if threads == 0 {
            return Parsers::default();
        }
        let (jobs, queue) = mpsc::channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads {
            let queue = Arc::clone(&queue);
            thread::spawn(move || work(&queue));
        }
        Parsers { jobs: Some(jobs), ahead: 2 * threads + 1 }
    }

    /// Whether an input with `under_way` chunks in progress should have more.
    pub(crate) fn want_more(&self, under_way: usize) -> bool {
        under_way < self.ahead.max(1)
    }

    /// Parse a chunk, now or in one of the threads; the result is added to the queue.
    pub(crate) fn parse(&self, mut chunk: Chunk, queue: &mut VecDeque<Receiver<Chunk>>, ahead: bool) {
        let (sender, receiver) = mpsc::channel();
        match self.jobs.as_ref().filter(|_| ahead) {
            Some(jobs) => jobs.send((chunk, sender)).expect("the parsers live as long as this"),
            None => {
                chunk.parse();
                sender.send(chunk).expect("the receiver is at hand");
            }
        }
        queue.push_back(receiver);
    }
}

fn work(queue: &Mutex<Receiver<Job>>) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((mut chunk, done)) = job else { return };
        chunk.parse();
        // The receiver may be gone after an error.
        let _ = done.send(chunk);
    }
}
