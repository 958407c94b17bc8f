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

/// A chunk to parse, and where it goes afterwards.
type Job = (Chunk, Sender<Chunk>);

/// The threads. They end when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Parsers {
    jobs: Option<Sender<Job>>,
    /// Chunks that an input may have in progress at a time.
    ahead: usize,
}

impl Parsers {
    /// `threads` parsers; none: chunks are parsed where they are needed.
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

    /// Whether `under_way` chunks are fewer than an input should have.
    pub(crate) fn want_more(&self, under_way: usize) -> bool {
        under_way < self.ahead.max(1)
    }

    /// Parse a chunk, now or by one of the threads; the result joins the queue.
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
