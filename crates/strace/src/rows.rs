//! Rows of the tables beside `calls`, collected and written group by group.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use sysdock_table::{Column, ROWS_PER_GROUP, Recording, TableError};

use crate::{
    objects::{KIND_WORDS, Objects},
    paths,
    threads::Life,
};

/// One row of `signals`.
#[derive(Debug)]
pub(crate) struct SignalRow {
    pub(crate) ts_ns: i64,
    pub(crate) life: usize,
    pub(crate) signal: String,
    pub(crate) code: Option<String>,
    pub(crate) sender_pid: Option<i32>,
}

/// Signals not yet written.
#[derive(Debug, Default)]
pub(crate) struct SignalRows(Vec<SignalRow>);

impl SignalRows {
    pub(crate) fn push(&mut self, row: SignalRow) -> bool {
        self.0.push(row);
        self.0.len() >= ROWS_PER_GROUP
    }

    pub(crate) fn flush(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        let rows = std::mem::take(&mut self.0);
        if rows.is_empty() {
            return Ok(());
        }
        let columns = vec![
            Column::Int64(rows.iter().map(|row| Some(row.ts_ns)).collect()),
            Column::Int32(rows.iter().map(|row| i32::try_from(row.life).ok()).collect()),
            Column::words(rows.iter().map(|row| Some(row.signal.as_str()))),
            Column::words(rows.iter().map(|row| row.code.as_deref())),
            Column::Int32(rows.iter().map(|row| row.sender_pid).collect()),
        ];
        recording.write("signals", columns)
    }
}

/// One row of `mappings`.
#[derive(Debug)]
pub(crate) struct MappingRow {
    pub(crate) ts_ns: i64,
    pub(crate) life: u32,
    pub(crate) object: i32,
    pub(crate) address: i64,
    pub(crate) length: i64,
    pub(crate) offset: Option<i64>,
    pub(crate) protection: String,
    pub(crate) shared: bool,
}

/// Mappings not yet written.
#[derive(Debug, Default)]
pub(crate) struct MappingRows(Vec<MappingRow>);

impl MappingRows {
    pub(crate) fn push(&mut self, row: MappingRow) {
        self.0.push(row);
    }

    /// Write what was collected; with `all`, also less than a row group.
    pub(crate) fn flush(&mut self, recording: &mut Recording, all: bool) -> Result<(), TableError> {
        const ROWS_IN_MEMORY: usize = 16_384;
        if self.0.is_empty() || (!all && self.0.len() < ROWS_IN_MEMORY) {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.0);
        let columns = vec![
            Column::Int64(rows.iter().map(|row| Some(row.ts_ns)).collect()),
            Column::Int32(rows.iter().map(|row| i32::try_from(row.life).ok()).collect()),
            Column::Int32(rows.iter().map(|row| Some(row.object).filter(|object| *object >= 0)).collect()),
            Column::Int64(rows.iter().map(|row| Some(row.address)).collect()),
            Column::Int64(rows.iter().map(|row| Some(row.length)).collect()),
            Column::Int64(rows.iter().map(|row| row.offset).collect()),
            Column::words(rows.iter().map(|row| Some(row.protection.as_str()))),
            Column::Bool(rows.iter().map(|row| row.shared).collect()),
        ];
        recording.write("mappings", columns)
    }
}

/// What can be wrong with a line or a thread; the words of `import_issues.issue`, explained in docs/reference/import-issues.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Issue {
    UnknownLine,
    BrokenCall,
    CutLine,
    LongLine,
    ResumedWithoutStart,
    StartWithoutEnd,
    UnfinishedAtEnd,
    ParentGuessed,
    DamagedInput,
    InvisibleIo,
}

impl Issue {
    fn word(self) -> &'static str {
        match self {
            Issue::UnknownLine => "unknown_line",
            Issue::BrokenCall => "broken_call",
            Issue::CutLine => "cut_line",
            Issue::LongLine => "long_line",
            Issue::ResumedWithoutStart => "resumed_without_start",
            Issue::StartWithoutEnd => "start_without_end",
            Issue::UnfinishedAtEnd => "unfinished_at_end",
            Issue::ParentGuessed => "parent_guessed",
            Issue::DamagedInput => "damaged_input",
            Issue::InvisibleIo => "invisible_io",
        }
    }

    /// Whether the line made it into the tables all the same.
    fn understood(self) -> bool {
        !matches!(self, Issue::UnknownLine | Issue::BrokenCall | Issue::CutLine | Issue::LongLine | Issue::DamagedInput)
    }
}

#[derive(Debug)]
struct IssueRow {
    source: usize,
    line: u64,
    issue: Issue,
    detail: Option<String>,
    excerpt: Option<String>,
}

/// Everything that could not be understood. Counted without limit, kept in memory a group at a time.
#[derive(Debug, Default)]
pub(crate) struct Issues {
    rows: Vec<IssueRow>,
    excerpts: u64,
    pub(crate) counts: BTreeMap<&'static str, u64>,
    /// Lines that are missing from the tables.
    pub(crate) lines_lost: u64,
}

impl Issues {
    /// Count an issue at a place (source, line); `text` is the line, as far as it is at hand.
    pub(crate) fn add(&mut self, issue: Issue, place: (usize, u64), text: &[u8], detail: Option<String>) -> bool {
        const EXCERPTS: u64 = 10_000;
        const EXCERPT_BYTES: usize = 120;
        *self.counts.entry(issue.word()).or_default() += 1;
        self.lines_lost += u64::from(!issue.understood() && place.1 > 0);
        let keep = !text.is_empty() && self.excerpts < EXCERPTS;
        self.excerpts += u64::from(keep);
        let excerpt = keep.then(|| paths::readable(&text[..text.len().min(EXCERPT_BYTES)]).into_owned());
        self.rows.push(IssueRow { source: place.0, line: place.1, issue, detail, excerpt });
        self.rows.len() >= ROWS_PER_GROUP
    }

    pub(crate) fn flush(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(());
        }
        let sources: Vec<String> = recording.manifest.sources.iter().map(|source| source.path.clone()).collect();
        let columns = vec![
            Column::words(rows.iter().map(|row| Some(sources[row.source].as_str()))),
            Column::Int64(rows.iter().map(|row| i64::try_from(row.line).ok()).collect()),
            Column::words(rows.iter().map(|row| Some(row.issue.word()))),
            Column::Bool(rows.iter().map(|row| row.issue.understood()).collect()),
            Column::String(rows.iter().map(|row| row.detail.clone()).collect()),
            Column::String(rows.iter().map(|row| row.excerpt.clone()).collect()),
        ];
        recording.write("import_issues", columns)
    }
}

/// Write `paths`, a group at a time: a log may name millions.
pub(crate) fn write_paths(recording: &mut Recording, objects: &Objects) -> Result<(), TableError> {
    let all: Vec<i32> = (0..).take(objects.len()).collect();
    let group = |ids: &[i32]| {
        let items = || objects.iter().skip(ids[0] as usize).take(ids.len());
        vec![
            Column::Int32(ids.iter().copied().map(Some).collect()),
            Column::String(items().map(|(name, _)| Some(paths::readable(name).into_owned())).collect()),
            Column::words(items().map(|(_, kind)| Some(KIND_WORDS[kind as usize]))),
        ]
    };
    recording.replace("paths", all.chunks(ROWS_PER_GROUP).map(group))
}

/// Write `commands`.
pub(crate) fn write_commands(recording: &mut Recording, names: &[String]) -> Result<(), TableError> {
    let ids: Vec<Option<i32>> = (0..).map(Some).take(names.len()).collect();
    let rows = || vec![Column::Int32(ids.clone()), Column::String(names.iter().cloned().map(Some).collect())];
    recording.replace("commands", (!names.is_empty()).then(rows).into_iter())
}

/// Write `processes`.
pub(crate) fn write_processes(recording: &mut Recording, lives: &[Life], sessions: &[String]) -> Result<(), TableError> {
    let (depths, orders) = tree(lives);
    let processes = processes(lives);
    let group = |(number, rows): (usize, &[Life])| {
        let from = number * ROWS_PER_GROUP;
        vec![
            Column::Int32((0..).skip(from).take(rows.len()).map(Some).collect()),
            Column::Int32(processes[from..from + rows.len()].iter().copied().map(Some).collect()),
            Column::Int32(rows.iter().map(|life| Some(life.pid)).collect()),
            Column::Int32(rows.iter().map(|life| Some(life.tid)).collect()),
            Column::Int32(rows.iter().map(|life| life.ppid).collect()),
            Column::Int32(depths[from..from + rows.len()].iter().copied().map(Some).collect()),
            Column::Int32(orders[from..from + rows.len()].iter().copied().map(Some).collect()),
            Column::Int64(rows.iter().map(|life| Some(life.start_ns)).collect()),
            Column::Int64(rows.iter().map(|life| life.end_ns).collect()),
            Column::Int32(rows.iter().map(|life| life.program.as_ref().map(|program| program.comm_id)).collect()),
            Column::String(rows.iter().map(|life| life.program.as_ref().map(|program| program.command.clone())).collect()),
            Column::Int64(rows.iter().map(|life| Some(life.execs)).collect()),
            Column::Int64(rows.iter().map(|life| Some(life.calls)).collect()),
            Column::Int32(rows.iter().map(|life| life.exit_code).collect()),
            Column::words(rows.iter().map(|life| life.exit_signal.as_deref())),
            Column::words(rows.iter().map(|life| Some(sessions[life.session as usize].as_str()))),
        ]
    };
    recording.replace("processes", lives.chunks(ROWS_PER_GROUP).enumerate().map(group))
}

/// The process of each life, named by the life of its first thread. A thread belongs to the process that made it where the log shows
/// that, else to the last process with its id in the same log.
fn processes(lives: &[Life]) -> Vec<i32> {
    let mut current: FxHashMap<(u32, i32), usize> = FxHashMap::default();
    let mut found = Vec::with_capacity(lives.len());
    for (index, life) in lives.iter().enumerate() {
        let key = (life.session, life.pid);
        let mut first = index;
        // Threads make threads; the walk is as long as that chain, and never longer than all lives.
        for _ in 0..lives.len() {
            match lives[first].parent.filter(|parent| (lives[*parent].session, lives[*parent].pid) == key) {
                Some(parent) => first = parent,
                None => break,
            }
        }
        if first == index && life.tid != life.pid {
            first = *current.entry(key).or_insert(index);
        } else if first == index {
            current.insert(key, index);
        }
        found.push(i32::try_from(first).unwrap_or(i32::MAX));
    }
    found
}

/// Depth of each life below its root, and its place in depth-first order, children by start.
fn tree(lives: &[Life]) -> (Vec<i32>, Vec<i32>) {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); lives.len()];
    let mut open: Vec<(usize, i32)> = Vec::new();
    for (index, life) in lives.iter().enumerate() {
        match life.parent {
            Some(parent) => children[parent].push(index),
            None => open.push((index, 0)),
        }
    }
    for list in &mut children {
        list.sort_by_key(|child| lives[*child].start_ns);
    }
    open.reverse();
    let (mut depths, mut orders) = (vec![0; lives.len()], vec![0; lives.len()]);
    let mut next = 0;
    while let Some((index, depth)) = open.pop() {
        depths[index] = depth;
        orders[index] = next;
        next += 1;
        open.extend(children[index].iter().rev().map(|child| (*child, depth + 1)));
    }
    (depths, orders)
}
