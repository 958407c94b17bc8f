//! A batch as it travels: one line of JSON. It is checked without keeping its rows, and its rows are
//! read one by one when they are written, so a batch takes no more memory than its text, whatever is
//! in it.

use hyper::body::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use sysdock_table::rows::{AgentBatches, JobFiles, JobSamples, JobTotals};

use crate::{
    answers::Id,
    batch::{DAY_NS, FORMAT, Named, Refusal},
    names,
};

/// 2020-01-01.
const EARLIEST_NS: i64 = 1_577_836_800_000_000_000;

/// A line that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) id: Id,
    node: String,
    pub(crate) ts_ns: i64,
    /// Number of rows.
    pub(crate) rows: u64,
    text: Bytes,
}

/// What is stated once for all rows.
#[derive(Deserialize)]
struct Head {
    format: u32,
    cluster: String,
    node: String,
    agent: String,
    sequence: i64,
    ts_ns: i64,
}

/// What happens with the rows of a batch.
pub(crate) trait Rows {
    fn sample(&mut self, row: JobSamples<'static>);
    fn total(&mut self, row: JobTotals<'static>);
    fn file(&mut self, row: JobFiles<'static>);
    fn about(&mut self, row: AgentBatches<'static>);
}

impl Line {
    /// Check a line of a request body. `now_ns`: the clock that times must not be ahead of.
    ///
    /// # Errors
    /// [`Refusal`].
    pub(crate) fn parse(text: Bytes, now_ns: i64) -> Result<Line, Refusal> {
        let malformed = |error: serde_json::Error| Refusal::Malformed { error: error.to_string() };
        let head: Head = serde_json::from_slice(&text).map_err(malformed)?;
        head.check()?;
        let Head { cluster, node, agent, sequence, ts_ns, .. } = head;
        let mut line = Line { id: Id { cluster, agent, sequence }, node, ts_ns, rows: 0, text };
        let mut found = Found { rows: 0, earliest_ns: ts_ns, latest_ns: ts_ns };
        line.read(&mut found).map_err(malformed)?;
        let is_wrong = |ns: &i64| !(EARLIEST_NS..=now_ns.saturating_add(DAY_NS)).contains(ns);
        match [found.earliest_ns, found.latest_ns].into_iter().find(is_wrong) {
            Some(ns) => Err(Refusal::Time { ns }),
            None => {
                line.rows = found.rows;
                Ok(line)
            }
        }
    }

    /// Its text, without the end of the line.
    pub(crate) fn text(&self) -> &Bytes {
        &self.text
    }

    /// Pass its rows on. The sender named in the batch overrides what its rows say about their origin.
    ///
    /// # Errors
    /// It is not of this form; a line that was checked is.
    pub(crate) fn read(&self, rows: &mut dyn Rows) -> serde_json::Result<()> {
        let mut parser = serde_json::Deserializer::from_slice(&self.text);
        parser.deserialize_map(Whole { line: self, rows })?;
        parser.end()
    }
}

impl Head {
    fn check(&self) -> Result<(), Refusal> {
        if self.format > FORMAT {
            return Err(Refusal::Newer { format: self.format, latest: FORMAT });
        }
        let wrong = if !names::is_cluster(&self.cluster) {
            Named::Cluster
        } else if !names::is_name(&self.node) {
            Named::Node
        } else if !names::is_agent(&self.agent) || self.sequence < 0 {
            Named::Agent
        } else {
            return Ok(());
        };
        Err(Refusal::Name { of: wrong })
    }
}

/// Counts rows, and finds their times.
struct Found {
    rows: u64,
    earliest_ns: i64,
    latest_ns: i64,
}

impl Rows for Found {
    fn sample(&mut self, row: JobSamples<'static>) {
        self.rows += 1;
        self.earliest_ns = self.earliest_ns.min(row.ts_ns);
        self.latest_ns = self.latest_ns.max(row.ts_ns);
    }

    fn total(&mut self, _: JobTotals<'static>) {
        self.rows += 1;
    }

    fn file(&mut self, _: JobFiles<'static>) {
        self.rows += 1;
    }

    fn about(&mut self, _: AgentBatches<'static>) {
        self.rows += 1;
    }
}

/// Reads the object that a line is.
struct Whole<'a> {
    line: &'a Line,
    rows: &'a mut dyn Rows,
}

/// Reads the rows of one table, sets their origin, and passes them on.
macro_rules! each {
    ($map:expr, $whole:expr, $row:ident, $method:ident) => {{
        let Line { id, node, .. } = $whole.line;
        $map.next_value_seed(Each::new(|mut row: $row<'static>| {
            row.cluster = id.cluster.clone().into();
            row.node = node.clone().into();
            row.agent = id.agent.clone().into();
            row.sequence = id.sequence;
            $whole.rows.$method(row);
        }))?
    }};
}

impl<'de> Visitor<'de> for Whole<'_> {
    type Value = ();

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a batch")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        const TABLES: [&str; 4] = ["job_samples", "job_totals", "job_files", "agent_batches"];
        let mut seen = [false; TABLES.len()];
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            let table = TABLES.iter().zip(&mut seen).find(|(name, _)| **name == key);
            if let Some((name, true)) = table.map(|(name, seen)| (name, std::mem::replace(seen, true))) {
                return Err(A::Error::duplicate_field(name));
            }
            match key.as_ref() {
                "job_samples" => each!(map, self, JobSamples, sample),
                "job_totals" => each!(map, self, JobTotals, total),
                "job_files" => each!(map, self, JobFiles, file),
                "agent_batches" => each!(map, self, AgentBatches, about),
                // What a newer agent adds.
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Reads a list, element by element.
struct Each<R, F> {
    on_row: F,
    of: std::marker::PhantomData<R>,
}

impl<R, F: FnMut(R)> Each<R, F> {
    fn new(on_row: F) -> Self {
        Each { on_row, of: std::marker::PhantomData }
    }
}

impl<'de, R: Deserialize<'de>, F: FnMut(R)> DeserializeSeed<'de> for Each<R, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, R: Deserialize<'de>, F: FnMut(R)> Visitor<'de> for Each<R, F> {
    type Value = ();

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut rows: A) -> Result<(), A::Error> {
        while let Some(row) = rows.next_element()? {
            (self.on_row)(row);
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{
        batch::Batch,
        rows::{Origin, empty_sample},
    };

    pub(crate) const NOW: i64 = 1_800_000_000_000_000_000;

    /// Keeps rows.
    #[derive(Default)]
    struct Kept {
        samples: Vec<JobSamples<'static>>,
        others: usize,
    }

    impl Rows for Kept {
        fn sample(&mut self, row: JobSamples<'static>) {
            self.samples.push(row);
        }
        fn total(&mut self, _: JobTotals<'static>) {
            self.others += 1;
        }
        fn file(&mut self, _: JobFiles<'static>) {
            self.others += 1;
        }
        fn about(&mut self, _: AgentBatches<'static>) {
            self.others += 1;
        }
    }

    fn batch() -> Batch {
        let origin = Origin { cluster: "c".into(), node: "n".into(), agent: "0123456789abcdef".into(), sequence: 7 };
        let mut batch = Batch::new(&origin, NOW);
        batch.job_samples.push(empty_sample(&origin, NOW, 10, "files"));
        batch
    }

    pub(crate) fn parse(text: impl Into<Vec<u8>>) -> Result<Line, Refusal> {
        Line::parse(text.into().into(), NOW)
    }

    fn rows(line: &Line) -> Kept {
        let mut kept = Kept::default();
        line.read(&mut kept).expect("it was checked");
        kept
    }

    #[test]
    fn rows_come_as_they_were_sent() {
        let mut sent = batch();
        sent.job_samples[0].reads = Some(5);
        let line = parse(sent.to_line()).expect("it is fine");
        assert_eq!((line.id.sequence, line.rows, line.ts_ns), (7, 1, NOW));
        assert_eq!(rows(&line).samples, sent.job_samples);
    }

    #[test]
    fn rows_are_of_their_sender() {
        let mut forged = batch();
        (forged.job_samples[0].node, forged.job_samples[0].sequence) = ("another".into(), 8);
        let line = parse(forged.to_line()).expect("it is taken");
        let row = rows(&line).samples.remove(0);
        assert_eq!((row.node.as_ref(), row.sequence), ("n", 7));
        // Also where the rows come before the sender.
        let text = String::from_utf8(batch().to_line()).expect("JSON");
        let (head, samples) = text.trim_end().split_once("\"job_samples\":").expect("it has rows");
        let samples = samples.split_once(",\"job_totals\"").expect("a list follows").0;
        let text = format!("{{\"job_samples\":{samples},{}}}", head.trim_start_matches('{').trim_end_matches(','));
        assert_eq!(rows(&parse(text).expect("it is taken")).samples.len(), 1);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refusal = |change: fn(&mut Batch)| {
            let mut changed = batch();
            change(&mut changed);
            parse(changed.to_line()).expect_err("it is refused")
        };
        assert_eq!(refusal(|batch| batch.format = 2), Refusal::Newer { format: 2, latest: FORMAT });
        assert_eq!(refusal(|batch| batch.node = "x".repeat(4096)), Refusal::Name { of: Named::Node });
        assert_eq!(refusal(|batch| batch.cluster = "../up".into()), Refusal::Name { of: Named::Cluster });
        for length in 248..=255 {
            let mut long = batch();
            long.cluster = "x".repeat(length);
            assert_eq!(parse(long.to_line()), Err(Refusal::Name { of: Named::Cluster }), "{length}: no folder has this name");
        }
        assert_eq!(refusal(|batch| batch.agent = "1".into()), Refusal::Name { of: Named::Agent });
        assert_eq!(refusal(|batch| batch.job_samples[0].ts_ns = NOW + 2 * DAY_NS), Refusal::Time { ns: NOW + 2 * DAY_NS });
        assert_eq!(refusal(|batch| batch.ts_ns = 0), Refusal::Time { ns: 0 });
        let text = String::from_utf8(batch().to_line()).expect("JSON");
        let twice = text.replacen("\"job_totals\"", "\"job_samples\"", 1);
        for text in ["{\"format\":1}", "", "[]", "{", &twice, &format!("{text} x"), &"[".repeat(100_000)] {
            assert!(matches!(parse(text), Err(Refusal::Malformed { .. })), "{text:.100}");
        }
    }

    #[test]
    fn what_a_newer_agent_adds_is_left_out() {
        let text = String::from_utf8(batch().to_line()).expect("JSON").replacen('{', "{\"new\":[1],", 1);
        assert_eq!(parse(text).expect("it is taken").rows, 1);
    }
}
