//! Encoding in a thread of its own, in parallel with the thread that makes the rows.

use std::{
    sync::mpsc::{self, Receiver, SyncSender},
    thread,
};

/// Turns blocks of rows into row groups.
pub trait BlockEncoder: 'static {
    type Row: Send;
    /// Data that is passed at the end of a group, such as the texts that numbers in rows stand for.
    type End: Send;
    /// The result of a group.
    type Done: Send;

    /// Add a block.
    fn block(&mut self, rows: &[Self::Row]);
    /// Close the group and start over.
    fn finish(&mut self, end: Self::End) -> Self::Done;
}

enum Job<E: BlockEncoder> {
    Block(Vec<E::Row>),
    Finish(E::End),
}

/// An encoder in its own thread, which ends when this is dropped.
pub struct EncoderThread<E: BlockEncoder> {
    jobs: SyncSender<Job<E>>,
    groups: Receiver<E::Done>,
    wanted: usize,
}

impl<E: BlockEncoder> EncoderThread<E> {
    /// `make` is called in the new thread. At most `waiting` blocks are queued: enough to even out
    /// speeds, few enough for memory.
    pub fn new(waiting: usize, make: impl FnOnce() -> E + Send + 'static) -> Self {
        let (jobs, queue) = mpsc::sync_channel(waiting);
        let (done, groups) = mpsc::channel();
        thread::spawn(move || {
            let mut encoder = make();
            for job in queue {
                match job {
                    Job::Block(rows) => encoder.block(&rows),
                    // The receiver may be gone after an error.
                    Job::Finish(end) => drop(done.send(encoder.finish(end))),
                }
            }
        });
        EncoderThread { jobs, groups, wanted: 0 }
    }

    /// Add a block to the group.
    ///
    /// # Panics
    /// If the encoder panicked, which is an error in sysdock.
    pub fn block(&self, rows: Vec<E::Row>) {
        self.jobs.send(Job::Block(rows)).expect("the encoder lives as long as this");
    }

    /// End the group; [`EncoderThread::done`] or [`EncoderThread::rest`] returns it.
    ///
    /// # Panics
    /// If the encoder panicked, which is an error in sysdock.
    pub fn finish(&mut self, end: E::End) {
        self.jobs.send(Job::Finish(end)).expect("the encoder lives as long as this");
        self.wanted += 1;
    }

    /// The next group, if it is finished.
    pub fn done(&mut self) -> Option<E::Done> {
        let group = self.groups.try_recv().ok()?;
        self.wanted -= 1;
        Some(group)
    }

    /// All groups that were ended and not returned yet, in order. Waits for them.
    ///
    /// # Panics
    /// If the encoder panicked, which is an error in sysdock.
    pub fn rest(&mut self) -> impl Iterator<Item = E::Done> {
        (0..std::mem::take(&mut self.wanted)).map(|_| self.groups.recv().expect("the encoder answers"))
    }
}
