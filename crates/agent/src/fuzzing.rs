//! What the fuzzing targets call (feature `fuzzing`), and tests with the inputs that fuzzing begins with.

use std::{fs, path::Path};

use sysdock_table::rows::{AgentBatches, JobFiles, JobSamples, JobTotals};

use crate::{
    answers::{Answer, Id, Ready},
    batch::{Batch, DAY_NS, Refusal},
    http::RequestRefusal,
    lake::{Lake, by_partition},
    line::{Line, Rows},
    otlp,
    rows::Origin,
    sampling::State,
    spool::Spool,
};

/// Counts rows.
#[derive(Default)]
struct Counted(u64);

impl Rows for Counted {
    fn sample(&mut self, _: JobSamples<'static>) {
        self.0 += 1;
    }

    fn total(&mut self, _: JobTotals<'static>) {
        self.0 += 1;
    }

    fn file(&mut self, _: JobFiles<'static>) {
        self.0 += 1;
    }

    fn about(&mut self, _: AgentBatches<'static>) {
        self.0 += 1;
    }
}

/// Any bytes as the content of a request to a collector, and as an answer of one: what is taken has the rows that were counted, and lands.
///
/// # Panics
/// If it does not.
pub fn batch(data: &[u8], folder: &Path) {
    let lines = data.split(|byte| *byte == b'\n').filter_map(|line| Line::parse(line.to_vec().into(), i64::MAX - DAY_NS).ok());
    let lines: Vec<Line> = lines.collect();
    for line in &lines {
        let mut counted = Counted::default();
        line.read(&mut counted).expect("it was checked");
        assert_eq!(counted.0, line.rows);
    }
    if !lines.is_empty() {
        let path = folder.join("lake");
        let mut lake = Lake::open(&path, "00000001").expect("room on the disk");
        for (partition, lines) in by_partition(&lines) {
            lake.land(&partition, &lines, &|| true).expect("it lands");
            lake.land_once(&partition, &lines).expect("it is there");
        }
        fs::remove_dir_all(&path).expect("it is there");
    }
    let sent: Vec<Id> = lines.iter().map(|line| line.id.clone()).collect();
    let _ = serde_json::from_slice::<Answer>(data).map(|answer| answer.is_about(data, &sent));
    let _ = serde_json::from_slice::<Ready>(data);
    let text = String::from_utf8_lossy(data);
    let _ = (Refusal::from_json(&text).fact(), RequestRefusal::from_body(data).fact(), otlp::is_taken(&text));
}

/// Any bytes as the state that an agent left in its spool: it begins with it or anew, and keeps a batch.
///
/// # Panics
/// If it does not.
pub fn agent_notes(data: &[u8], folder: &Path) {
    let path = folder.join("spool");
    let spool = Spool::open(&path, 1 << 20).expect("room on the disk");
    for name in ["state.json", "otlp.json", "batch-0000000000000001.json"] {
        fs::write(path.join(name), data).expect("room on the disk");
    }
    let mut kept = spool.begin().expect("it begins");
    let _ = otlp::Done::read(spool.folder()).has(&kept.agent, kept.sequence);
    let origin = Origin { agent: kept.agent.clone(), sequence: kept.sequence.saturating_add(1), ..Origin::default() };
    let _ = spool.keep(&mut kept, State::default(), &Batch::new(&origin, 0));
    for waiting in spool.waiting().expect("it can be read") {
        spool.set_aside(&waiting, &Refusal::TooLong { bytes: 1 }).expect("it is set aside");
    }
    let _ = spool.aside();
    fs::remove_dir_all(&path).expect("it is there");
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_bytes_are_a_request() {
        sysdock_seeds::each("batch", 20_000, 16_384, super::batch);
    }

    #[test]
    fn any_bytes_are_what_an_agent_left() {
        sysdock_seeds::each("agent_notes", 4_000, 16_384, super::agent_notes);
    }
}
