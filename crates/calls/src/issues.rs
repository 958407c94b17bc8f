//! What could not be understood, of a log or of a recorder's own events: `import_issues`.

use std::collections::BTreeMap;

use sysdock_table::{Fact, ROWS_PER_GROUP, Recording, TableError, readable, rows};

/// What can be wrong with a line, an event or a thread: the values of `import_issues.issue`,
/// explained in docs/reference/import-issues.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issue {
    UnknownLine,
    BrokenCall,
    ImpossibleNumber,
    CutLine,
    LongLine,
    ResumedWithoutStart,
    StartWithoutEnd,
    UnfinishedAtEnd,
    ParentGuessed,
    DamagedInput,
    InvisibleIo,
    BrokenEvent,
    UnknownEvent,
    UnknownPath,
    UnknownBytes,
    StackLost,
    StackCut,
    StackDiffers,
    SwitchMissed,
    BeganBefore,
    Wrapped,
}

impl Issue {
    fn name(self) -> &'static str {
        match self {
            Issue::UnknownLine => "unknown_line",
            Issue::BrokenCall => "broken_call",
            Issue::ImpossibleNumber => "impossible_number",
            Issue::CutLine => "cut_line",
            Issue::LongLine => "long_line",
            Issue::ResumedWithoutStart => "resumed_without_start",
            Issue::StartWithoutEnd => "start_without_end",
            Issue::UnfinishedAtEnd => "unfinished_at_end",
            Issue::ParentGuessed => "parent_guessed",
            Issue::DamagedInput => "damaged_input",
            Issue::InvisibleIo => "invisible_io",
            Issue::BrokenEvent => "broken_event",
            Issue::UnknownEvent => "unknown_event",
            Issue::UnknownPath => "unknown_path",
            Issue::UnknownBytes => "unknown_bytes",
            Issue::StackLost => "stack_lost",
            Issue::StackCut => "stack_cut",
            Issue::StackDiffers => "stack_differs",
            Issue::SwitchMissed => "switch_missed",
            Issue::BeganBefore => "began_before",
            Issue::Wrapped => "wrapped",
        }
    }

    /// Whether the tables contain the line in spite of the issue.
    fn understood(self) -> bool {
        !matches!(
            self,
            Issue::UnknownLine
                | Issue::BrokenCall
                | Issue::ImpossibleNumber
                | Issue::CutLine
                | Issue::LongLine
                | Issue::DamagedInput
                | Issue::BrokenEvent
                | Issue::UnknownEvent
        )
    }
}

#[derive(Debug)]
struct IssueRow {
    source: usize,
    line: u64,
    issue: Issue,
    detail: Option<Fact>,
    excerpt: Option<String>,
}

/// Everything that could not be understood. It is counted without limit, and kept in memory a group
/// at a time.
#[derive(Debug, Default)]
pub struct Issues {
    rows: Vec<IssueRow>,
    excerpts: u64,
    /// Number of issues of each kind.
    pub counts: BTreeMap<&'static str, u64>,
    /// Number of lines that are missing from the tables.
    pub lines_lost: u64,
}

impl Issues {
    /// Count an issue at a place (source, line); `text` is the line, as far as it is known. Returns
    /// whether it is time to [`Issues::flush`].
    pub fn add(&mut self, issue: Issue, place: (usize, u64), text: &[u8], detail: Option<Fact>) -> bool {
        const EXCERPTS: u64 = 10_000;
        const EXCERPT_BYTES: usize = 120;
        // The detail may contain a name from the log.
        const DETAIL_BYTES: usize = 400;
        *self.counts.entry(issue.name()).or_default() += 1;
        self.lines_lost += u64::from(!issue.understood() && place.1 > 0);
        let keep = !text.is_empty() && self.excerpts < EXCERPTS;
        self.excerpts += u64::from(keep);
        let excerpt = keep.then(|| readable(&text[..text.len().min(EXCERPT_BYTES)]).into_owned());
        let detail = detail.map(|detail| detail.with_texts_up_to(DETAIL_BYTES));
        self.rows.push(IssueRow { source: place.0, line: place.1, issue, detail, excerpt });
        self.rows.len() >= ROWS_PER_GROUP
    }

    /// Count an issue that occurred `count` times in a source, as one row; `detail` contains the
    /// number.
    pub fn add_many(&mut self, issue: Issue, source: usize, count: u64, detail: Fact) {
        if count > 0 {
            self.add(issue, (source, 0), b"", Some(detail));
            *self.counts.entry(issue.name()).or_default() += count - 1;
        }
    }

    /// Write the collected rows.
    pub fn flush(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let sources: Vec<String> = recording.manifest.capture().sources.iter().map(|source| source.path.clone()).collect();
        recording.write_rows(self.rows.iter().map(|row| rows::ImportIssues {
            source: sources[row.source].as_str().into(),
            line: row.line.cast_signed(),
            issue: row.issue.name().into(),
            understood: row.issue.understood(),
            detail: row.detail.iter().cloned().collect(),
            excerpt: row.excerpt.as_deref().map(Into::into),
        }))?;
        self.rows.clear();
        Ok(())
    }
}
