//! The thread that encodes and writes events while the guest's processor continues.
//!
//! Batches are passed through a queue of [`QUEUE`]; if that is full, the processor waits, so
//! nothing is lost. If the file cannot be written, all further events are dropped and the guest
//! continues: the status reports it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use serde_json::{Value, json};
use sysdock_itrace_file::{Block, Facts, Writer};

/// Words in a batch.
pub(crate) const BATCH: usize = 1 << 20;
/// Batches that may wait: 64 MB.
const QUEUE: usize = 8;
/// The status has a fixed size, so that its room is reserved before the disk is full [B].
const STATUS_BYTES: usize = 4096;

enum Message {
    /// New blocks, then words that may refer to them.
    Batch(Vec<Block>, Vec<u64>),
    /// The end: no more words; facts for the status.
    End(Facts),
}

/// The processor's side of the queue.
pub(crate) struct Output {
    queue: SyncSender<Message>,
    emptied: Receiver<Vec<u64>>,
    failed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// How long the processor has waited for the queue [ns].
    pub(crate) waited_ns: u64,
}

impl Output {
    /// Create the files and start the thread.
    pub(crate) fn start(out: &Path, header: &Facts) -> std::io::Result<Output> {
        let mut status = Status::create(out)?;
        let writer = Writer::create(File::create(out)?, header)?;
        let (queue, messages) = sync_channel(QUEUE);
        let (give_back, emptied) = channel();
        let failed = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&failed);
        let run = move || {
            let facts = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| write(writer, &messages, &give_back, &seen)));
            seen.store(true, Ordering::Relaxed);
            status.put("done", &facts.unwrap_or_else(|_| error("writer-failed")));
            // Until no more are sent.
            messages.iter().for_each(drop);
        };
        let thread = std::thread::Builder::new().name("itrace".into()).spawn(run)?;
        Ok(Output { queue, emptied, failed, thread: Some(thread), waited_ns: 0 })
    }

    /// Whether writing has failed, so that continuing is useless.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Pass on a batch. Returns an empty one.
    pub(crate) fn send(&mut self, blocks: Vec<Block>, words: Vec<u64>) -> Vec<u64> {
        let before = Instant::now();
        // An error means that the thread has ended, which is reported elsewhere.
        let _ = self.queue.send(Message::Batch(blocks, words));
        self.waited_ns += before.elapsed().as_nanos() as u64;
        self.emptied.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH))
    }

    /// Send the end.
    pub(crate) fn end(&mut self, facts: Facts) {
        let _ = self.queue.send(Message::End(facts));
    }

    /// Wait until everything is written.
    pub(crate) fn join(mut self) {
        drop(self.queue);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// CPU time of this thread [ns].
pub(crate) fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A code, or the words of the operating system.
fn error(text: &str) -> Facts {
    json!({ "error": text }).as_object().cloned().unwrap_or_default()
}

fn write(
    mut writer: Writer,
    messages: &Receiver<Message>,
    give_back: &std::sync::mpsc::Sender<Vec<u64>>,
    failed: &AtomicBool,
) -> Facts {
    for message in messages {
        match message {
            Message::Batch(blocks, mut words) => {
                for block in &blocks {
                    writer.define(block);
                }
                if let Err(cause) = writer.push(&words) {
                    failed.store(true, Ordering::Relaxed);
                    return error(&cause.to_string());
                }
                words.clear();
                let _ = give_back.send(words);
            }
            Message::End(mut facts) => {
                let finished = writer.finish();
                facts.insert("writer_cpu_ns".into(), cpu_ns().into());
                match finished {
                    Ok(summary) => {
                        if let Ok(Value::Object(summary)) = serde_json::to_value(summary) {
                            facts.extend(summary);
                        }
                    }
                    Err(cause) => facts.extend(error(&cause.to_string())),
                }
                return facts;
            }
        }
    }
    error("not-ended")
}

/// A file of JSON that is overwritten in place.
pub(crate) struct Status(File);

impl Status {
    /// The status file of an event file.
    pub(crate) fn create(out: &Path) -> std::io::Result<Status> {
        let mut name = out.as_os_str().to_owned();
        name.push(".status");
        let file = OpenOptions::new().create(true).truncate(true).write(true).open(name)?;
        let mut status = Status(file);
        status.put("waiting", &Facts::new());
        Ok(status)
    }

    pub(crate) fn put(&mut self, state: &str, facts: &Facts) {
        let mut all = facts.clone();
        all.insert("state".into(), state.into());
        let mut text = serde_json::to_vec(&all).unwrap_or_default();
        text.resize(STATUS_BYTES.max(text.len()), b' ');
        if let Err(cause) = self.0.write_all_at(&text, 0) {
            print(&format!("the status cannot be written: {cause}"));
        }
        if let Some(cause) = facts.get("error").and_then(Value::as_str) {
            print(cause);
        }
    }
}

/// Print to standard error of qemu: `native`, which forms all other texts, is not there.
#[allow(clippy::print_stderr)]
pub(crate) fn print(text: &str) {
    eprintln!("sysdock-itrace: {text}");
}
