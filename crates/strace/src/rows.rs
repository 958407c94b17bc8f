//! Rows of the tables, collected and written group by group.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{DictionaryArray, Int32Array, Int64Array, StringArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use rustc_hash::FxHashMap;
use sysdock_table::{Column, ROWS_PER_GROUP, Recording, TableError};

use crate::{
    objects::{KIND_WORDS, Objects},
    paths,
    syscalls::CLASS_WORDS,
    threads::Life,
};

/// Stands for NULL in the integer columns of a call.
pub(crate) const NONE: i64 = i64::MIN;

/// One row of `calls`. Flat and without pointers: a million of them are sorted and turned into columns at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallRow {
    pub(crate) ts_ns: i64,
    pub(crate) dur_ns: i64,
    pub(crate) offset: i64,
    pub(crate) asked: i64,
    pub(crate) moved: i64,
    pub(crate) result: i64,
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    pub(crate) comm: i32,
    pub(crate) fd: i32,
    pub(crate) object: i32,
    pub(crate) call: u16,
    pub(crate) errno: i16,
    pub(crate) class: u8,
}

/// Error names, numbered as they appear.
#[derive(Debug, Default)]
pub(crate) struct Errnos {
    numbers: FxHashMap<Box<[u8]>, i16>,
    names: Vec<String>,
}

impl Errnos {
    pub(crate) fn number(&mut self, name: &[u8]) -> i16 {
        // Linux has fewer than 140; a log of garbage may hold any number.
        const LIMIT: usize = 1024;
        let name = if self.names.len() < LIMIT || self.numbers.contains_key(name) { name } else { b"E(other)" };
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = i16::try_from(self.names.len()).expect("limited above");
        self.names.push(String::from_utf8_lossy(name).into_owned());
        self.numbers.insert(name.into(), number);
        number
    }
}

/// The calls of one row group.
#[derive(Debug, Default)]
pub(crate) struct CallRows {
    rows: Vec<CallRow>,
    pub(crate) errnos: Errnos,
}

impl CallRows {
    /// Add a row; tells whether the group is full.
    pub(crate) fn push(&mut self, row: CallRow) -> bool {
        if self.rows.capacity() == 0 {
            self.rows.reserve_exact(ROWS_PER_GROUP);
        }
        self.rows.push(row);
        self.rows.len() >= ROWS_PER_GROUP
    }

    /// Write the group in order of start times; calls arrive as they end.
    pub(crate) fn flush(&mut self, recording: &mut Recording, call_names: &[String]) -> Result<(), TableError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut columns = CallColumns::default();
        columns.extend(&in_order(&self.rows));
        let columns = columns.finish(call_names, &self.errnos.names);
        recording.write("calls", columns)?;
        self.rows.clear();
        Ok(())
    }
}

/// Rows by start time; rows of equal time stay as they came. Keys are sorted apart from the rows, which are several times as wide.
fn in_order(rows: &[CallRow]) -> Vec<&CallRow> {
    if rows.is_sorted_by_key(|row| row.ts_ns) {
        return rows.iter().collect();
    }
    let mut keys: Vec<(i64, u32)> = rows.iter().zip(0u32..).map(|(row, index)| (row.ts_ns, index)).collect();
    keys.sort_unstable();
    keys.iter().map(|(_, index)| &rows[*index as usize]).collect()
}

/// The columns of a group. Filled in one pass over the rows, because a pass for each column would fetch every row from memory again.
#[derive(Default)]
struct CallColumns {
    ts_ns: Vec<i64>,
    dur_ns: Vec<i64>,
    pid: Vec<i32>,
    tid: Vec<i32>,
    comm: Vec<i32>,
    call: Vec<i32>,
    class: Vec<i32>,
    fd: Vec<i32>,
    object: Vec<i32>,
    offset: Vec<i64>,
    asked: Vec<i64>,
    moved: Vec<i64>,
    result: Vec<i64>,
    errno: Vec<i32>,
}

impl CallColumns {
    fn extend(&mut self, rows: &[&CallRow]) {
        for wide in [&mut self.ts_ns, &mut self.dur_ns, &mut self.offset, &mut self.asked, &mut self.moved, &mut self.result] {
            wide.reserve_exact(rows.len());
        }
        for row in rows {
            self.ts_ns.push(row.ts_ns);
            self.dur_ns.push(row.dur_ns);
            self.pid.push(row.pid);
            self.tid.push(row.tid);
            self.comm.push(row.comm);
            self.call.push(i32::from(row.call));
            self.class.push(i32::from(row.class));
            self.fd.push(row.fd);
            self.object.push(row.object);
            self.offset.push(row.offset);
            self.asked.push(row.asked);
            self.moved.push(row.moved);
            self.result.push(row.result);
            self.errno.push(i32::from(row.errno));
        }
    }

    /// In the order of `knowhow/tables/calls.toml`.
    fn finish(self, call_names: &[String], errnos: &[String]) -> Vec<Column> {
        vec![
            int64(self.ts_ns),
            int64(self.dur_ns),
            int32(self.pid),
            int32(self.tid),
            int32(self.comm),
            words(self.call, call_names),
            words(self.class, &CLASS_WORDS),
            int32(self.fd),
            int32(self.object),
            int64(self.offset),
            int64(self.asked),
            int64(self.moved),
            int64(self.result),
            words(self.errno, errnos),
        ]
    }
}

fn int64(values: Vec<i64>) -> Column {
    let nulls = nulls(&values, |value| value != NONE);
    Column::Array(Arc::new(Int64Array::new(values.into(), nulls)))
}

/// Negative numbers are NULL: ids and descriptors have none.
fn int32(values: Vec<i32>) -> Column {
    Column::Array(Arc::new(codes(values)))
}

fn codes(values: Vec<i32>) -> Int32Array {
    let nulls = nulls(&values, |value| value >= 0);
    Int32Array::new(values.into(), nulls)
}

fn words<S: AsRef<str>>(values: Vec<i32>, words: &[S]) -> Column {
    let words: StringArray = words.iter().map(|word| Some(word.as_ref())).collect();
    Column::Array(Arc::new(DictionaryArray::new(codes(values), Arc::new(words))))
}

fn nulls<T: Copy>(values: &[T], present: impl Fn(T) -> bool) -> Option<NullBuffer> {
    let buffer = NullBuffer::new(BooleanBuffer::collect_bool(values.len(), |row| present(values[row])));
    (buffer.null_count() > 0).then_some(buffer)
}

/// One row of `signals`.
#[derive(Debug)]
pub(crate) struct SignalRow {
    pub(crate) ts_ns: i64,
    pub(crate) pid: i32,
    pub(crate) tid: i32,
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
            Column::Int32(rows.iter().map(|row| Some(row.pid)).collect()),
            Column::Int32(rows.iter().map(|row| Some(row.tid)).collect()),
            Column::words(rows.iter().map(|row| Some(row.signal.as_str()))),
            Column::words(rows.iter().map(|row| row.code.as_deref())),
            Column::Int32(rows.iter().map(|row| row.sender_pid).collect()),
        ];
        recording.write("signals", columns)
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
        }
    }

    /// Whether the line made it into the tables all the same.
    fn understood(self) -> bool {
        matches!(self, Issue::ResumedWithoutStart | Issue::StartWithoutEnd | Issue::UnfinishedAtEnd | Issue::ParentGuessed)
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
pub(crate) fn write_processes(recording: &mut Recording, lives: &[Life]) -> Result<(), TableError> {
    let (depths, orders) = tree(lives);
    let group = |(number, rows): (usize, &[Life])| {
        let from = number * ROWS_PER_GROUP;
        vec![
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
        ]
    };
    recording.replace("processes", lives.chunks(ROWS_PER_GROUP).enumerate().map(group))
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
